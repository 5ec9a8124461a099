//! The extended query of DDNet: one query with a token of three bytes, one datagram in reply with the description and clients,
//! and more with further clients. Servers without it answer like Teeworlds 0.6, which has a part of the token.
//!
//! No datagram says how many there are: a reply is complete when all clients that are counted in the first one are listed. The
//! clients of different attempts are not mixed, because the server may have divided them in another way.

#[cfg(test)]
mod tests;

use super::teeworlds::{players, server_info};
use crate::{
    Extension, MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        teeworlds::{self, Query, Response},
    },
};

/// The query protocol of DDNet.
pub(crate) struct Ddnet;

/// The only request.
const INFO: Request = Request(0);

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// One reply for each attempt that was answered, and for each that was also answered without extension.
    replies: Vec<Reply>,
}

/// What has arrived in reply to one attempt.
#[derive(Debug)]
struct Reply {
    token: u32,
    is_extended: bool,
    /// Number of clients on the server, if the first datagram has arrived.
    on_server: Option<u16>,
    /// Number of clients received.
    listed: u16,
    /// The parts that have arrived, as bits.
    parts: u64,
}

impl Reply {
    fn is_enough(&self, detail: Detail) -> bool {
        let is_listed = |on_server| match self.is_extended {
            true => self.listed >= on_server,
            // One datagram, which may leave out clients.
            false => self.listed > 0 || on_server == 0,
        };
        match detail {
            Detail::Presence => true,
            Detail::Info => self.on_server.is_some(),
            Detail::Players => self.on_server.is_some_and(is_listed),
        }
    }
}

impl QueryProtocol for Ddnet {
    const MAX_DATAGRAM: usize = teeworlds::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        Requests::only_if(INFO, !progress.replies.iter().any(|reply| reply.is_enough(detail)))
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        Query::Extended(number(token())).emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        let token = response.token();
        let is_extended = !matches!(response, Response::Basic(_));
        let mask = if is_extended { u32::MAX } else { 0xff };
        let Some(attempt) = context.attempt_with(|sent| number(sent) & mask == token) else {
            return Ok(Received::WrongToken);
        };
        let index = progress.replies.iter().position(|reply| reply.token == token && reply.is_extended == is_extended);
        let index = index.unwrap_or_else(|| {
            progress.replies.push(Reply { token, is_extended, on_server: None, listed: 0, parts: 0 });
            progress.replies.len() - 1
        });
        let reply = &mut progress.replies[index];
        let (part, on_server) = part(&response);
        if reply.parts & 1 << part != 0 {
            return Ok(Received::Redundant);
        }
        reply.parts |= 1 << part;
        reply.on_server = reply.on_server.or(on_server);
        let listed = response.clients().iter().flatten().count() as u16;
        reply.listed = reply.listed.saturating_add(listed);
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let best =
            progress.replies.iter().max_by_key(|reply| (reply.on_server.is_some(), reply.listed, reply.is_extended));
        let mut parts: Vec<Response<'_>> = raw.datagrams().flat_map(Response::parse).collect();
        parts.retain(|response| {
            let is_extended = !matches!(response, Response::Basic(_));
            best.is_some_and(|best| response.token() == best.token && is_extended == best.is_extended)
        });
        parts.sort_by_key(|response| part(response).0);
        let (Some(Response::Basic(info) | Response::Extended(info)), Some(best)) = (parts.first(), best) else {
            let missing = if detail == Detail::Presence { Vec::new() } else { vec![MissingPart::Part("iext (info)")] };
            return (ServerInfo::default(), missing);
        };
        let clients = parts.iter().flat_map(|response| response.clients().iter());
        let (list, missing) = players(clients, best.on_server.unwrap_or(0), detail);
        let mut described = server_info(info, list, Protocol::Ddnet);
        if let Some((crc, size)) = info.map_file {
            described.game = Some("ddnet".into());
            described.game_name = Some("DDNet".into());
            let own = Extension::from([
                ("clients", info.client_count.into()),
                ("max_clients", info.max_clients.into()),
                ("map_crc", crc.cast_unsigned().into()),
                ("map_size", size.into()),
            ]);
            described.extensions.insert(Protocol::Ddnet, own);
        }
        (described, missing)
    }
}

/// The number of a datagram in its reply, and the number of clients on the server if it has that.
fn part(response: &Response<'_>) -> (u8, Option<u16>) {
    match response {
        Response::Basic(info) | Response::Extended(info) => (0, Some(info.client_count)),
        Response::More(more) => (more.part, None),
    }
}

/// The token as a number of three bytes.
fn number(token: Token) -> u32 {
    let [a, b, c, _] = token.short();
    u32::from_be_bytes([0, a, b, c])
}
