//! The configuration file of the browser.

use super::join::JoinCommand;
use crate::{
    config::{ConfigErrors, Document, found, nearest, syntax_errors},
    error::{CommandError, describe_io},
    user_dirs,
};
use rallypoint_query::{LobbyAddress, Target};
use std::{
    collections::BTreeMap,
    fmt, fs, io,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The settings of the browser. All are optional.
#[derive(Debug, Default)]
pub struct Settings {
    /// Targets, if the command line names none.
    pub lobbies: Vec<LobbyTarget>,
    /// Command that joins a server.
    pub join: Option<JoinCommand>,
    /// Commands that join a server, by the short name of the game.
    pub join_game: BTreeMap<String, JoinCommand>,
}

/// A lobby, or any other target with its `scheme://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyTarget(pub Target);

/// An example, for the help.
pub const EXAMPLE: &str = "  lobbies = [\"lobby.example.org\", \"lobby://lobby.example.org/vanguard\"]
  join = \"mygame --connect {host} {port}\"
  [join_game]
  bloodmasters = \"bloodmasters {address}\"";

impl Settings {
    /// Reads the file. The default file is optional, a named one is not.
    pub fn load(named: Option<&Path>) -> Result<Self, CommandError> {
        let Some(file) = named.map(Path::to_owned).or_else(default_file) else { return Ok(Self::default()) };
        let mut errors = ConfigErrors::default();
        let name = file.display().to_string();
        match fs::read_to_string(&file) {
            Ok(text) => {
                let (settings, mut wrongs) = Self::read(&text);
                // The parser does not return keys in the order of their lines.
                wrongs.sort_by_key(|(at, _)| at.start);
                let document = Document { name: &name, text: &text };
                wrongs.iter().for_each(|(at, message)| errors.push(document.location(at), message));
                errors.into_result()?;
                return Ok(settings);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => return Ok(Self::default()),
            Err(error) => errors.push(name, describe_io(&error)),
        }
        Err(errors.into())
    }

    /// The settings in a text, and all errors in it.
    fn read(text: &str) -> (Self, Vec<Wrong>) {
        let mut settings = Self::default();
        let mut wrongs = Vec::new();
        let Ok(table) = DeTable::parse(text) else { return (settings, syntax_errors(text)) };
        for (key, value) in table.get_ref() {
            match &**key.get_ref() {
                "lobbies" => match value.get_ref() {
                    DeValue::Array(items) => {
                        settings.lobbies =
                            items.iter().filter_map(|item| parse("lobbies", LOBBY, item, &mut wrongs)).collect();
                    }
                    other => {
                        wrongs.push((value.span(), format!("lobbies: expected a list of lobbies, {}", found(other))));
                    }
                },
                "join" => settings.join = parse("join", COMMAND, value, &mut wrongs),
                "join_game" => match value.get_ref() {
                    DeValue::Table(games) => {
                        let read = |(game, value): (&Spanned<_>, &Value<'_>)| {
                            let path = format!("join_game.{}", game.get_ref());
                            let command = parse(&path, COMMAND, value, &mut wrongs)?;
                            Some((AsRef::<str>::as_ref(game.get_ref()).to_lowercase(), command))
                        };
                        settings.join_game = games.iter().filter_map(read).collect();
                    }
                    other => {
                        let message = format!("expected the section [join_game], {}", found(other));
                        wrongs.push((value.span(), message));
                    }
                },
                other => {
                    let hint = nearest(other, ["lobbies", "join", "join_game"]);
                    wrongs.push((key.span(), format!("unknown key \"{other}\"{hint}")));
                }
            }
        }
        (settings, wrongs)
    }
}

type Value<'a> = Spanned<DeValue<'a>>;

/// An error and its position.
type Wrong = (Range<usize>, String);

const LOBBY: &str = "a lobby, such as \"lobby.example.org\"";
const COMMAND: &str = "a command, such as \"mygame --connect {host} {port}\"";

/// Parses a string value.
fn parse<T: FromStr<Err = String>>(
    path: &str,
    expected: &str,
    value: &Value<'_>,
    wrongs: &mut Vec<Wrong>,
) -> Option<T> {
    let parsed = match value.get_ref() {
        DeValue::String(text) => text.parse(),
        other => Err(format!("expected {expected}, {}", found(other))),
    };
    parsed.map_err(|why| wrongs.push((value.span(), format!("{path}: {why}")))).ok()
}

/// `browse.toml` in the user's configuration directory.
fn default_file() -> Option<PathBuf> {
    Some(user_dirs::config()?.join("browse.toml"))
}

impl FromStr for LobbyTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let target = if text.contains("://") { text.parse() } else { text.parse::<LobbyAddress>().map(Target::Lobby) };
        target.map(Self).map_err(|error| error.to_string())
    }
}

impl fmt::Display for LobbyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Settings, String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("browse.toml");
        fs::write(&file, text).unwrap();
        Settings::load(Some(&file)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_example_in_the_help_is_valid() {
        let settings = load(EXAMPLE).unwrap();
        assert_eq!(settings.lobbies[0].to_string(), "lobby://lobby.example.org");
        assert_eq!(settings.join.unwrap().to_string(), "mygame --connect '{host}' '{port}'");
        assert!(settings.join_game.contains_key("bloodmasters"));
    }

    #[test]
    fn errors_are_reported_with_their_line_all_at_once() {
        for (text, expected) in [
            ("\njoin = \"mygame\"", "browse.toml:2: join: it has no placeholder for the address"),
            ("lobbies = [\"a b\"]", "browse.toml:1: lobbies: expected a lobby"),
            (
                "lobbies = [\n  \"a\",\n  7]",
                "browse.toml:3: lobbies: expected a lobby, such as \"lobby.example.org\", not 7",
            ),
            ("lobbies = \"a\"", "browse.toml:1: lobbies: expected a list of lobbies, not \"a\""),
            ("join = true", "browse.toml:1: join: expected a command, such as"),
            ("\n\njoyn = 1", "browse.toml:3: unknown key \"joyn\"; did you mean \"join\"?"),
            ("join_game = 1", "browse.toml:1: expected the section [join_game], not 1"),
            ("[join_game]\nGG2 = 1", "browse.toml:2: join_game.GG2: expected a command"),
            ("joyn = 1\njoin = 1", "browse.toml:2: join: expected"),
            ("join = ", "browse.toml:1: "),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Settings::load(Some(Path::new("nowhere.toml"))).is_err());
    }
}
