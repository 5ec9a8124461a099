//! The file with the answers.

use crate::toml_file::{ConfigErrors, TableReader, plain, read_file};
use rallypoint_query_proto::{Extension, Mod, Player, Protocol, ServerInfo, Team};
use rallypoint_wire::bloodmasters::GameType;
use std::{fmt, path::Path};
use toml::de::DeValue;

/// The path of the file, which can be read repeatedly.
#[derive(Clone, Copy)]
pub struct InfoFile<'a>(&'a Path);

impl<'a> InfoFile<'a> {
    /// An example with all keys.
    pub const EXAMPLE: &'static str = include_str!("example.toml");

    pub fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// All errors with their lines.
    pub fn read(&self) -> Result<ServerInfo, ConfigErrors> {
        let mut info = ServerInfo::default();
        read_file(self.0, |_, table, found| info = server(TableReader::new(table, found))).into_result()?;
        Ok(info)
    }
}

impl fmt::Display for InfoFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

fn server(mut file: TableReader<'_>) -> ServerInfo {
    let players: Option<u16> = file.number("players");
    let max_players = file.number("max_players").unwrap_or(0);
    let own = file.table("bloodmasters").map(|table| bloodmasters(table, max_players));
    let session = file.table("session").map(session).unwrap_or_default();
    let list: Vec<_> = file.tables("player").into_iter().filter_map(player).collect();
    let playing = list.iter().filter(|player| !player.spectator).count();
    let info = ServerInfo {
        name: file.text("name"),
        description: file.text("description"),
        game: file.text("game"),
        game_name: file.text("game_name"),
        map: file.text("map"),
        version: file.text("version"),
        website: file.text("website"),
        password: Some(file.switch("password")),
        players: Some(players.unwrap_or_else(|| u16::try_from(playing).unwrap_or(u16::MAX))),
        max_players: Some(max_players),
        mods: file.tables("mod").into_iter().map(mod_of).collect(),
        tags: file.texts("tags"),
        teams: file.tables("team").into_iter().filter_map(team).collect(),
        // With a number of players but no names, the players are unknown.
        player_list: (players.is_none() || !list.is_empty()).then_some(list),
        rules: file.text_map("rules"),
        extensions: own
            .map(|own| (Protocol::Bloodmasters, own))
            .into_iter()
            .chain([(Protocol::Session, session)])
            .collect(),
        ..ServerInfo::default()
    };
    file.finish();
    info
}

fn bloodmasters(mut table: TableReader<'_>, max_players: u16) -> Extension {
    let expected =
        "Deathmatch, Team Deathmatch, Capture The Flag, Scavenger, Team Scavenger, or a number from 0 to 255";
    let max_clients = |max_clients: Option<u8>| max_clients.unwrap_or(u8::try_from(max_players).unwrap_or(u8::MAX));
    let info = Extension::from([
        ("game_type", table.read("mode", expected, mode).unwrap_or_default().0.into()),
        ("max_clients", max_clients(table.number("max_clients")).into()),
        ("score_limit", table.number::<i16>("score_limit").unwrap_or(0).into()),
        ("time_limit", table.number::<i16>("time_limit").unwrap_or(0).into()),
        ("join_smallest", table.switch("join_smallest").into()),
    ]);
    table.finish();
    info
}

fn session(mut table: TableReader<'_>) -> Extension {
    let info = Extension::from([
        ("engine_revision", table.number::<u32>("engine_revision").unwrap_or(0).into()),
        ("version_type", table.number::<u8>("version_type").unwrap_or(0).into()),
        ("version", table.number::<u32>("version").unwrap_or(0).into()),
    ]);
    table.finish();
    info
}

fn mod_of(mut table: TableReader<'_>) -> Mod {
    let found = Mod { id: table.text("id"), name: table.text("name") };
    table.finish();
    found
}

fn team(mut table: TableReader<'_>) -> Option<Team> {
    let id = table.number("id");
    let name = table.text("name");
    table.require("id");
    table.require("name");
    let color = table.read("color", "a colour such as \"#cc3333\"", color).unwrap_or_default();
    let ranked = table.switch("ranked");
    table.finish();
    Some(Team { id: id?, name: name?, ranked, color })
}

fn player(mut table: TableReader<'_>) -> Option<Player> {
    let name = table.text("name");
    table.require("name");
    let team = table.number("team");
    let rank = table.number("rank");
    let score = table.number("score");
    let duration_s = table.number("duration_s");
    let platform = table.number("platform");
    let ping_ms = table.number::<u16>("ping_ms").map(i32::from);
    let spectator = table.switch("spectator");
    table.finish();
    Some(Player { name: name?, team, rank, score, duration_s, ping_ms, platform, spectator, ..Player::default() })
}

/// A game type by its name or its number.
fn mode(value: &DeValue<'_>) -> Option<GameType> {
    let name = match value {
        DeValue::String(name) => name,
        value => return plain(value).map(GameType),
    };
    let is_it = |number: &u8| GameType(*number).name().is_some_and(|known| known.eq_ignore_ascii_case(name));
    (0..=u8::MAX).find(is_it).map(GameType)
}

/// `"#cc3333"`.
fn color(value: &DeValue<'_>) -> Option<[u8; 3]> {
    let digits = value.as_str()?.strip_prefix('#').filter(|hex| hex.len() == 6)?;
    let number = digits.bytes().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())??;
    let [_, red, green, blue] = number.to_be_bytes();
    Some([red, green, blue])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_file::Document;

    fn parse(name: &str, text: &str) -> Result<ServerInfo, ConfigErrors> {
        let mut info = ServerInfo::default();
        let document = Document { name, text };
        document.read(|_, table, found| info = server(TableReader::new(table, found))).into_result()?;
        Ok(info)
    }

    #[test]
    fn the_example_contains_all_keys() {
        let info = parse("example.toml", InfoFile::EXAMPLE).unwrap();
        assert_eq!((info.players, info.max_players), (Some(2), Some(24)));
        assert_eq!(info.teams[0].color, [0xcc, 0x33, 0x33]);
        let own = &info.extensions;
        assert_eq!(own[&Protocol::Bloodmasters].number("game_type"), Some(GameType::CAPTURE_THE_FLAG.0));
        assert_eq!(own[&Protocol::Session].number("version"), Some(292));
        assert_eq!(info.rules["fraglimit"], "20");
        assert_eq!(info.player_list.as_ref().unwrap()[0].score, Some(12));
        assert_eq!(info.player_list.unwrap()[0].name, "Ada");
    }

    #[test]
    fn an_empty_file_is_a_server_without_a_name() {
        let info = parse("info.toml", "").unwrap();
        assert_eq!((info.name, info.players, info.max_players), (None, Some(0), Some(0)));
        assert_eq!(parse("info.toml", "players = 3").unwrap().player_list, None);
    }

    #[test]
    fn errors_have_a_line_and_the_expected_value() {
        for (text, expected) in [
            ("name = \"x\"\nmpa = \"y\"", "info.toml:2: unknown key \"mpa\"; did you mean \"map\"?"),
            (
                "\n\n[[team]]\nid = 1\nname = \"RED\"\ncolor = \"red\"",
                "info.toml:6: team.color: expected a colour such as \"#cc3333\", not \"red\"",
            ),
            (
                "[bloodmasters]\nmode = \"Chess\"",
                "info.toml:2: bloodmasters.mode: expected Deathmatch, Team Deathmatch, Capture The Flag, Scavenger, Team \
                 Scavenger, or a number from 0 to 255, not \"Chess\"",
            ),
            ("max_players = 70000", "info.toml:1: max_players: expected a number from 0 to 65535, not 70000"),
            ("max_players = \"24\"", "info.toml:1: max_players: expected a number from 0 to 65535, not \"24\""),
            ("name = 7", "info.toml:1: name: expected text in quotes, not 7"),
            ("tags = [\"a\",\n2]", "info.toml:2: tags: expected text in quotes, not 2"),
            ("password = \"no\"", "info.toml:1: password: expected true or false, not \"no\""),
            ("session = 3", "info.toml:1: session: expected the table [session], not 3"),
            ("player = 3", "info.toml:1: player: expected tables [[player]], not 3"),
            ("[player]\nname = \"x\"", "info.toml:1: player: expected tables [[player]], not a table"),
            ("[[player]]\nteam = 1", "info.toml:1: this [[player]] lacks name"),
            ("name = \"a\"\nname = \"b\"", "info.toml:2: name is defined twice; remove one of them"),
        ] {
            assert_eq!(parse("info.toml", text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(parse("info.toml", "name = ").unwrap_err().to_string().starts_with("info.toml:1: "));
    }

    #[test]
    fn all_errors_are_reported_at_once_in_the_order_of_their_lines() {
        let text =
            "nam = \"x\"\nplayers = -1\n[[player]]\nteam = \"RED\"\n[[team]]\nid = 300\nname = \"R\"\n[session]\nx = 1";
        let errors = parse("info.toml", text).unwrap_err().to_string();
        let lines: Vec<_> = errors.lines().map(|line| line.split(':').nth(1).unwrap()).collect();
        assert_eq!(lines, ["1", "2", "3", "4", "6", "9"], "{errors}");
    }
}
