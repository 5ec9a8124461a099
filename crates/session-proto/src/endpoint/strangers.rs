//! Those who have proved nothing, and what they are answered, within budgets (S16, S32).

use rallypoint_limit::{Net, Rate, TokenBuckets};
use rallypoint_wire::session::{ServerDatagram, Text};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// So many answers may wait to be sent.
const MOST_WAITING: usize = 256;

/// What is always allowed to an address that has proved nothing (S16).
const ALWAYS_ALLOWED: usize = 16;

/// How many networks are remembered, of those that were told something lately.
const REMEMBERED: usize = 4_096;

/// How often one network is told that a session is unknown (S32), and why a login is refused (W36). A client that is not answered
/// asks up to eight times, so that a dozen of them can be refused at once.
const UNKNOWN: Rate = Rate::per_second(1, 1);
const REFUSALS: Rate = Rate::per_second(10, 30);

pub(super) struct Strangers {
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    unknown: TokenBuckets<Net>,
    refusals: TokenBuckets<Net>,
}

impl Strangers {
    pub fn new(seed: u128, other_seed: u128) -> Self {
        Self {
            answers: VecDeque::new(),
            unknown: TokenBuckets::new(UNKNOWN, REMEMBERED, seed),
            refusals: TokenBuckets::new(REFUSALS, REMEMBERED, other_seed),
        }
    }

    /// Sends the answer to a login. False if too many others wait.
    pub fn grant(&mut self, to: SocketAddr, answer: Vec<u8>) -> bool {
        let has_room = self.answers.len() < MOST_WAITING;
        if has_room {
            self.answers.push_back((to, answer));
        }
        has_room
    }

    /// Says why a login of so many bytes is refused, cut to what may be sent to somebody who has proved nothing.
    pub fn refuse(&mut self, now: Instant, to: SocketAddr, received: usize, reason: &str) {
        if self.refusals.take(now, Net::of(to.ip())) {
            let room = ALWAYS_ALLOWED.max(3 * received) - 1;
            self.answer(to, received, ServerDatagram::BadLogin(Text::cut_to(room, reason)));
        }
    }

    /// Says that a session does not exist.
    pub fn tell_unknown(&mut self, now: Instant, to: SocketAddr, received: usize) {
        if self.unknown.take(now, Net::of(to.ip())) {
            self.send_away(to, received, "unknown session");
        }
    }

    /// Says goodbye to somebody who is not let in after a login.
    pub fn send_away(&mut self, to: SocketAddr, received: usize, reason: &str) {
        self.answer(to, received, ServerDatagram::Disconnect(Text::cut(reason)));
    }

    pub fn poll_answer(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.answers.pop_front()
    }

    /// Never with more than three times what came (S16).
    fn answer(&mut self, to: SocketAddr, received: usize, datagram: ServerDatagram<'_>) {
        let mut bytes = Vec::new();
        datagram.emit(&mut bytes);
        if bytes.len() <= ALWAYS_ALLOWED.max(3 * received) {
            self.grant(to, bytes);
        }
    }
}
