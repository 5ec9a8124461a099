//! Replies to queries: prepared in advance, and sent within a budget of bytes (S9 to S11).

use rallypoint_limit::{Limiter, LimiterConfig};
use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Instant};

/// Maximum number of bytes in the reply to a query for players (S11).
const MAX_PLAYERS_REPLY: usize = 16_000;

/// Maximum number of replies that wait to be sent.
const MAX_QUEUED: usize = 64;

/// Number of addresses whose budgets are remembered.
const REMEMBERED_ADDRESSES: usize = 16_384;

/// The datagrams of one reply.
type Reply = Arc<[Box<[u8]>]>;

/// The datagrams that answer the two queries, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct QueryReplies {
    info: Reply,
    players: Reply,
}

impl QueryReplies {
    /// Takes the datagrams of both replies: the seven infos, and all teams followed by all players (S9, S10). Datagrams longer
    /// than 508 bytes are left out, and so are players beyond 16 kB in total (S11).
    #[must_use]
    pub fn new(info: Vec<Vec<u8>>, players: Vec<Vec<u8>>) -> Self {
        let is_valid =
            |datagram: &Vec<u8>| !datagram.is_empty() && datagram.len() <= rallypoint_wire::session::MAX_DATAGRAM;
        let mut left = MAX_PLAYERS_REPLY;
        let fits = |datagram: &Vec<u8>| {
            let fits = datagram.len() <= left;
            left = if fits { left - datagram.len() } else { 0 };
            fits
        };
        Self {
            info: info.into_iter().filter(is_valid).map(Vec::into_boxed_slice).collect(),
            players: players.into_iter().filter(is_valid).take_while(fits).map(Vec::into_boxed_slice).collect(),
        }
    }
}

/// Answers queries within the budgets of the configuration.
pub(super) struct QueryResponder {
    replies: QueryReplies,
    limiter: Limiter,
    queue: VecDeque<QueuedReply>,
    pub refused: u64,
}

struct QueuedReply {
    to: SocketAddr,
    reply: Reply,
    /// Index of the next datagram to send.
    next: usize,
}

impl QueryResponder {
    pub fn new(config: &crate::EndpointConfig, seed: u128) -> Self {
        let budgets = LimiterConfig {
            host: config.query_host,
            net: config.query_net,
            site: config.query_net,
            total: config.query_total,
            max_entries: REMEMBERED_ADDRESSES,
            ..LimiterConfig::default()
        };
        Self {
            replies: QueryReplies::default(),
            limiter: Limiter::new(&budgets, seed),
            queue: VecDeque::new(),
            refused: 0,
        }
    }

    pub fn set_replies(&mut self, replies: QueryReplies) {
        self.replies = replies;
    }

    pub fn handle_query(&mut self, now: Instant, from: SocketAddr, is_for_players: bool) {
        let reply = if is_for_players { &self.replies.players } else { &self.replies.info };
        let bytes = reply.iter().map(|datagram| datagram.len()).sum();
        if bytes == 0 {
            return;
        }
        // Queries beyond the budget are dropped, not queued.
        if self.queue.len() >= MAX_QUEUED || !self.limiter.check(now, from.ip(), bytes).is_allowed() {
            self.refused += 1;
            return;
        }
        self.queue.push_back(QueuedReply { to: from, reply: Arc::clone(reply), next: 0 });
    }

    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<(SocketAddr, usize)> {
        let queued = self.queue.front_mut()?;
        let to = queued.to;
        let datagram = queued.reply.get(queued.next)?;
        let len = datagram.len();
        out.extend_from_slice(datagram);
        queued.next += 1;
        if queued.next == queued.reply.len() {
            self.queue.pop_front();
        }
        Some((to, len))
    }
}
