//! Measures how many datagrams per second of real time the simulator delivers: `cargo run --release --example throughput`.
#![forbid(unsafe_code)]

use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{Link, Network};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const LEN: usize = 400;

/// Sends to its peers in turn, `burst` datagrams every millisecond, and counts what arrives.
struct Sender {
    peers: Vec<SocketAddr>,
    burst: usize,
    remaining: usize,
    next_peer: usize,
    next: Instant,
    received: u64,
}

impl Sender {
    fn new(now: Instant, peers: Vec<SocketAddr>, burst: usize) -> Self {
        Self { peers, burst, remaining: 0, next_peer: 0, next: now, received: 0 }
    }
}

impl Machine for Sender {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, bytes: &[u8]) {
        self.received += u64::from(bytes.len() == LEN);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next {
            self.remaining = self.burst;
            self.next = now + Duration::from_millis(1);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.remaining = self.remaining.checked_sub(1)?;
        self.next_peer = (self.next_peer + 1) % self.peers.len();
        out.resize(out.len() + LEN, 7);
        Some(Transmit::one(self.peers[self.next_peer], LEN))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

fn main() {
    let ms = Duration::from_millis;
    let faulty = Link::default()
        .delay(ms(25))
        .jitter_reordering(ms(5))
        .loss(0.05)
        .bursts(0.02, 4.0)
        .duplicate(0.01)
        .reorder(0.05, ms(5))
        .corrupt(0.01)
        .bottleneck(1_000_000_000, 1_000_000);
    measure("2 nodes, perfect link", 1, 10, Link::default(), 0);
    measure("2 nodes, 25 ms", 1, 10, Link::default().delay(ms(25)), 0);
    measure("2 nodes, every fault", 1, 10, faulty, 0);
    measure("2 nodes, every fault, recorded", 1, 10, faulty, 10_000);
    measure("1 server, 255 clients", 255, 1, Link::default().delay(ms(25)), 0);
    measure("1 prober, 10,000 servers", 10_000, 1, Link::default().delay(ms(25)), 0);
}

fn measure(name: &str, clients: u32, burst: usize, link: Link, record: usize) {
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
    net.add(server, Sender::new(now, peers.clone(), burst * clients as usize));
    for peer in peers {
        net.add(peer, Sender::new(now, vec![server], burst));
    }
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        net.run_for(Duration::from_millis(10));
    }
    let seconds = started.elapsed().as_secs_f64();
    let sent = net.totals().sent.datagrams;
    println!("{name}: {:.2} million datagrams per second", sent as f64 / seconds / 1e6);
}
