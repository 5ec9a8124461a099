//! Teeworlds 0.7: an exchange of tokens, one query, one datagram in reply.
//!
//! A reply repeats the client's token and a number of the query, which are both parts of the probe's token.

#[cfg(test)]
mod tests;

use super::teeworlds::{clan_and_country, show};
use crate::{
    Extension, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        teeworlds7::{self, Client, Info, Query, Response},
    },
};

/// The query protocol of Teeworlds 0.7.
pub(crate) struct Teeworlds7;

const TOKEN: Request = Request(0);
const INFO: Request = Request(1);

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The token of the server.
    token: Option<teeworlds7::Token>,
    /// Number of clients listed in the reply, and on the server.
    reply: Option<(u16, u16)>,
}

impl QueryProtocol for Teeworlds7 {
    const MAX_DATAGRAM: usize = teeworlds7::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        if detail == Detail::Presence && progress.token.is_some() {
            return Requests::NONE;
        }
        // Servers of DDNet leave out all clients while they receive many queries.
        let is_enough = |(listed, on_server)| detail != Detail::Players || listed > 0 || on_server == 0;
        let is_done = progress.reply.is_some_and(is_enough);
        Requests::only_if(if progress.token.is_some() { INFO } else { TOKEN }, !is_done)
    }

    fn emit(progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let token = token();
        let client = client(token);
        match progress.and_then(|progress| progress.token) {
            Some(server) => Query::Info { server, client, number: number(token) },
            None => Query::Token { client },
        }
        .emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        match Response::parse(datagram)? {
            Response::Token { client: repeated, server } => {
                let Some(attempt) = context.attempt_with(|token| client(token) == repeated) else {
                    return Ok(Received::WrongToken);
                };
                if progress.token.is_some() {
                    return Ok(Received::Redundant);
                }
                progress.token = Some(server);
                let next = Requests::of(INFO);
                let is_transient = detail != Detail::Presence;
                Ok(Received::Accepted(Accepted { attempt: Some(attempt), next, is_transient }))
            }
            Response::Info(info) => {
                let is_it = |token| client(token) == info.client && number(token) == info.number;
                if context.attempt_with(is_it).is_none() {
                    return Ok(Received::WrongToken);
                }
                let listed = info.clients().flatten().count() as u16;
                if progress.reply.is_some_and(|(best, _)| best >= listed) {
                    return Ok(Received::Redundant);
                }
                progress.reply = Some((listed, info.client_count));
                // The query was sent when the token of the server arrived, later than the attempt began: no attempt is named.
                Ok(Received::Accepted(Accepted::default()))
            }
        }
    }

    fn finish(_progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        // Each reply is better than those before it.
        let replies = raw.datagrams().flat_map(Response::parse);
        let info = replies.filter_map(|reply| if let Response::Info(info) = reply { Some(info) } else { None }).last();
        let Some(info) = info else {
            let missing = if detail == Detail::Presence { Vec::new() } else { vec![MissingPart::Part("inf3 (info)")] };
            return (ServerInfo::default(), missing);
        };
        let mut missing = Vec::new();
        let mut list = Vec::new();
        for client in info.clients() {
            match client {
                Ok(client) => list.push(client),
                Err(error) => missing.push(MissingPart::Truncated(error)),
            }
        }
        let received = u16::try_from(list.len()).unwrap_or(u16::MAX);
        if received < info.client_count && detail == Detail::Players {
            missing.push(MissingPart::Players { received, expected: Some(info.client_count) });
        }
        (server_info(&info, &list), missing)
    }
}

/// The token of the client: not the value that stands for none.
fn client(token: Token) -> teeworlds7::Token {
    let [a, b, c, d] = token.short();
    teeworlds7::Token([a & 0x7f, b, c, d])
}

/// The number of the query: the other half of the token.
fn number(token: Token) -> i32 {
    let [_, _, _, _, a, b, c, d] = token.0;
    i32::from_be_bytes([a, b, c, d])
}

fn server_info(info: &Info<'_>, list: &[Client<'_>]) -> ServerInfo {
    let is_race = info.flags & 2 != 0;
    let bots = list.iter().filter(|client| client.is_bot && !client.is_spectator).count() as u16;
    let is_listed = !list.is_empty() || info.client_count == 0;
    let extension = Extension::from([
        ("hostname", show(info.hostname).into()),
        ("skill_level", info.level.into()),
        ("clients", info.client_count.into()),
        ("max_clients", info.max_clients.into()),
        ("score_is_time", is_race.into()),
    ]);
    ServerInfo {
        name: Some(show(info.name)),
        game: Some("teeworlds".into()),
        game_name: Some("Teeworlds".into()),
        mode: Some(show(info.game_type)),
        map: Some(show(info.map)),
        version: Some(show(info.version)),
        password: Some(info.flags & 1 != 0),
        players: Some(info.players.saturating_sub(bots)),
        max_players: Some(info.max_players),
        bots: is_listed.then_some(bots),
        spectators: Some(info.client_count - info.players),
        player_list: is_listed.then(|| list.iter().map(|client| player(client, is_race)).collect()),
        extensions: [(Protocol::Teeworlds7, extension)].into(),
        ..ServerInfo::default()
    }
}

fn player(client: &Client<'_>, is_race: bool) -> Player {
    Player {
        name: show(client.name),
        // A negative time is none.
        score: Some(client.score).filter(|score| !is_race || *score >= 0),
        spectator: client.is_spectator,
        extension: clan_and_country(client.clan, client.country),
        ..Player::default()
    }
}
