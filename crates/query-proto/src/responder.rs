//! Answering queries for a game.

mod challenge;
mod config;
mod datagrams;

pub(crate) use challenge::Client;
pub use config::ResponderConfig;
pub(crate) use datagrams::Datagrams;

use crate::{Protocol, ServerInfo, exchange::Query, protocols};
use challenge::Challenges;
use rallypoint_limit::{Decision, Limiter, LimiterConfigError, OverBudget};
use rallypoint_machine::{Machine, Transmit};
use std::{collections::VecDeque, fmt, net::SocketAddr, sync::Arc, time::Instant};

/// Answers queries for one server, from one [`ServerInfo`], in all protocols that have a responder.
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
/// Queries of these protocols cannot be mistaken for each other, so one responder can serve all, even on one port.
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
    challenges: Challenges,
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
    /// Datagrams sent to addresses that have not been verified: all that are sent, except replies to queries with a challenge
    /// (S11).
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
    /// Index of the protocol in the replies.
    protocol: usize,
    query: Query,
    /// Index of the next datagram.
    next: usize,
}

/// The replies to all kinds of queries, by protocol.
#[derive(Debug)]
struct PreparedReplies(Vec<(Protocol, Vec<Datagrams>)>);

/// Maximum number of replies waiting to be sent. The event loop sends them after every batch of received datagrams.
const MAX_QUEUE: usize = 1_024;

impl Responder {
    /// The protocols that have a responder.
    pub fn protocols() -> impl Iterator<Item = Protocol> {
        Protocol::ALL.iter().copied().filter(|protocol| protocols::has_responder(*protocol))
    }

    /// Length of the longest datagram of interest, in bytes: the size of the receive buffer. No query is longer.
    pub const MAX_DATAGRAM: usize = 2_048;

    /// A responder for a server. The seed must not be guessable.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn new(config: ResponderConfig, seed: u128, info: &ServerInfo) -> Result<Self, LimiterConfigError> {
        config.validate()?;
        Ok(Self {
            replies: Arc::new(PreparedReplies::new(&config.protocols, info)),
            limiter: Limiter::new(&config.limits(), seed),
            challenges: Challenges::new(seed),
            queue: VecDeque::with_capacity(MAX_QUEUE),
            stats: ResponderStats::default(),
            config,
        })
    }

    /// Changes the description of the server. Texts that are too long are cut; fields that a protocol does not have are left out.
    pub fn set_info(&mut self, info: &ServerInfo) {
        self.replies = Arc::new(PreparedReplies::new(&self.config.protocols, info));
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
    fn reply(&mut self, now: Instant, to: SocketAddr, protocol: usize, query: Query) -> bool {
        let size = self.replies.datagrams(protocol, query.kind).map_or(0, Datagrams::size);
        if size == 0 {
            return true;
        }
        if self.queue.len() >= MAX_QUEUE {
            self.stats.over_queue += 1;
            return false;
        }
        if let Decision::Refused(_) = self.limiter.check(now, to.ip(), size + query.growth) {
            self.stats.over_budget += 1;
            return false;
        }
        self.stats.answered += 1;
        self.queue.push_back(PendingReply { to, replies: self.replies.clone(), protocol, query, next: 0 });
        true
    }
}

impl Machine for Responder {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        let replies = self.replies.clone();
        let client = self.challenges.client(now, from);
        let has_query = (0..).zip(&replies.0).any(|(index, (protocol, _))| {
            protocols::queries(*protocol, client, bytes, |query| self.reply(now, from, index, query))
        });
        self.stats.not_queries += u64::from(!has_query);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let pending = self.queue.front_mut()?;
            let replies = &pending.replies;
            let datagrams = replies.datagrams(pending.protocol, pending.query.kind);
            let Some((datagrams, datagram)) = datagrams.and_then(|all| Some((all, all.get(pending.next)?))) else {
                self.queue.pop_front();
                continue;
            };
            let to = pending.to;
            let start = out.len();
            out.extend_from_slice(datagram);
            let protocol = replies.0[pending.protocol].0;
            let is_unproven = !protocols::needs_challenge(protocol, pending.query.kind);
            protocols::insert_token(protocol, pending.query.token.as_bytes(), start, out);
            let len = out.len() - start;
            pending.next += 1;
            if pending.next == datagrams.len() {
                self.queue.pop_front();
            }
            self.stats.unproven_datagrams += u64::from(is_unproven);
            self.stats.unproven_bytes += if is_unproven { len as u64 } else { 0 };
            return Some(Transmit::one(to, len));
        }
    }

    fn max_datagram(&self) -> usize {
        Self::MAX_DATAGRAM
    }
}

impl PreparedReplies {
    fn new(enabled: &[Protocol], info: &ServerInfo) -> Self {
        Self(enabled.iter().map(|protocol| (*protocol, protocols::replies(*protocol, info))).collect())
    }

    fn datagrams(&self, protocol: usize, kind: u8) -> Option<&Datagrams> {
        self.0.get(protocol)?.1.get(usize::from(kind))
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("config", &self.config).field("stats", &self.stats).finish_non_exhaustive()
    }
}
