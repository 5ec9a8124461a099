//! GameSpy 3: a challenge, then everything in one or more datagrams.
//!
//! A server that does not use challenges says so, or does not answer the query for one at all: then it is asked without. Replies
//! repeat the number of their query, which cannot be guessed: one without it counts as forged. It also keeps the datagrams of
//! two replies, to a query and its retry, apart. A challenge is good for one query, so that a retry begins with another one.

#[cfg(test)]
mod tests;
mod unreal;

use super::gamespy::{Description, MAX_NUMBER};
use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Attempt, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        gamespy3::{self, Item, Part, Response},
    },
};

/// The query protocol GameSpy 3.
pub(crate) struct GameSpy3;

const CHALLENGE: Request = Request(0);
/// With the challenge that has arrived.
const EVERYTHING: Request = Request(1);
const WITHOUT_CHALLENGE: Request = Request(2);

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// One bit for each attempt whose challenge has arrived.
    challenged: u16,
    challenge: Option<[u8; 4]>,
    /// Whether the server does not use challenges.
    uses_none: bool,
    replies: Vec<Reply>,
}

/// Which parts of a reply have arrived.
#[derive(Debug)]
struct Reply {
    number: [u8; 4],
    /// One bit for each part.
    parts: u128,
    /// Index of the last part.
    last: Option<u8>,
}

impl Reply {
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.parts == u128::MAX >> (127 - last))
    }

    fn has(&self, index: u8) -> bool {
        index < 128 && self.parts & 1 << index != 0
    }
}

/// Maximum number of replies: one for each attempt.
const MAX_REPLIES: usize = 16;

impl Progress {
    fn has_any(&self) -> bool {
        self.challenged != 0 || !self.replies.is_empty()
    }

    fn accept_challenge(&mut self, Attempt(attempt): Attempt, challenge: Option<[u8; 4]>) -> Received {
        let bit = 1_u16.checked_shl(attempt.into()).unwrap_or(0);
        if bit == 0 || self.challenged & bit != 0 {
            return Received::Redundant;
        }
        self.challenged |= bit;
        self.challenge = challenge;
        self.uses_none = challenge.is_none();
        let next = Requests::of(if self.uses_none { WITHOUT_CHALLENGE } else { EVERYTHING });
        Received::Accepted(Accepted { attempt: Some(Attempt(attempt)), next, is_transient: true })
    }

    fn accept_part(&mut self, attempt: Attempt, part: &Part<'_>) -> Received {
        self.uses_none |= self.challenged == 0;
        let known = self.replies.iter_mut().position(|reply| reply.number == part.number);
        let index = match known {
            Some(index) => index,
            None if self.replies.len() < MAX_REPLIES => {
                self.replies.push(Reply { number: part.number, parts: 0, last: None });
                self.replies.len() - 1
            }
            None => return Received::Redundant,
        };
        let reply = &mut self.replies[index];
        // Nothing follows the last part.
        let is_beyond = reply.last.is_some_and(|last| part.index > last);
        let is_second_end = part.is_last && reply.parts >> part.index != 0;
        if reply.has(part.index) || is_beyond || is_second_end {
            return Received::Redundant;
        }
        reply.parts |= 1 << part.index;
        if part.is_last {
            reply.last = Some(part.index);
        }
        Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() })
    }

    /// The reply that is complete, or of which the most has arrived.
    fn best(&self) -> Option<&Reply> {
        self.replies.iter().max_by_key(|reply| (reply.is_complete(), reply.parts.count_ones()))
    }
}

impl QueryProtocol for GameSpy3 {
    const MAX_DATAGRAM: usize = gamespy3::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;
    const FALLBACK: Requests = Requests::of(WITHOUT_CHALLENGE);

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let is_there = detail == Detail::Presence && progress.has_any();
        if is_there || progress.replies.iter().any(Reply::is_complete) {
            return Requests::NONE;
        }
        Requests::of(if progress.uses_none { WITHOUT_CHALLENGE } else { CHALLENGE })
    }

    fn emit(progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let challenge = progress.and_then(|progress| progress.challenge);
        let kind = match request {
            CHALLENGE => gamespy3::Request::Challenge,
            EVERYTHING => gamespy3::Request::Everything(challenge),
            _ => gamespy3::Request::Everything(None),
        };
        kind.emit(token().short(), out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        let (Response::Challenge { number, .. } | Response::Part(Part { number, .. })) = response;
        let Some(attempt) = context.attempt_with(|token| token.short() == number) else {
            return Ok(Received::WrongToken);
        };
        Ok(match response {
            Response::Challenge { challenge, .. } => progress.accept_challenge(attempt, challenge),
            Response::Part(part) => progress.accept_part(attempt, &part),
        })
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let Some(best) = progress.best() else {
            let missing = (detail != Detail::Presence).then_some(MissingPart::Part("reply to the challenge"));
            return (ServerInfo::default(), missing.into_iter().collect());
        };
        let parts = raw.datagrams().flat_map(Response::parse).filter_map(|response| match response {
            Response::Part(part) if part.number == best.number => Some(part),
            _ => None,
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by_key(|part| part.index);
        let is_complete = best.is_complete();
        let mut info = describe(&parts).server_info(Protocol::GameSpy3, is_complete);
        unreal::refine(&mut info);
        let mut missing = Vec::new();
        if detail != Detail::Presence && !is_complete {
            missing.push(MissingPart::Part("parts of the reply"));
        }
        let received = info.player_list.as_ref().map_or(0, Vec::len) as u16;
        if let Some(expected) = info.players.filter(|players| *players > received && detail == Detail::Players) {
            missing.push(MissingPart::Players { received, expected: Some(expected) });
        }
        (info, missing)
    }
}

/// Puts the parts of a reply together. A value that is cut at the end of one is repeated at the beginning of the next, so that the
/// later one counts; without a next one, the last value is left out.
fn describe<'a>(parts: &[Part<'a>]) -> Description<'a> {
    let mut description = Description::default();
    for (index, part) in parts.iter().enumerate() {
        let is_continued = |next: &&Part<'_>| next.index == part.index + 1 && next.items().next().is_some();
        let may_be_cut = !part.is_last && !parts.get(index + 1).is_some_and(|next| is_continued(&next));
        let mut items = part.items().peekable();
        while let Some(item) = items.next() {
            if may_be_cut && items.peek().is_none() {
                break;
            }
            add(item, &mut description);
        }
    }
    description
}

fn add<'a>(item: Item<'a>, description: &mut Description<'a>) {
    match item {
        Item::Key { key, value } => drop(description.server.insert(key.to_ascii_lowercase(), value)),
        Item::Player { number, .. } if number > MAX_NUMBER => {}
        Item::Player { column, number, value } => {
            let column = column.to_ascii_lowercase();
            let name = column.strip_suffix(b"_").unwrap_or(&column);
            let name = if name == b"name" { b"player" } else { name };
            description.players.entry(number).or_default().insert(name.to_vec(), value);
        }
        Item::Team { column: b"team_t", number, value } => drop(description.teams.insert(number, value)),
        // What else is known of a team is a rule, with its number.
        Item::Team { column, number, value } => {
            let key = [&column.to_ascii_lowercase()[..], number.to_string().as_bytes()].concat();
            description.server.insert(key, value);
        }
    }
}
