//! The All-Seeing Eye: one query, one datagram with everything.
//!
//! A reply repeats nothing of its query. Servers of Multi Theft Auto answer five queries in six seconds.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        ase::{self, Status},
    },
};

/// The query protocol of The All-Seeing Eye.
pub(crate) struct Ase;

const STATUS: Request = Request(0);

/// Maximum number of teams that are distinguished: their numbers have to fit.
const MAX_TEAMS: usize = 64;

/// Whether the reply has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_status: bool,
}

impl QueryProtocol for Ase {
    const MAX_DATAGRAM: usize = ase::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests::only_if(STATUS, !progress.has_status)
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        out.extend_from_slice(ase::QUERY);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        Status::parse(datagram)?;
        if std::mem::replace(&mut progress.has_status, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::accepted(Requests::NONE))
    }

    fn is_query(quoted: &[u8]) -> bool {
        quoted == ase::QUERY
    }

    fn finish(_progress: &Progress, _detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let Some(status) = raw.datagrams().find_map(|datagram| Status::parse(datagram).ok()) else {
            return (ServerInfo::default(), vec![MissingPart::Part("the status")]);
        };
        let cut = status.rules().find_map(Result::err).or_else(|| status.list().find_map(Result::err));
        (server_info(&status), cut.map(MissingPart::Truncated).into_iter().collect())
    }
}

fn server_info(status: &Status<'_>) -> ServerInfo {
    let show = |text: &[u8]| ase::display(text, status.game).into_owned();
    let known = |text: &[u8]| (!text.is_empty()).then(|| show(text));
    let mut teams = Vec::new();
    let list: Vec<Player> = status.list().flatten().map(|player| of_player(&player, &show, &mut teams)).collect();
    let port = status.port.map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let mut rules = std::collections::BTreeMap::new();
    for (name, value) in status.rules().flatten() {
        rules.entry(show(name)).or_insert_with(|| show(value));
    }
    ServerInfo {
        name: Some(show(status.name)),
        game: known(status.game),
        mode: known(status.mode),
        map: known(status.map),
        version: known(status.version),
        password: Some(status.password),
        players: status.players.or_else(|| u16::try_from(list.len()).ok()),
        max_players: status.max_players,
        teams,
        player_list: Some(list),
        rules,
        extensions: [(Protocol::Ase, Extension::from([("port", port)]))].into(),
        ..ServerInfo::default()
    }
}

fn of_player(player: &ase::Player<'_>, show: &impl Fn(&[u8]) -> String, teams: &mut Vec<Team>) -> Player {
    let score = ase::number(player.score);
    let duration_s = seconds(player.time);
    let mut fields: Vec<(&'static str, ExtensionValue)> = Vec::new();
    for (name, text, is_mapped) in [
        ("skin", player.skin, false),
        ("score", player.score, score.is_some()),
        ("time", player.time, duration_s.is_some()),
    ] {
        if !text.is_empty() && !is_mapped {
            fields.push((name, show(text).into()));
        }
    }
    Player {
        name: show(player.name),
        team: team(show(player.team), teams),
        score,
        ping_ms: ase::number(player.ping),
        duration_s,
        spectator: player.team.eq_ignore_ascii_case(b"spectators"),
        extension: fields.into_iter().collect(),
        ..Player::default()
    }
}

/// The number of a team, which is known by its name only.
fn team(name: String, teams: &mut Vec<Team>) -> Option<u8> {
    if name.is_empty() {
        return None;
    }
    if let Some(known) = teams.iter().find(|team| team.name == name) {
        return Some(known.id);
    }
    let id = u8::try_from(teams.len()).ok().filter(|_| teams.len() < MAX_TEAMS)?;
    teams.push(Team { id, name, ..Team::default() });
    Some(id)
}

/// A time with its unit: "8m".
fn seconds(text: &[u8]) -> Option<u32> {
    let (unit, digits) = text.split_last()?;
    let factor = match unit {
        b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        _ => return None,
    };
    ase::number::<u32>(digits)?.checked_mul(factor)
}
