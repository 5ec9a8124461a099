//! GameSpy 2: the server, its players and its teams, with one query each, because a reply to all three may not fit.
//!
//! A reply repeats the number of its query, which cannot be guessed and of which two bits say what was asked: a reply without
//! it counts as forged.

#[cfg(test)]
mod tests;

use super::gamespy::{Description, MAX_NUMBER};
use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        gamespy2::{self, Reply, Table},
    },
};

/// The query protocol GameSpy 2.
pub(crate) struct GameSpy2;

const SERVER: Request = Request(0);
const PLAYERS: Request = Request(1);
const TEAMS: Request = Request(2);

/// Which replies have arrived, by request.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has: [bool; 3],
}

impl Progress {
    fn lacks(&self, request: Request) -> Requests {
        Requests::only_if(request, !self.has[usize::from(request.0)])
    }
}

/// The bits of a number that say what was asked.
const REQUEST_BITS: u8 = 3;

/// The number of a query.
fn number(token: Token, request: Request) -> [u8; 4] {
    let [a, b, c, d] = token.short();
    [a, b, c, d & !REQUEST_BITS | request.0]
}

/// What was asked with this number.
fn request_of(number: [u8; 4]) -> Request {
    Request(number[3] & REQUEST_BITS)
}

impl QueryProtocol for GameSpy2 {
    const MAX_DATAGRAM: usize = gamespy2::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        match detail {
            Detail::Presence if progress.has.contains(&true) => Requests::NONE,
            Detail::Presence | Detail::Info => progress.lacks(SERVER),
            Detail::Players => progress.lacks(SERVER).with(progress.lacks(PLAYERS)).with(progress.lacks(TEAMS)),
        }
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let kind = match request {
            PLAYERS => gamespy2::Request::Players,
            TEAMS => gamespy2::Request::Teams,
            _ => gamespy2::Request::Server,
        };
        kind.emit(number(token(), request), out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let reply = Reply::parse(datagram)?;
        let request = request_of(reply.number);
        let attempt = context.attempt_with(|token| number(token, request) == reply.number);
        let (Some(attempt), Some(has_arrived)) = (attempt, progress.has.get_mut(usize::from(request.0))) else {
            return Ok(Received::WrongToken);
        };
        if request == SERVER {
            reply.keys()?;
        } else {
            reply.table()?;
        }
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut description = Description::default();
        let mut missing = Vec::new();
        let mut expected = None;
        for reply in raw.datagrams().flat_map(Reply::parse) {
            match request_of(reply.number) {
                SERVER => {
                    let Ok(keys) = reply.keys() else { continue };
                    if !keys.is_complete {
                        let error = DecodeError { field: "keys", kind: DecodeErrorKind::Truncated };
                        missing.push(MissingPart::Truncated(error));
                    }
                    description
                        .server
                        .extend(keys.pairs.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value)));
                }
                request => {
                    let Ok(table) = reply.table() else { continue };
                    if request == PLAYERS {
                        expected = table.count;
                        add_players(&table, &mut description);
                    } else {
                        let rows = add_teams(&table, &mut description);
                        let is_cut = table.count.is_some_and(|count| usize::from(count) > rows);
                        missing.extend(is_cut.then_some(MissingPart::Part("teams")));
                    }
                }
            }
        }
        let names = ["server", "players", "teams"].into_iter().enumerate();
        let outstanding = Self::outstanding(progress, detail);
        let lacks = |index: usize| outstanding.with(Requests::of(Request(index as u8))) == outstanding;
        missing.extend(names.filter(|(index, _)| lacks(*index)).map(|(_, name)| MissingPart::Part(name)));
        let has_players = progress.has[usize::from(PLAYERS.0)];
        let received = description.players.len() as u16;
        let mut info = description.server_info(Protocol::GameSpy2, has_players);
        let expected = expected.max(info.players);
        if !has_players {
            info.player_list = None;
        } else if expected.is_some_and(|expected| expected > received) {
            missing.push(MissingPart::Players { received, expected });
        }
        (info, missing)
    }
}

/// The name of a column without the mark of players, `_`, or of teams, `_t`.
fn plain(column: &[u8]) -> Vec<u8> {
    let column = column.to_ascii_lowercase();
    let plain = column.strip_suffix(b"_t").or_else(|| column.strip_suffix(b"_")).unwrap_or(&column);
    if plain == b"name" { b"player".to_vec() } else { plain.to_vec() }
}

fn add_players<'a>(table: &Table<'a>, description: &mut Description<'a>) {
    let columns: Vec<_> = table.columns.iter().map(|column| plain(column)).collect();
    for (number, row) in (0..=MAX_NUMBER).zip(table.rows()) {
        description.players.insert(number, columns.iter().cloned().zip(row).collect());
    }
}

/// Adds the names of the teams. What else is known of them becomes rules, with their numbers. Returns the number of rows.
fn add_teams<'a>(table: &Table<'a>, description: &mut Description<'a>) -> usize {
    for (number, row) in (0..=u16::from(u8::MAX)).zip(table.rows()) {
        for (column, value) in table.columns.iter().zip(row) {
            if plain(column) == b"team" {
                description.teams.insert(number, value);
            } else {
                let key = [&column.to_ascii_lowercase()[..], number.to_string().as_bytes()].concat();
                description.server.insert(key, value);
            }
        }
    }
    table.rows().count()
}
