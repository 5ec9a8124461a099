//! Answering queries for a game.

mod config;
mod replies;

pub use config::ResponderConfig;
pub use replies::SessionReplies;

use crate::ServerInfo;
use rallypoint_limit::{Decision, Limiter, LimiterConfigError, OverBudget};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::{
    bloodmasters::{self, Echo, Reply},
    session::ClientDatagram,
};
use replies::{Datagrams, PreparedReplies};
use std::{collections::VecDeque, fmt, net::SocketAddr, sync::Arc, time::Instant};

/// Answers queries of documents 002 and 003 for one server, from one [`ServerInfo`].
///
/// * In: [`set_info`](Self::set_info) when something has changed; `handle_datagram` of [`Machine`]. There are no timers and no
///   events.
/// * Out: `poll_transmit`.
/// * Getters: [`stats`](Self::stats).
///
/// A query does not prove where it came from, and its reply is many times its size. So replies have budgets in bytes: per
/// address, per network and in total (S11). A query over a budget is dropped, not queued. Replies are encoded once, when the
/// info is set; answering a query does not allocate.
///
/// Queries of the two protocols cannot be mistaken for each other, so one responder can serve both, even on one port.
///
/// # Example
///
/// ```
/// use rallypoint_machine::Machine;
/// use rallypoint_query_proto::{Responder, ResponderConfig, ServerInfo};
/// use rallypoint_wire::session::ClientDatagram;
/// use std::time::Instant;
///
/// let info = ServerInfo { name: Some("Bacon Town".into()), ..ServerInfo::default() };
/// let mut responder = Responder::new(ResponderConfig::default(), 7, &info)?;
/// let mut query = Vec::new();
/// ClientDatagram::Query.emit(&mut query);
///
/// let now = Instant::now();
/// responder.handle_datagram(now, "192.0.2.1:4000".parse()?, &query);
/// let mut datagrams = 0;
/// while responder.poll_transmit(now, &mut Vec::new()).is_some() {
///     datagrams += 1;
/// }
/// assert_eq!(datagrams, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Responder {
    config: ResponderConfig,
    replies: Arc<PreparedReplies>,
    limiter: Limiter,
    queue: VecDeque<PendingReply>,
    stats: ResponderStats,
}

/// Counters of a [`Responder`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponderStats {
    /// Datagrams received, of any kind.
    pub received: u64,
    /// Bytes in these datagrams.
    pub received_bytes: u64,
    /// Datagrams that contain no query, and are not answered.
    pub not_queries: u64,
    /// Queries that were answered.
    pub answered: u64,
    /// Queries dropped because a budget was used up: [`Responder::refused`] counts each.
    pub over_budget: u64,
    /// Queries dropped because too many replies were waiting to be sent.
    pub over_queue: u64,
    /// Datagrams sent to addresses that have not been verified: all that are sent (S11).
    pub unproven_datagrams: u64,
    /// Bytes in these datagrams.
    pub unproven_bytes: u64,
}

/// A reply that is being sent.
#[derive(Debug)]
struct PendingReply {
    to: SocketAddr,
    /// The replies at the time of the query: a reply never mixes two versions of the info.
    replies: Arc<PreparedReplies>,
    kind: ReplyKind,
    /// Index of the next datagram.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
enum ReplyKind {
    Bloodmasters(Echo),
    Infos,
    Players,
}

/// Maximum number of replies waiting to be sent. The event loop sends them after every batch of received datagrams.
const MAX_QUEUE: usize = 1_024;

impl Responder {
    /// Length of the longest datagram of interest, in bytes: the size of the receive buffer. No query is longer.
    pub const MAX_DATAGRAM: usize = 2_048;

    /// A responder for a server. The seed must not be guessable.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn new(config: ResponderConfig, seed: u128, info: &ServerInfo) -> Result<Self, LimiterConfigError> {
        config.validate()?;
        Ok(Self {
            replies: Arc::new(PreparedReplies::new(info)),
            limiter: Limiter::new(&config.limits(), seed),
            queue: VecDeque::with_capacity(MAX_QUEUE),
            stats: ResponderStats::default(),
            config,
        })
    }

    /// Changes the description of the server. Texts that are too long are cut; fields that a protocol does not have are left out.
    pub fn set_info(&mut self, info: &ServerInfo) {
        self.replies = Arc::new(PreparedReplies::new(info));
    }

    /// Counters since creation.
    #[must_use]
    pub fn stats(&self) -> ResponderStats {
        self.stats
    }

    /// Number of queries dropped because of this budget.
    #[must_use]
    pub fn refused(&self, budget: OverBudget) -> u64 {
        self.limiter.stats().refused(budget)
    }

    /// Queues a reply, if the budgets allow it. False if they do not.
    fn reply(&mut self, now: Instant, to: SocketAddr, kind: ReplyKind) -> bool {
        let size = kind.of(&self.replies).size();
        if size == 0 {
            return true;
        }
        if self.queue.len() >= MAX_QUEUE {
            self.stats.over_queue += 1;
            return false;
        }
        if let Decision::Refused(_) = self.limiter.check(now, to.ip(), size) {
            self.stats.over_budget += 1;
            return false;
        }
        self.stats.answered += 1;
        self.queue.push_back(PendingReply { to, replies: self.replies.clone(), kind, next: 0 });
        true
    }
}

impl Machine for Responder {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        // Exactly one byte, so that an info that is sent here, misdirected or forged, is not answered (S2).
        let session = match ClientDatagram::parse(bytes) {
            Ok(ClientDatagram::Query) => Some(ReplyKind::Infos),
            Ok(ClientDatagram::QueryPlayers) => Some(ReplyKind::Players),
            _ => None,
        };
        let mut has_query = false;
        if let Some(kind) = session.filter(|_| self.config.session) {
            has_query = true;
            self.reply(now, from, kind);
        } else if self.config.bloodmasters && !is_reply(bytes) {
            for query in bloodmasters::queries(bytes) {
                has_query = true;
                // A datagram can contain thousands of queries: those over a budget are not counted one by one.
                if !self.reply(now, from, ReplyKind::Bloodmasters(query.echo)) {
                    break;
                }
            }
        }
        self.stats.not_queries += u64::from(!has_query);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let pending = self.queue.front_mut()?;
            let datagrams = pending.kind.of(&pending.replies);
            let Some(datagram) = datagrams.get(pending.next) else {
                self.queue.pop_front();
                continue;
            };
            pending.next += 1;
            let to = pending.to;
            let len = datagram.len();
            let start = out.len();
            out.extend_from_slice(datagram);
            if let ReplyKind::Bloodmasters(echo) = pending.kind {
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

    fn max_datagram(&self) -> usize {
        Self::MAX_DATAGRAM
    }
}

/// Whether this is the complete reply of another server, of a protocol version in use. It could be read as a query with
/// extra bytes (B4), and then two servers, one of them forged, would answer each other forever. A query that is padded with
/// zeros is not mistaken for a reply.
fn is_reply(bytes: &[u8]) -> bool {
    Reply::parse(bytes).is_ok_and(|reply| reply.is_complete() && reply.rules().is_some())
}

impl ReplyKind {
    fn of(self, replies: &PreparedReplies) -> &Datagrams {
        match self {
            Self::Bloodmasters(_) => &replies.bloodmasters,
            Self::Infos => &replies.infos,
            Self::Players => &replies.players,
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("config", &self.config).field("stats", &self.stats).finish_non_exhaustive()
    }
}
