//! The configuration file of the browser.

use super::join::JoinCommand;
use crate::{
    error::CommandError,
    toml_file::{TableReader, read_file},
    user_dirs,
};
use rallypoint_query::{LobbyAddress, Target};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};
use toml::de::DeValue;

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
        let default = || default_file().filter(|file| file.exists());
        let Some(file) = named.map(Path::to_owned).or_else(default) else { return Ok(Self::default()) };
        let mut settings = Self::default();
        read_file(&file, |_, table, found| settings = Self::read(TableReader::new(table, found))).into_result()?;
        Ok(settings)
    }

    fn read(mut file: TableReader<'_>) -> Self {
        const COMMAND: &str = "a command, such as \"mygame --connect {host} {port}\"";
        let lobbies = file.read("lobbies", "a list of lobbies", DeValue::as_array);
        let lobbies = lobbies.into_iter().flat_map(|lobbies| lobbies.iter());
        let lobbies =
            lobbies.filter_map(|lobby| file.parse("lobbies", "a lobby, such as \"lobby.example.org\"", lobby));
        let lobbies = lobbies.collect();
        let join = file.value("join").and_then(|command| file.parse("join", COMMAND, command));
        let games = file.table("join_game");
        let command = |games: &TableReader<'_>, value, game: &str| {
            Some((game.to_lowercase(), games.parse(game, COMMAND, value)?))
        };
        let join_game =
            games.iter().flat_map(|games| games.entries().filter_map(|(value, game)| command(games, value, game)));
        let join_game = join_game.collect();
        file.finish();
        Self { lobbies, join, join_game }
    }
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
    use std::fs;

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
            ("join_game = 1", "browse.toml:1: join_game: expected the table [join_game], not 1"),
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
