//! The file that says what to answer.

use crate::config::{Document, Mistakes};
use rallypoint_query::{BloodmastersInfo, Mod, Player, ServerInfo, SessionInfo, Team};
use rallypoint_wire::bloodmasters::{GameType, Rules};
use serde::{Deserialize, Deserializer, de::Error};
use std::{fmt, io, path::Path};

/// A file, which can be read again and again.
#[derive(Clone, Copy)]
pub struct InfoFile<'a>(&'a Path);

impl<'a> InfoFile<'a> {
    /// A file that says all there is to say.
    pub const EXAMPLE: &'static str = include_str!("example.toml");

    pub fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// What it says, or what is wrong with it and where.
    pub fn read(&self) -> Result<ServerInfo, Mistakes> {
        let mut mistakes = Mistakes::default();
        match std::fs::read_to_string(self.0) {
            Ok(text) => return parse(&self.to_string(), &text),
            Err(error) => mistakes.push(
                self,
                match error.kind() {
                    io::ErrorKind::NotFound => "there is no such file".into(),
                    io::ErrorKind::PermissionDenied => "this user may not read it".into(),
                    io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
                    io::ErrorKind::IsADirectory => "it is a folder, not a file".into(),
                    _ => error.to_string(),
                },
            ),
        }
        Err(mistakes)
    }
}

impl fmt::Display for InfoFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

fn parse(name: &str, text: &str) -> Result<ServerInfo, Mistakes> {
    toml::from_str::<Told>(text).map(Told::into_info).map_err(|error| {
        let mut mistakes = Mistakes::default();
        mistakes.push(Document { name, text }.place(&error.span().unwrap_or(0..0)), error.message());
        mistakes
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    name: Option<String>,
    description: Option<String>,
    game: Option<String>,
    game_name: Option<String>,
    map: Option<String>,
    version: Option<String>,
    website: Option<String>,
    #[serde(default)]
    password: bool,
    players: Option<u16>,
    max_players: Option<u16>,
    #[serde(default)]
    tags: Vec<String>,
    bloodmasters: Option<ToldBloodmasters>,
    #[serde(default)]
    session: ToldSession,
    #[serde(default, rename = "mod")]
    mods: Vec<ToldMod>,
    #[serde(default, rename = "team")]
    teams: Vec<ToldTeam>,
    #[serde(default, rename = "player")]
    player_list: Vec<ToldPlayer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldBloodmasters {
    #[serde(default, deserialize_with = "mode")]
    mode: GameType,
    max_clients: Option<u8>,
    #[serde(default)]
    score_limit: i16,
    #[serde(default)]
    time_limit: i16,
    #[serde(default)]
    join_smallest: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ToldSession {
    engine_revision: u32,
    version_type: u8,
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldMod {
    id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldTeam {
    id: u8,
    name: String,
    #[serde(default, deserialize_with = "color")]
    color: [u8; 3],
    #[serde(default)]
    ranked: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldPlayer {
    name: String,
    team: Option<u8>,
    rank: Option<u8>,
    ping_ms: Option<u16>,
    platform: Option<i8>,
    #[serde(default)]
    spectator: bool,
}

impl Told {
    fn into_info(self) -> ServerInfo {
        let playing = self.player_list.iter().filter(|player| !player.spectator).count();
        let max_players = self.max_players.unwrap_or(0);
        let bloodmasters = self.bloodmasters.map(|own| BloodmastersInfo {
            max_clients: own.max_clients.unwrap_or_else(|| u8::try_from(max_players).unwrap_or(u8::MAX)),
            game_type: own.mode,
            rules: Some(Rules {
                score_limit: own.score_limit,
                time_limit: own.time_limit,
                join_smallest: own.join_smallest,
            }),
            ..BloodmastersInfo::default()
        });
        let ToldSession { engine_revision, version_type, version } = self.session;
        let list: Vec<_> = self.player_list.into_iter().map(ToldPlayer::into_player).collect();
        ServerInfo {
            name: self.name,
            description: self.description,
            game: self.game,
            game_name: self.game_name,
            map: self.map,
            version: self.version,
            website: self.website,
            password: Some(self.password),
            players: Some(self.players.unwrap_or_else(|| u16::try_from(playing).unwrap_or(u16::MAX))),
            max_players: Some(max_players),
            mods: self.mods.into_iter().map(|ToldMod { id, name }| Mod { id, name }).collect(),
            tags: self.tags,
            teams: self.teams.into_iter().map(ToldTeam::into_team).collect(),
            // A file that names nobody but gives a number does not know who they are.
            player_list: (self.players.is_none() || !list.is_empty()).then_some(list),
            bloodmasters,
            session: Some(SessionInfo { engine_revision, version_type, version, ..SessionInfo::default() }),
            ..ServerInfo::default()
        }
    }
}

impl ToldTeam {
    fn into_team(self) -> Team {
        Team { id: self.id, name: self.name, ranked: self.ranked, color: self.color }
    }
}

impl ToldPlayer {
    fn into_player(self) -> Player {
        let Self { name, team, rank, ping_ms, platform, spectator } = self;
        Player { name, team, rank, ping_ms: ping_ms.map(i32::from), platform, spectator }
    }
}

/// A game type by its name or its number.
fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GameType, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NameOrNumber {
        Number(u8),
        Name(String),
    }
    let expected =
        "expected Deathmatch, Team Deathmatch, Capture The Flag, Scavenger, Team Scavenger, or a number up to 255";
    match NameOrNumber::deserialize(deserializer).map_err(|_| D::Error::custom(expected))? {
        NameOrNumber::Number(number) => Ok(GameType(number)),
        NameOrNumber::Name(name) => {
            let is_it = |number: &u8| GameType(*number).name().is_some_and(|known| known.eq_ignore_ascii_case(&name));
            (0..=u8::MAX).find(is_it).map(GameType).ok_or_else(|| D::Error::custom(expected))
        }
    }
}

/// `"#cc3333"`.
fn color<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 3], D::Error> {
    let expected = "expected a colour such as \"#cc3333\"";
    let text = String::deserialize(deserializer).map_err(|_| D::Error::custom(expected))?;
    let digits = text.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.bytes().all(|c| c.is_ascii_hexdigit()));
    let number = digits.and_then(|hex| u32::from_str_radix(hex, 16).ok()).ok_or_else(|| D::Error::custom(expected))?;
    let [_, red, green, blue] = number.to_be_bytes();
    Ok([red, green, blue])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_says_everything() {
        let info = parse("example.toml", InfoFile::EXAMPLE).unwrap();
        assert_eq!((info.players, info.max_players), (Some(2), Some(24)));
        assert_eq!(info.teams[0].color, [0xcc, 0x33, 0x33]);
        assert_eq!(info.bloodmasters.unwrap().game_type, GameType::CAPTURE_THE_FLAG);
        assert_eq!(info.session.unwrap().version, 292);
        assert_eq!(info.player_list.unwrap()[0].name, "Ada");
    }

    #[test]
    fn an_empty_file_is_a_server_without_a_name() {
        let info = parse("info.toml", "").unwrap();
        assert_eq!((info.name, info.players, info.max_players), (None, Some(0), Some(0)));
        assert_eq!(parse("info.toml", "players = 3").unwrap().player_list, None);
    }

    #[test]
    fn mistakes_have_a_line_and_say_what_is_expected() {
        for (text, expected) in [
            ("name = \"x\"\nmpa = \"y\"", "info.toml:2: unknown field `mpa`"),
            ("\n\n[[team]]\nid = 1\nname = \"RED\"\ncolor = \"red\"", "info.toml:6: expected a colour such as"),
            ("[bloodmasters]\nmode = \"Chess\"", "info.toml:2: expected Deathmatch"),
            ("[bloodmasters]\nmode = 300", "info.toml:2: expected Deathmatch"),
            ("max_players = 70000", "info.toml:1: "),
            ("name = ", "info.toml:1: "),
            ("[[player]]\nteam = 1", "info.toml:1: missing field `name`"),
        ] {
            let mistakes = parse("info.toml", text).unwrap_err().to_string();
            assert!(mistakes.starts_with(expected), "{text:?}: {mistakes}");
        }
    }
}
