//! Answers to queries, prepared by somebody else, within a budget of bytes (S9 to S11).

use rallypoint_limit::{Limiter, LimiterConfig};
use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Instant};

/// The longest answer to a query for players (S11).
const MOST_FOR_PLAYERS: usize = 16_000;

/// So many answers may wait to be sent.
const MOST_WAITING: usize = 64;

/// How many addresses are remembered.
const REMEMBERED: usize = 16_384;

/// The datagrams of one answer.
type Answer = Arc<[Box<[u8]>]>;

/// The datagrams that answer the two queries, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct QueryAnswers {
    info: Answer,
    players: Answer,
}

impl QueryAnswers {
    /// The seven infos, and all teams and then all players (S9, S10). What is longer than 16 kB in sum is left out of the
    /// players (S11); datagrams longer than 508 bytes are left out of both.
    #[must_use]
    pub fn new(info: Vec<Vec<u8>>, players: Vec<Vec<u8>>) -> Self {
        let fits =
            |datagram: &Vec<u8>| !datagram.is_empty() && datagram.len() <= rallypoint_wire::session::MAX_DATAGRAM;
        let mut left = MOST_FOR_PLAYERS;
        let short = |datagram: &Vec<u8>| {
            let fits = datagram.len() <= left;
            left = if fits { left - datagram.len() } else { 0 };
            fits
        };
        Self {
            info: info.into_iter().filter(fits).map(Vec::into_boxed_slice).collect(),
            players: players.into_iter().filter(fits).take_while(short).map(Vec::into_boxed_slice).collect(),
        }
    }
}

pub(super) struct Queries {
    answers: QueryAnswers,
    limiter: Limiter,
    /// Who asked, what is answered, and which part of it comes next.
    waiting: VecDeque<(SocketAddr, Answer, usize)>,
    pub refused: u64,
}

impl Queries {
    pub fn new(config: &crate::EndpointConfig, seed: u128) -> Self {
        let budgets = LimiterConfig {
            host: config.query_host,
            net: config.query_net,
            site: config.query_net,
            total: config.query_total,
            max_entries: REMEMBERED,
            ..LimiterConfig::default()
        };
        Self {
            answers: QueryAnswers::default(),
            limiter: Limiter::new(&budgets, seed),
            waiting: VecDeque::new(),
            refused: 0,
        }
    }

    pub fn set_answers(&mut self, answers: QueryAnswers) {
        self.answers = answers;
    }

    pub fn handle_query(&mut self, now: Instant, from: SocketAddr, players: bool) {
        let answer = if players { &self.answers.players } else { &self.answers.info };
        let bytes = answer.iter().map(|datagram| datagram.len()).sum();
        if bytes == 0 {
            return;
        }
        // Over the limit means dropped, not queued.
        if self.waiting.len() >= MOST_WAITING || !self.limiter.check(now, from.ip(), bytes).is_allowed() {
            self.refused += 1;
            return;
        }
        self.waiting.push_back((from, Arc::clone(answer), 0));
    }

    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<(SocketAddr, usize)> {
        let (to, answer, next) = self.waiting.front_mut()?;
        let to = *to;
        let datagram = answer.get(*next)?;
        let len = datagram.len();
        out.extend_from_slice(datagram);
        *next += 1;
        if *next == answer.len() {
            self.waiting.pop_front();
        }
        Some((to, len))
    }
}
