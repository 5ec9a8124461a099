//! How many datagrams per second of real time the simulator carries: `cargo run --release --example throughput`.
#![forbid(unsafe_code)]

use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{Link, Network};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const LEN: usize = 400;

/// Sends to its peers in turn, `at_once` datagrams every millisecond, and counts what comes.
struct Chatter {
    peers: Vec<SocketAddr>,
    at_once: usize,
    left: usize,
    turn: usize,
    next: Instant,
    heard: u64,
}

impl Chatter {
    fn new(now: Instant, peers: Vec<SocketAddr>, at_once: usize) -> Self {
        Self { peers, at_once, left: 0, turn: 0, next: now, heard: 0 }
    }
}

impl Machine for Chatter {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, bytes: &[u8]) {
        self.heard += u64::from(bytes.len() == LEN);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.left = self.at_once;
            self.next = now + Duration::from_millis(1);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        self.turn = (self.turn + 1) % self.peers.len();
        out.resize(out.len() + LEN, 7);
        Some(Transmit::one(self.peers[self.turn], LEN))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

fn main() {
    let ms = Duration::from_millis;
    let bad = Link::default()
        .delay(ms(25))
        .jitter_reordering(ms(5))
        .loss(0.05)
        .bursts(0.02, 4.0)
        .duplicate(0.01)
        .reorder(0.05, ms(5))
        .corrupt(0.01)
        .rate(1_000_000_000, 1_000_000);
    measure("2 nodes, perfect link", 1, 10, Link::default(), 0);
    measure("2 nodes, 25 ms", 1, 10, Link::default().delay(ms(25)), 0);
    measure("2 nodes, everything bad", 1, 10, bad, 0);
    measure("2 nodes, everything bad, recorded", 1, 10, bad, 10_000);
    measure("1 server, 255 clients", 255, 1, Link::default().delay(ms(25)), 0);
    measure("1 prober, 10,000 servers", 10_000, 1, Link::default().delay(ms(25)), 0);
}

fn measure(what: &str, clients: u32, at_once: usize, link: Link, record: usize) {
    let mut net = Network::new(1);
    net.set_default_link(link);
    net.record(record);
    let server: SocketAddr = ([10, 0, 0, 1], 1).into();
    let address = |number: u32| -> SocketAddr {
        let [_, a, b, c] = number.to_be_bytes();
        ([11, a, b, c], 1).into()
    };
    let peers: Vec<SocketAddr> = (0..clients).map(address).collect();
    let now = net.now();
    net.add(server, Chatter::new(now, peers.clone(), at_once * clients as usize));
    for peer in peers {
        net.add(peer, Chatter::new(now, vec![server], at_once));
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        net.run_for(Duration::from_millis(10));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let sent = net.totals().sent.datagrams;
    println!("{what}: {:.2} million datagrams per second", sent as f64 / seconds / 1e6);
}
