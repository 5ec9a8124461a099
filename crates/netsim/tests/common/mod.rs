//! Small machines for the tests.
#![allow(dead_code, reason = "each test file uses some of it")]

use rallypoint_machine::{Machine, Transmit};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn address(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    ([10, a, b, c], 4000).into()
}

/// Sends every datagram back to its sender.
#[derive(Default)]
pub struct Echo {
    pub received: u64,
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Machine for Echo {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.received += 1;
        self.replies.push_back((from, bytes.to_vec()));
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.replies.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(to, bytes.len()))
    }
}

/// Sends a numbered datagram of `len` bytes every `interval`, and reports the round-trip time of each reply.
pub struct Ping {
    pub to: SocketAddr,
    pub interval: Duration,
    pub len: usize,
    next: Instant,
    sent: Vec<Instant>,
    pongs: VecDeque<Pong>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    pub number: u32,
    pub rtt: Duration,
}

impl Ping {
    pub fn new(now: Instant, to: SocketAddr, interval: Duration) -> Self {
        Self { to, interval, len: 4, next: now, sent: Vec::new(), pongs: VecDeque::new() }
    }

    pub fn sent(&self) -> usize {
        self.sent.len()
    }
}

impl Machine for Ping {
    type Event = Pong;

    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, bytes: &[u8]) {
        let Some(number) = bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) else { return };
        let Some(sent) = self.sent.get(number as usize) else { return };
        self.pongs.push_back(Pong { number, rtt: now - *sent });
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if now < self.next {
            return None;
        }
        self.next += self.interval;
        let start = out.len();
        out.extend_from_slice(&(self.sent.len() as u32).to_be_bytes());
        out.resize(start + self.len, 0);
        self.sent.push(now);
        Some(Transmit::one(self.to, self.len))
    }

    fn poll_event(&mut self) -> Option<Pong> {
        self.pongs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

/// Wakes at regular intervals, and reports when.
pub struct Ticker {
    pub next: Option<Instant>,
    pub interval: Duration,
    ticks: VecDeque<Instant>,
}

impl Ticker {
    pub fn new(first: Instant, interval: Duration) -> Self {
        Self { next: Some(first), interval, ticks: VecDeque::new() }
    }
}

impl Machine for Ticker {
    type Event = Instant;

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|next| next <= now) {
            self.ticks.push_back(now);
            self.next = Some(now + self.interval);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_event(&mut self) -> Option<Instant> {
        self.ticks.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}
