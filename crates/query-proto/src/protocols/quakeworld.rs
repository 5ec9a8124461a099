//! QuakeWorld, and HexenWorld on its engine: `status`, which has all settings and the players.
//!
//! No value of a query is repeated in the reply, so that anyone who can forge the address of a server can forge its reply. A
//! reply that fills the buffer of the server's console goes on in a second datagram.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol, quake,
        quake3::InfoString,
        quakeworld::{self, PlayerLine, Status},
    },
};

/// The query protocol of QuakeWorld.
pub(crate) struct QuakeWorld;

const STATUS: Request = Request(0);
/// The request of a client of HexenWorld.
const HEXENWORLD_STATUS: Request = Request(1);

/// Which parts of the reply have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_status: bool,
    /// Whether another datagram with players is expected.
    is_continued: bool,
    /// Number of datagrams that continue the first one.
    continuations: u8,
}

/// Maximum number of datagrams with players only: 255 players fit into three.
const MAX_CONTINUATIONS: u8 = 3;

impl QueryProtocol for QuakeWorld {
    const MAX_DATAGRAM: usize = quakeworld::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    const FALLBACK: Requests = Requests::of(HEXENWORLD_STATUS);

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let needs_more = progress.is_continued && detail == Detail::Players;
        Requests::only_if(STATUS, !progress.has_status || needs_more)
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        if request == HEXENWORLD_STATUS {
            quakeworld::emit_hexenworld_query(out);
        } else {
            quakeworld::emit_query(out);
        }
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let status = Status::parse(datagram)?;
        let is_first = status.settings.is_some();
        let is_expected = if is_first { !progress.has_status } else { progress.is_continued };
        if !is_expected {
            return Ok(Received::Redundant);
        }
        progress.has_status = true;
        progress.continuations += u8::from(!is_first);
        let may_continue = datagram.len() >= quakeworld::MAY_BE_CONTINUED;
        progress.is_continued = may_continue && progress.continuations < MAX_CONTINUATIONS;
        Ok(Received::accepted(Requests::NONE))
    }

    fn is_query(quoted: &[u8]) -> bool {
        quakeworld::is_query(quoted)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut is_hexenworld = false;
        let mut settings = None;
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        for status in raw.datagrams().flat_map(Status::parse) {
            is_hexenworld |= status.is_hexenworld;
            settings = settings.or(status.settings);
            for line in status.players() {
                match line {
                    Ok(line) => lines.push(line),
                    Err(error) if error.kind == DecodeErrorKind::Truncated => {
                        missing.push(MissingPart::Truncated(error));
                    }
                    Err(_) => {}
                }
            }
        }
        if progress.is_continued && detail == Detail::Players {
            missing.push(MissingPart::Part("status (more players)"));
        }
        let mut info = settings.map_or_else(ServerInfo::default, |settings| server_info(settings, &lines));
        if is_hexenworld {
            info.game = Some("hw".into());
            info.game_name = Some("HexenWorld".into());
        }
        (info, missing)
    }
}

/// A text that is safe to display, without the colour codes of clients: `&c` with three digits, and `&r`. Those with `^` are of
/// clients of FTE.
fn show(bytes: &[u8]) -> String {
    let text = quake::to_text_without_colours(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('&') {
        shown.push_str(&rest[..at]);
        let code = &rest[at..];
        let is_colour = |code: &str| code.starts_with("&c") && code[2..].bytes().all(|digit| digit.is_ascii_hexdigit());
        let length = match code.get(..5) {
            Some(colour) if is_colour(colour) => 5,
            _ if code.starts_with("&r") => 2,
            _ => {
                shown.push('&');
                rest = &code[1..];
                continue;
            }
        };
        rest = &code[length..];
    }
    shown.push_str(rest);
    shown
}

fn server_info(settings: InfoString<'_>, lines: &[PlayerLine<'_>]) -> ServerInfo {
    let text = |key: &str| settings.get(key).filter(|value| !value.is_empty()).map(show);
    let number = |key: &str| -> Option<u16> { str::from_utf8(settings.get(key)?).ok()?.trim().parse().ok() };
    let is_team_game = number("teamplay").is_some_and(|teamplay| teamplay > 0);
    let version = text("*version");
    // Only servers that know the flags of the query list spectators and say who is a bot.
    let knows_flags = lines.iter().any(|line| line.team.is_some())
        || version.as_deref().is_some_and(|version| version.starts_with("MVDSV"));
    let knows_bots = lines.iter().any(|line| line.is_bot.is_some());
    let count = |is_it: &dyn Fn(&PlayerLine<'_>) -> bool| lines.iter().filter(|line| is_it(line)).count() as u16;
    let mut teams = Vec::new();
    let list = lines.iter().map(|line| player(line, is_team_game, &mut teams)).collect();
    ServerInfo {
        name: text("hostname"),
        game: Some(text("*gamedir").or_else(|| text("*game")).unwrap_or_else(|| "qw".into())),
        game_name: Some("QuakeWorld".into()),
        mode: text("mode"),
        map: text("map"),
        version,
        // The second bit is for spectators.
        password: number("needpass").map(|needpass| needpass & 1 != 0),
        players: Some(count(&|line| !line.is_spectator && line.is_bot != Some(true))),
        max_players: number("maxclients"),
        bots: knows_bots.then(|| count(&|line| !line.is_spectator && line.is_bot == Some(true))),
        spectators: knows_flags.then(|| count(&|line| line.is_spectator)),
        teams,
        player_list: Some(list),
        rules: settings.iter().map(|(key, value)| (show(key), show(value))).collect(),
        extensions: [(Protocol::QuakeWorld, extension(number("maxspectators"), text("status")))].into(),
        ..ServerInfo::default()
    }
}

fn extension(max_spectators: Option<u16>, status: Option<String>) -> Extension {
    Extension::from([
        ("max_spectators", max_spectators.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ("status", status.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
    ])
}

/// A player. In games with teams, these have names, and are numbered in the order of their first players.
fn player(line: &PlayerLine<'_>, is_team_game: bool, teams: &mut Vec<Team>) -> Player {
    let name = line.team.filter(|name| is_team_game && !line.is_spectator && !name.is_empty()).map(show);
    let team = name.and_then(|name| {
        let known = teams.iter().find(|team| team.name == name).map(|team| team.id);
        known.or_else(|| {
            let id = u8::try_from(teams.len()).ok()?;
            teams.push(Team { id, name, ranked: false, color: quake::colour(line.bottom).1 });
            Some(id)
        })
    });
    Player {
        name: show(line.name),
        team,
        score: line.frags,
        duration_s: u32::try_from(line.minutes).ok().map(|minutes| minutes.saturating_mul(60)),
        ping_ms: Some(line.ping),
        spectator: line.is_spectator,
        extension: Some(line.skin)
            .filter(|skin| !skin.is_empty())
            .map(|skin| ("skin", show(skin).into()))
            .into_iter()
            .collect(),
        ..Player::default()
    }
}
