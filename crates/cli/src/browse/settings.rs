//! The configuration file of the browser.

use super::join::JoinCommand;
use crate::{
    ask::{Target, target::Lobby},
    config::{Document, Mistakes},
    failure::Failure,
};
use serde::{Deserialize, Deserializer, de::Error};
use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// What a file says. Everything in it can be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where to look if the command line does not say it.
    #[serde(deserialize_with = "places")]
    pub lobbies: Vec<Place>,
    /// What joins a server.
    #[serde(deserialize_with = "command")]
    pub join: Option<JoinCommand>,
    /// What joins a server of a certain game, by its short name.
    #[serde(deserialize_with = "commands")]
    pub join_game: BTreeMap<String, JoinCommand>,
}

/// A lobby as a person names it, or anything else that can be asked, with its `scheme://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub Target);

/// For the help.
pub const EXAMPLE: &str = "  lobbies = [\"lobby.example.org\", \"lobby://lobby.example.org/vanguard\"]
  join = \"mygame --connect {host} {port}\"
  [join_game]
  bloodmasters = \"bloodmasters {address}\"";

impl Settings {
    /// What the file says; nothing, if there is no such file and nobody has named it.
    pub fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = named.map(Path::to_owned).or_else(usual_file) else { return Ok(Self::default()) };
        let mut mistakes = Mistakes::default();
        let name = file.display().to_string();
        match fs::read_to_string(&file) {
            Ok(text) => match toml::from_str(&text) {
                Ok(settings) => return Ok(settings),
                Err(error) => {
                    let place = Document { name: &name, text: &text }.place(&error.span().unwrap_or(0..0));
                    mistakes.push(place, error.message());
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => mistakes.push(name, "there is no such file"),
            Err(error) => mistakes.push(name, error),
        }
        Err(mistakes.into())
    }
}

/// `$XDG_CONFIG_HOME/rallypoint/browse.toml`.
fn usual_file() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(variable("HOME")?.join(".config"));
    let place = variable("XDG_CONFIG_HOME").filter(|place| place.is_absolute()).or_else(home)?;
    Some(place.join("rallypoint/browse.toml"))
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") { text.parse().map(Self) } else { text.parse::<Lobby>().map(Target::Lobby).map(Self) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Place>, D::Error> {
    Vec::<String>::deserialize(deserializer)?.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JoinCommand>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

fn commands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, JoinCommand>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let parse = |(game, text): (String, String)| text.parse().map(|command| (game.to_lowercase(), command));
    texts.into_iter().map(parse).collect::<Result<_, String>>().map_err(D::Error::custom)
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
    fn the_example_is_one() {
        let settings = load(EXAMPLE).unwrap();
        assert_eq!(settings.lobbies[0].to_string(), "lobby://lobby.example.org");
        assert_eq!(settings.join.unwrap().to_string(), "mygame --connect '{host}' '{port}'");
        assert!(settings.join_game.contains_key("bloodmasters"));
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, expected) in [
            ("\njoin = \"mygame\"", "browse.toml:2: it does not say where to go"),
            ("lobbies = [\"a b\"]", "browse.toml:1: expected a lobby"),
            ("\n\njoyn = 1", "browse.toml:3: unknown field `joyn`"),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Settings::load(Some(Path::new("nowhere.toml"))).is_err());
    }
}
