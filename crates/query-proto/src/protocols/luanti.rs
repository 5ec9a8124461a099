//! Luanti (Minetest): a connection that is ended as soon as the server has given the client a number. It shows that the server is
//! there, and nothing else, because the protocol has no query.
//!
//! The disconnect has no reply. It is sent twice, because a server that does not receive it sends hundreds of datagrams.

#[cfg(test)]
mod tests;

use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail,
        luanti::{self, Peer, Query, Response},
    },
};

/// The query protocol of Luanti.
pub(crate) struct Luanti;

const HELLO: Request = Request(0);
const DISCONNECT: Request = Request(1);
const DISCONNECT_AGAIN: Request = Request(2);

/// How far the connection is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    peer: Option<Peer>,
    has_disconnected: bool,
    has_disconnected_again: bool,
}

impl QueryProtocol for Luanti {
    const MAX_DATAGRAM: usize = luanti::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        match progress.peer {
            None => Requests::of(HELLO),
            Some(_) => Requests::only_if(DISCONNECT, !progress.has_disconnected)
                .with(Requests::only_if(DISCONNECT_AGAIN, !progress.has_disconnected_again)),
        }
    }

    fn emit(progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let query = match progress {
            Some(progress @ Progress { peer: Some(_), .. }) => {
                progress.has_disconnected = true;
                progress.has_disconnected_again |= request == DISCONNECT_AGAIN;
                progress.peer.map_or(Query::Hello, Query::Disconnect)
            }
            _ => Query::Hello,
        };
        query.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let peer = Response::parse(datagram)?.peer;
        if progress.peer.is_some() {
            return Ok(Received::Redundant);
        }
        progress.peer = Some(peer);
        Ok(Received::accepted(Requests::of(DISCONNECT).with(Requests::of(DISCONNECT_AGAIN))))
    }

    fn is_query(quoted: &[u8]) -> bool {
        Query::is_hello(quoted)
    }

    fn finish(_progress: &Progress, _detail: Detail, _raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let info =
            ServerInfo { game: Some("luanti".into()), game_name: Some("Luanti".into()), ..ServerInfo::default() };
        (info, Vec::new())
    }
}
