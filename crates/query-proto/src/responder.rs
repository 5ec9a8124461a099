//! Answering for a game.

mod answers;
mod config;

pub use answers::SessionAnswers;
pub use config::ResponderConfig;

use crate::ServerInfo;
use answers::{Answers, Datagrams};
use rallypoint_limit::{ConfigError, Limiter, Refusal, Verdict};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::{
    bloodmasters::{self, Echo, Reply},
    session::ClientDatagram,
};
use std::{collections::VecDeque, fmt, net::SocketAddr, sync::Arc, time::Instant};

/// Answers queries of documents 002 and 003 for one server, from one [`ServerInfo`].
///
/// * In: [`set_info`](Self::set_info) when something has changed; `handle_datagram` of [`Machine`]. There is no timer, and
///   there are no events.
/// * Out: `poll_transmit`.
/// * Getters: [`stats`](Self::stats).
///
/// A query proves nothing about where it came from, and draws many times its size. So answers have budgets in bytes: per
/// address, per network and in total (S11). What is over a budget is dropped, not queued. Answers are encoded once, when
/// the info is set; answering allocates nothing.
///
/// The two protocols can't be mistaken for each other, so one responder can serve for both, also on one port.
pub struct Responder {
    config: ResponderConfig,
    answers: Arc<Answers>,
    limiter: Limiter,
    queue: VecDeque<Pending>,
    stats: ResponderStats,
}

/// What a [`Responder`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponderStats {
    /// Datagrams received, whatever they were.
    pub received: u64,
    /// Bytes in them.
    pub received_bytes: u64,
    /// Datagrams that hold no query, and are not answered.
    pub not_queries: u64,
    /// Queries that are answered.
    pub answered: u64,
    /// Queries that are not answered, because a budget is used up: see [`Responder::refused`] for which.
    pub over_budget: u64,
    /// Queries that are not answered, because too many answers wait to be sent.
    pub over_queue: u64,
    /// Datagrams sent to addresses that have proved nothing: all that are sent (S11).
    pub unproven_datagrams: u64,
    /// Bytes in them.
    pub unproven_bytes: u64,
}

/// An answer that is being sent.
#[derive(Debug)]
struct Pending {
    to: SocketAddr,
    /// The info of the time at which it was asked: an answer is never made of two.
    answers: Arc<Answers>,
    kind: Kind,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bloodmasters(Echo),
    Infos,
    Players,
}

/// How many answers wait to be sent, at most. A driver sends what there is after every batch of datagrams.
const MAX_QUEUE: usize = 1_024;

impl Responder {
    /// The longest datagram of interest, in bytes: a driver should have room for it. Who sends longer ones does not ask.
    pub const MAX_DATAGRAM: usize = 2_048;

    /// A responder for a server. The seed has to be one that nobody can guess.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn new(config: ResponderConfig, seed: u128, info: &ServerInfo) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            answers: Arc::new(Answers::new(info)),
            limiter: Limiter::new(&config.limits(), seed),
            queue: VecDeque::with_capacity(MAX_QUEUE),
            stats: ResponderStats::default(),
            config,
        })
    }

    /// Something about the server has changed. Texts that are too long are cut; what a protocol cannot say is left out.
    pub fn set_info(&mut self, info: &ServerInfo) {
        self.answers = Arc::new(Answers::new(info));
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> ResponderStats {
        self.stats
    }

    /// How many queries were not answered because of this budget.
    #[must_use]
    pub fn refused(&self, budget: Refusal) -> u64 {
        self.limiter.stats().refused(budget)
    }

    /// Queues an answer, if the budgets allow it. False if they don't.
    fn answer(&mut self, now: Instant, to: SocketAddr, kind: Kind) -> bool {
        let size = kind.of(&self.answers).size();
        if size == 0 {
            return true;
        }
        if self.queue.len() >= MAX_QUEUE {
            self.stats.over_queue += 1;
            return false;
        }
        if let Verdict::Refused(_) = self.limiter.check(now, to.ip(), size) {
            self.stats.over_budget += 1;
            return false;
        }
        self.stats.answered += 1;
        self.queue.push_back(Pending { to, answers: self.answers.clone(), kind, next: 0 });
        true
    }
}

impl Machine for Responder {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        // Exactly one byte, so that an info that is sent here by mistake or malice is not answered (S2).
        let session = match ClientDatagram::parse(bytes) {
            Ok(ClientDatagram::Query) => Some(Kind::Infos),
            Ok(ClientDatagram::QueryPlayers) => Some(Kind::Players),
            _ => None,
        };
        let mut has_query = false;
        if let Some(kind) = session.filter(|_| self.config.session) {
            has_query = true;
            self.answer(now, from, kind);
        } else if self.config.bloodmasters && !is_reply(bytes) {
            for query in bloodmasters::queries(bytes) {
                has_query = true;
                // A datagram can hold thousands of them: what is over a budget is not counted one by one.
                if !self.answer(now, from, Kind::Bloodmasters(query.echo)) {
                    break;
                }
            }
        }
        self.stats.not_queries += u64::from(!has_query);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let pending = self.queue.front_mut()?;
            let datagrams = pending.kind.of(&pending.answers);
            let Some(datagram) = datagrams.get(pending.next) else {
                self.queue.pop_front();
                continue;
            };
            pending.next += 1;
            let (to, len, start) = (pending.to, datagram.len(), out.len());
            out.extend_from_slice(datagram);
            if let Kind::Bloodmasters(echo) = pending.kind {
                out[start..][Echo::RANGE].copy_from_slice(&echo.0);
            }
            if pending.next == datagrams.len() {
                self.queue.pop_front();
            }
            self.stats.unproven_datagrams += 1;
            self.stats.unproven_bytes += len as u64;
            return Some(Transmit::one(to, len));
        }
    }
}

/// Whether this is the whole answer of another server, of a protocol version that servers have. It could be read as a query
/// with extra bytes (B4), and then two servers, one of them forged, would answer each other for ever. A query that is
/// padded with zeros is not taken for one.
fn is_reply(bytes: &[u8]) -> bool {
    Reply::parse(bytes).is_ok_and(|reply| reply.is_complete() && reply.rules().is_some())
}

impl Kind {
    fn of(self, answers: &Answers) -> &Datagrams {
        match self {
            Self::Bloodmasters(_) => &answers.bloodmasters,
            Self::Infos => &answers.infos,
            Self::Players => &answers.players,
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("config", &self.config).field("stats", &self.stats).finish_non_exhaustive()
    }
}
