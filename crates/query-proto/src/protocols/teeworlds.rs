//! Teeworlds 0.6: one query with a token of one byte, one datagram in reply with at most 16 clients.
//!
//! Servers that receive many queries leave out the clients for a while: such a reply is requested again.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        teeworlds::{self, Client, Info, Query, Response},
    },
    text,
};

/// The query protocol of Teeworlds 0.6.
pub(crate) struct Teeworlds;

/// The only request.
const INFO: Request = Request(0);

/// The best reply that has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    best: Option<Counts>,
}

/// Numbers of clients in a reply.
#[derive(Clone, Copy, Debug)]
struct Counts {
    on_server: u16,
    listed: u16,
}

impl QueryProtocol for Teeworlds {
    const MAX_DATAGRAM: usize = teeworlds::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let is_enough = |best: Counts| detail != Detail::Players || best.listed > 0 || best.on_server == 0;
        Requests::only_if(INFO, !progress.best.is_some_and(is_enough))
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        Query::Basic(token().0[0]).emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let Response::Basic(info) = Response::parse(datagram)? else { return Ok(Received::Foreign) };
        let Some(attempt) = context.attempt_with(|token| u32::from(token.0[0]) == info.token) else {
            return Ok(Received::WrongToken);
        };
        let listed = info.clients.iter().flatten().count() as u16;
        if progress.best.is_some_and(|best| best.listed >= listed) {
            return Ok(Received::Redundant);
        }
        progress.best = Some(Counts { on_server: info.client_count, listed });
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(_progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        // Each one is better than those before it.
        let Some(Ok(Response::Basic(info))) = raw.datagrams().last().map(Response::parse) else {
            return (ServerInfo::default(), Vec::new());
        };
        let (list, missing) = players(info.clients.iter(), info.client_count, detail);
        (server_info(&info, list, Protocol::Teeworlds), missing)
    }
}

/// The clients of a reply in order, and what is missing of them.
pub(super) fn players<'a>(
    clients: impl Iterator<Item = Result<Client<'a>, DecodeError>>,
    on_server: u16,
    detail: Detail,
) -> (Vec<Player>, Vec<MissingPart>) {
    let mut cut = None;
    let list: Vec<Player> =
        clients.filter_map(|client| client.map_err(|error| cut = Some(error)).ok()).map(player).collect();
    let mut missing: Vec<_> = cut.map(MissingPart::Truncated).into_iter().collect();
    let received = u16::try_from(list.len()).unwrap_or(u16::MAX);
    if received < on_server && detail == Detail::Players {
        missing.push(MissingPart::Players { received, expected: Some(on_server) });
    }
    (list, missing)
}

/// The common view of a reply.
pub(super) fn server_info(info: &Info<'_>, list: Vec<Player>, protocol: Protocol) -> ServerInfo {
    let extension = Extension::from([("clients", info.client_count.into()), ("max_clients", info.max_clients.into())]);
    ServerInfo {
        name: Some(show(info.name)),
        game: Some("teeworlds".into()),
        game_name: Some("Teeworlds".into()),
        mode: Some(show(info.game_type)),
        map: Some(show(info.map)),
        version: Some(show(info.version)),
        password: Some(info.flags & 1 != 0),
        players: Some(info.players),
        max_players: Some(info.max_players),
        spectators: Some(info.client_count - info.players),
        // Servers under load leave out all clients.
        player_list: (!list.is_empty() || info.client_count == 0).then_some(list),
        extensions: [(protocol, extension)].into(),
        ..ServerInfo::default()
    }
}

/// Points of a player without any in races, where points are seconds below zero.
const NO_SCORE: i32 = -9_999;

fn player(client: Client<'_>) -> Player {
    Player {
        name: show(client.name),
        score: Some(client.score).filter(|score| *score != NO_SCORE),
        spectator: !client.is_player,
        extension: clan_and_country(client.clan, client.country),
        ..Player::default()
    }
}

/// What only players of this engine have.
pub(super) fn clan_and_country(clan: &[u8], country: i32) -> Extension {
    let country = if country < 0 { ExtensionValue::Unknown } else { country.into() };
    Extension::from([("clan", show(clan).into()), ("country", country)])
}

/// A text that is safe to display, without the spaces around it, which the game does not show either.
pub(super) fn show(bytes: &[u8]) -> String {
    text::display(bytes).trim().to_owned()
}
