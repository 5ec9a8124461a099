//! What games on DarkPlaces say beyond Quake 3: Xonotic, Nexuiz, Quake itself.
//!
//! Names of players use the font of Quake: as its bytes, or as characters from U+E000 on.

use crate::{Player, ServerInfo, Team};
use rallypoint_wire::{
    query::{
        Protocol, quake,
        quake3::{InfoString, PlayerLine, Status, strip_colours},
    },
    text,
};

/// Score of a player who only watches.
const SPECTATOR: i32 = -666;

/// The teams of Xonotic and Nexuiz by number, from 1 on.
const TEAMS: [(&str, [u8; 3]); 4] =
    [("Red", [255, 0, 0]), ("Blue", [0, 0, 255]), ("Yellow", [255, 255, 0]), ("Pink", [255, 0, 255])];

/// Modes by the short names of Xonotic and Nexuiz.
const MODES: [(&str, &str); 10] = [
    ("dm", "Deathmatch"),
    ("tdm", "Team Deathmatch"),
    ("ctf", "Capture The Flag"),
    ("ca", "Clan Arena"),
    ("duel", "Duel"),
    ("dom", "Domination"),
    ("ft", "Freeze Tag"),
    ("ka", "Keepaway"),
    ("kh", "Key Hunt"),
    ("lms", "Last Man Standing"),
];

/// Whether a server with these settings is one of DarkPlaces.
pub(super) fn is_engine_of(settings: &InfoString<'_>) -> bool {
    settings.get("modname").is_some() && settings.get("gameversion").is_some()
}

/// Replaces what DarkPlaces says differently.
pub(super) fn refine(server: &mut ServerInfo, settings: InfoString<'_>, status: Option<Status<'_>>) {
    server.name = settings.get("hostname").map(show).or_else(|| server.name.take());
    if let Some(state) = settings.get("qcstatus") {
        // MODE:VERSION:FIELD:FIELD...::SCORES, where the first letter of a field is its name.
        let state = show(state);
        let mut fields = state.split("::").next().unwrap_or_default().split(':');
        let mode = fields.next().filter(|mode| !mode.is_empty());
        let known = MODES.iter().find(|(short, _)| Some(*short) == mode).map(|(_, name)| *name);
        server.mode = known.or(mode).map(str::to_owned);
        server.version = fields.next().filter(|version| !version.is_empty()).map(str::to_owned);
    }
    if server.version.is_none() {
        server.version = settings.get("gameversion").filter(|version| !version.is_empty()).map(show);
    }
    let Some(status) = status else { return };
    let list: Vec<Player> = status.players().flatten().map(|line| player(&line)).collect();
    let count = |is_it: &dyn Fn(&Player) -> bool| list.iter().filter(|player| is_it(player)).count() as u16;
    let spectators = count(&|player| player.spectator);
    server.spectators = Some(spectators);
    let number = |key: &str| -> Option<u16> { str::from_utf8(settings.get(key)?).ok()?.trim().parse().ok() };
    server.bots = number("bots").or(server.bots);
    let clients = number("clients").unwrap_or(list.len() as u16);
    server.players = Some(clients.saturating_sub(server.bots.unwrap_or(0)).saturating_sub(spectators));
    let is_there = |id: &u8| list.iter().any(|player| player.team == Some(*id));
    server.teams = (1..=4).filter(is_there).map(team).collect();
    server.player_list = Some(list);
    let own = server.extensions.remove(&Protocol::Quake3).unwrap_or_default();
    let own = own.iter().map(|(name, value)| (name, value.clone()));
    let modification = ("mod", settings.get("modname").map(show).unwrap_or_default().into());
    server.extensions.insert(Protocol::Quake3, own.chain([modification]).collect());
}

fn team(id: u8) -> Team {
    let (name, color) = TEAMS[usize::from(id - 1) % TEAMS.len()];
    Team { id, name: name.to_owned(), ranked: false, color }
}

fn player(line: &PlayerLine<'_>) -> Player {
    let spectator = line.score == Some(SPECTATOR);
    Player {
        name: show(line.name),
        // 0 is no team.
        team: line.team.and_then(|team| team.try_into().ok()).filter(|team| (1..=4).contains(team)),
        score: line.score.filter(|_| !spectator),
        ping_ms: line.ping,
        spectator,
        ..Player::default()
    }
}

/// A text that is safe to display, without colour codes, in the font of Quake.
fn show(bytes: &[u8]) -> String {
    let plain = strip_colours(bytes);
    let Ok(decoded) = str::from_utf8(&plain) else { return quake::to_text(&plain) };
    let of_font = |c: char| match c {
        '\u{e000}'..='\u{e0ff}' => char::from(quake::to_ascii(&[c as u8])[0]),
        c => c,
    };
    text::sanitize(&decoded.chars().map(of_font).collect::<String>()).into_owned()
}
