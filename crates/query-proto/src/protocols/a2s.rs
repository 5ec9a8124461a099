//! Valve A2S: the queries of Source, GoldSrc and most games on Steam.
//!
//! The info is queried first, alone. A server that demands challenges answers with one, which all further queries repeat: they are
//! sent at once, as soon as it is known. Others are asked for the players after the info, and for the rules after the players.
//!
//! Replies repeat nothing of their query, so that an attacker who can forge the address of a server can forge its reply.

mod assembly;
mod replies;
#[cfg(test)]
mod tests;
mod view;

use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Context, Query, QueryProtocol, QueryToken, Received, Request, Requests, Token},
    responder::{Client, Datagrams},
};
use assembly::{Assembled, Assembly};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail,
        a2s::{self, Info, NO_CHALLENGE, Response},
    },
};

/// The query protocol of Valve.
pub(crate) struct A2s;

const INFO: Request = Request(0);
const PLAYERS: Request = Request(1);
const RULES: Request = Request(2);

/// Number of requests.
const COUNT: usize = 3;

/// Number of requests for players or rules to a server that answers only other requests. With a loss of 30 % in each direction, the
/// reply of one server in a hundred is missed.
const MAX_UNANSWERED: u8 = 6;

/// Maximum number of challenges: more than any server sends in all attempts. Each draws as many as three requests.
const MAX_CHALLENGES: u8 = 20;

/// What has been received of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    challenge: Option<[u8; 4]>,
    /// Number of challenges received.
    challenges: u8,
    /// For each request its reply.
    parts: [Part; COUNT],
    /// For each request whether it was sent since the challenge changed.
    is_sent: [bool; COUNT],
    /// For each request how often it was sent since the server answered it in part.
    unanswered: [u8; COUNT],
    /// Whether the server is empty, so that there is no list of players to wait for.
    is_empty: bool,
    /// Whether the info is that of old GoldSrc servers. Some send both.
    is_obsolete: bool,
    /// Parts of replies that are not complete.
    assembly: Assembly,
}

/// The reply to one request.
#[derive(Debug, Default)]
enum Part {
    #[default]
    Missing,
    /// The reply is one of the datagrams in the [`RawReply`].
    Whole,
    /// The reply came in parts.
    Assembled(Assembled),
}

impl Progress {
    fn has(&self, request: Request) -> bool {
        !matches!(self.parts[usize::from(request.0)], Part::Missing)
    }

    /// The requests to send at once because of what has arrived: those that were not sent since then.
    fn next(&self, detail: Detail) -> Requests {
        let mut next = Requests::NONE;
        let mut outstanding = A2s::attempt(self, detail);
        while !outstanding.is_empty() {
            let request = outstanding.pop();
            next = next.with(Requests::only_if(request, !self.is_sent[usize::from(request.0)]));
        }
        next
    }

    fn handle_challenge(&mut self, challenge: [u8; 4], detail: Detail) -> Received {
        if self.challenge == Some(challenge) && self.next(detail).is_empty() {
            return Received::Redundant;
        }
        if self.challenge != Some(challenge) {
            if self.challenges == MAX_CHALLENGES {
                return Received::Redundant;
            }
            self.challenges += 1;
            self.challenge = Some(challenge);
            self.is_sent = [false; COUNT];
        }
        Received::Accepted(Accepted { next: self.next(detail), is_transient: true, attempt: None })
    }

    /// Takes in a whole reply. Returns where it belongs; `None` if it adds nothing.
    fn handle_reply(&mut self, response: &Response<'_>, detail: Detail) -> Option<&mut Part> {
        let request = match response {
            Response::Info(_) => INFO,
            Response::Players(_) => PLAYERS,
            Response::Rules(_) => RULES,
            Response::Challenge(_) => return None,
        };
        let is_wanted = request == INFO || detail == Detail::Players;
        let is_better = matches!(response, Response::Info(info) if self.is_obsolete && info.obsolete.is_none());
        if !is_wanted || (self.has(request) && !is_better) {
            return None;
        }
        if let Response::Info(info) = response {
            self.is_empty = info.players == 0 && info.bots.unwrap_or(0) == 0;
            self.is_obsolete = info.obsolete.is_some();
        }
        self.parts.get_mut(usize::from(request.0))
    }

    fn handle_split(
        &mut self,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let Some(assembled) = self.assembly.add(datagram, context)? else { return Ok(Received::Redundant) };
        let Some(assembled) = assembled else {
            // Whatever it is a part of: the server is sending what it was asked for.
            self.unanswered = [0; COUNT];
            return Ok(Received::accepted(Requests::NONE));
        };
        let message = assembled.message()?;
        let response = Response::parse(&message)?;
        let Some(part) = self.handle_reply(&response, detail) else { return Ok(Received::Redundant) };
        drop(message);
        *part = Part::Assembled(assembled);
        self.unanswered = [0; COUNT];
        Ok(Received::accepted(self.next(detail)))
    }
}

impl QueryProtocol for A2s {
    const MAX_DATAGRAM: usize = a2s::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    const HAS_RESPONDER: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let is_present = progress.challenge.is_some() || progress.has(INFO);
        let needs_info = !progress.has(INFO) && (detail != Detail::Presence || !is_present);
        let needs_players = detail == Detail::Players && !progress.has(PLAYERS) && !progress.is_empty;
        let needs_rules = detail == Detail::Players && !progress.has(RULES);
        Requests::only_if(INFO, needs_info)
            .with(Requests::only_if(PLAYERS, needs_players))
            .with(Requests::only_if(RULES, needs_rules))
    }

    fn attempt(progress: &Progress, detail: Detail) -> Requests {
        let mut outstanding = Self::outstanding(progress, detail);
        let mut attempt = Requests::NONE;
        while !outstanding.is_empty() {
            let request = outstanding.pop();
            let is_given_up = request != INFO && progress.unanswered[usize::from(request.0)] >= MAX_UNANSWERED;
            attempt = attempt.with(Requests::only_if(request, !is_given_up));
            // Without a challenge, one after the other: what the first one draws may be a challenge for all.
            if progress.challenge.is_none() && (request == INFO || progress.unanswered[usize::from(request.0)] == 0) {
                break;
            }
        }
        attempt
    }

    fn emit(progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let challenge = progress.as_ref().and_then(|progress| progress.challenge);
        if let Some(progress) = progress {
            progress.is_sent[usize::from(request.0)] = true;
            let unanswered = &mut progress.unanswered[usize::from(request.0)];
            *unanswered = unanswered.saturating_add(1);
        }
        match request {
            PLAYERS => a2s::Request::Players(challenge.unwrap_or(NO_CHALLENGE)),
            RULES => a2s::Request::Rules(challenge.unwrap_or(NO_CHALLENGE)),
            _ => a2s::Request::Info(challenge),
        }
        .emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        if a2s::is_split(datagram) {
            return progress.handle_split(datagram, detail, context);
        }
        let response = Response::parse(datagram)?;
        if let Response::Challenge(challenge) = response {
            return Ok(progress.handle_challenge(challenge, detail));
        }
        let Some(part) = progress.handle_reply(&response, detail) else { return Ok(Received::Redundant) };
        *part = Part::Whole;
        Ok(Received::accepted(progress.next(detail)))
    }

    fn is_query(quoted: &[u8]) -> bool {
        a2s::Request::parse(quoted).is_some()
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        view::server_info(progress, detail, raw)
    }

    fn replies(info: &ServerInfo) -> Vec<Datagrams> {
        replies::replies(info)
    }

    fn queries_from(client: Client, datagram: &[u8], mut answer: impl FnMut(Query) -> bool) -> bool {
        let (kind, challenge) = match a2s::Request::parse(datagram) {
            Some(a2s::Request::Info(challenge)) => (replies::INFO, challenge),
            Some(a2s::Request::Players(challenge)) => (replies::PLAYERS, Some(challenge)),
            Some(a2s::Request::Rules(challenge)) => (replies::RULES, Some(challenge)),
            None => return false,
        };
        if challenge.is_some_and(|challenge| client.has_received(challenge)) {
            answer(Query { kind, token: QueryToken::EMPTY, growth: 0 });
        } else if let Some(token) = QueryToken::new(&client.challenge()) {
            answer(Query { kind: replies::CHALLENGE, token, growth: 4 });
        }
        true
    }

    fn needs_challenge(kind: u8) -> bool {
        kind != replies::CHALLENGE
    }

    fn insert_token(token: &[u8], _start: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(token);
    }
}

/// Whether the game is The Ship; unknown without an info.
fn is_the_ship(info: Option<&Info<'_>>) -> Option<bool> {
    info.map(|info| info.ship.is_some())
}
