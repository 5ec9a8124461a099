//! GameSpy 1: `status`, whose reply consists of one or more datagrams.
//!
//! Each reply has a number, so that the datagrams of two of them, to a query and its retry, are not mixed. No value of a query is
//! repeated in the reply, so that anyone who can forge the address of a server can forge its reply.

#[cfg(test)]
mod tests;

use super::gamespy::{Description, Fields, MAX_NUMBER};
use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        gamespy1::{self, Index, Packet, split_index},
    },
};
use std::collections::BTreeSet;

/// The query protocol GameSpy 1.
pub(crate) struct GameSpy1;

/// The only request.
const STATUS: Request = Request(0);

/// The replies of which datagrams have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    replies: Vec<Reply>,
    /// Hashes of datagrams without a number.
    unnumbered: Vec<u64>,
}

/// Which datagrams of a reply have arrived.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reply {
    query: Option<u32>,
    /// One bit for each datagram, by number.
    parts: u64,
    /// Number of the last datagram.
    last: Option<u8>,
}

/// Maximum number of replies: one for each attempt.
const MAX_REPLIES: usize = 16;

impl Reply {
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| {
            // Numbers begin with 1; some servers begin with 0.
            let all = u64::MAX >> (63 - last) & !1;
            self.parts & all == all && self.parts != 0
        })
    }

    /// Notes a datagram. False if it has been noted before.
    fn accept(&mut self, packet: &Packet<'_>) -> bool {
        let next = (u64::BITS - self.parts.leading_zeros()).max(1) as u8;
        let part = packet.part.unwrap_or(next).min(gamespy1::MAX_PARTS);
        let bit = 1 << part;
        let is_new = self.parts & bit == 0;
        self.parts |= bit;
        if packet.is_final {
            self.last = self.last.or(Some(part));
        }
        is_new
    }
}

impl Progress {
    fn accept(&mut self, packet: &Packet<'_>, hash: u64) -> bool {
        if packet.part.is_none() {
            // Only a copy can be recognised.
            if self.unnumbered.contains(&hash) || self.unnumbered.len() >= gamespy1::MAX_PARTS.into() {
                return false;
            }
            self.unnumbered.push(hash);
        }
        let known = self.replies.iter().position(|reply| reply.query == packet.query);
        let index = match known {
            Some(index) => index,
            None if self.replies.len() < MAX_REPLIES => {
                self.replies.push(Reply { query: packet.query, ..Reply::default() });
                self.replies.len() - 1
            }
            None => return false,
        };
        self.replies[index].accept(packet)
    }

    /// Whether a reply is complete. Beside one with a number, a datagram without one does not count.
    fn is_complete(&self, reply: &Reply) -> bool {
        reply.is_complete() && (reply.query.is_some() || self.replies.len() == 1)
    }

    /// The reply that is complete, or of which the most has arrived.
    fn best(&self) -> Option<&Reply> {
        self.replies.iter().max_by_key(|reply| (self.is_complete(reply), reply.parts.count_ones()))
    }
}

impl QueryProtocol for GameSpy1 {
    const MAX_DATAGRAM: usize = gamespy1::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let is_there = detail == Detail::Presence && !progress.replies.is_empty();
        Requests::only_if(STATUS, !is_there && !progress.replies.iter().any(|reply| progress.is_complete(reply)))
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        gamespy1::emit_query(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let packet = Packet::parse(datagram)?;
        Ok(match progress.accept(&packet, context.hash(datagram)) {
            true => Received::accepted(Requests::NONE),
            false => Received::Redundant,
        })
    }

    fn is_query(quoted: &[u8]) -> bool {
        gamespy1::is_query(quoted)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let Some(best) = progress.best() else { return Default::default() };
        let mut packets: Vec<_> =
            raw.datagrams().flat_map(Packet::parse).filter(|packet| packet.query == best.query).collect();
        // Parts without numbers stay in the order of their arrival.
        packets.sort_by_key(|packet| packet.part);
        let is_complete = progress.is_complete(best);
        let description = sort(packets.iter().flat_map(Packet::iter));
        let info = description.server_info(Protocol::GameSpy1, is_complete);
        let mut missing = Vec::new();
        if detail != Detail::Presence && !is_complete {
            missing.push(MissingPart::Part("status (datagrams)"));
        }
        let received = info.player_list.as_ref().map_or(0, Vec::len) as u16;
        if let Some(expected) = info.players.filter(|players| *players > received && detail == Detail::Players) {
            missing.push(MissingPart::Players { received, expected: Some(expected) });
        }
        (info, missing)
    }
}

/// Sorts the keys of a reply into the server, its players and its teams: those with the number of a player that has a name belong
/// to the player.
fn sort<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Description<'a> {
    let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_ascii_lowercase(), value)).collect();
    let is_name = |name: &[u8]| name == b"player" || name == b"playername";
    let numbers: BTreeSet<u16> = pairs
        .iter()
        .filter_map(|(key, _)| match split_index(key)? {
            (name, Index::Player(number)) if is_name(name) && number <= MAX_NUMBER => Some(number),
            _ => None,
        })
        .collect();
    let mut sorted = Description::default();
    for (key, value) in pairs {
        match split_index(&key) {
            Some((b"teamname", Index::Player(number)) | (b"team", Index::Team(number))) => {
                sorted.teams.entry(number).or_insert(value);
            }
            Some((name, Index::Player(number))) if numbers.contains(&number) => {
                let name = if is_name(name) { b"player".to_vec() } else { name.to_vec() };
                sorted.players.entry(number).or_default().entry(name).or_insert(value);
            }
            _ => drop(sorted.server.entry(key).or_insert(value)),
        }
    }
    remove_cut_player(&mut sorted);
    sorted
}

/// Removes the last player if its description was cut off: it has a name, and nothing that the others have.
fn remove_cut_player(sorted: &mut Description<'_>) {
    let has_more = |fields: &Fields<'_>| fields.len() > 1;
    let all_but_last = sorted.players.len().saturating_sub(1);
    let is_last_cut = sorted.players.values().last().is_some_and(|last| !has_more(last));
    if all_but_last > 0 && is_last_cut && sorted.players.values().take(all_but_last).all(has_more) {
        sorted.players.pop_last();
    }
}
