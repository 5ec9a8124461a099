//! Game traffic and bulk traffic over a simulated network.

use crate::library::{Library, Side, ms, numbered};
use rallypoint_netsim::{Link, Network, Node};
use std::time::{Duration, Instant};

/// Size in bytes of the IPv4 and UDP headers.
pub const IP_UDP: u64 = 28;

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 45_555);
const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 1], 1_000);

/// One server and one client on a link.
pub struct Pair<C: Library> {
    pub net: Network,
    pub server: Node<C::Server>,
    pub client: Node<C::Client>,
}

impl<C: Library> Pair<C> {
    /// Creates both sides, not yet connected.
    pub fn start(seed: u64, link: Link, size: usize) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let (server, client) = C::pair(net.now(), SERVER.into(), size);
        let server = net.add(SERVER, server);
        let client = net.add(CLIENT, client);
        Self { net, server, client }
    }

    /// Creates both sides and connects them.
    pub fn connect(seed: u64, link: Link, size: usize) -> Self {
        let mut pair = Self::start(seed, link, size);
        let server = pair.server;
        let client = pair.client;
        let is_connected = pair
            .net
            .run_while(ms(60_000), |net| !net.machine(server).is_connected() || !net.machine(client).is_connected());
        assert!(is_connected, "{}: no connection with seed {seed}", C::NAME);
        pair.net.run_for(ms(500));
        pair
    }

    /// Bytes sent by both sides so far, including IP and UDP headers.
    pub fn wire(&self) -> u64 {
        let sent = self.net.totals().sent;
        sent.bytes + IP_UDP * sent.datagrams
    }
}

/// Figures of game traffic.
#[derive(Default)]
pub struct Game {
    /// Delivery time of each message, in both directions.
    pub times: Vec<Duration>,
    /// Wire bytes.
    pub wire: u64,
    /// Payload bytes.
    pub payload: u64,
}

impl Game {
    /// Quantile of the delivery time, in milliseconds.
    pub fn at(&self, share: f64) -> f64 {
        self.times[((self.times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3
    }

    /// Wire bytes per payload byte.
    pub fn overhead(&self) -> f64 {
        self.wire as f64 / self.payload as f64
    }
}

const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
const GAME_SIZE: usize = 100;

/// Sends 60 messages of 100 bytes per second in each direction for `length`, with several seeds.
pub fn game<C: Library>(seeds: u64, link: Link, length: Duration) -> Game {
    let mut game = Game::default();
    for seed in 1..=seeds {
        play::<C>(seed, link, length, &mut game);
    }
    game.times.sort();
    game
}

fn play<C: Library>(seed: u64, link: Link, length: Duration, game: &mut Game) {
    let mut pair = Pair::<C>::connect(seed, link, GAME_SIZE);
    let client = pair.client;
    let server = pair.server;
    let before = pair.wire();
    let start = pair.net.now();
    let count = (length.as_nanos() / FRAME.as_nanos()) as u32;
    let mut sent = Vec::new();
    for number in 0..count {
        pair.net.run_until(start + FRAME * number);
        let message = numbered(number, GAME_SIZE);
        pair.net.with(client, |side, now| frame(side, now, &message));
        pair.net.with(server, |side, now| frame(side, now, &message));
        sent.push(pair.net.now());
    }
    pair.net.run_until(start + FRAME * count);
    game.wire += pair.wire() - before;
    game.payload += u64::from(2 * count) * GAME_SIZE as u64;
    let arrived = pair.net.run_while(ms(60_000), |net| {
        net.machine(server).received().len() < count as usize || net.machine(client).received().len() < count as usize
    });
    assert!(arrived, "{}: not everything arrived with seed {seed}", C::NAME);
    let there = pair.net.machine(server).received();
    let here = pair.net.machine(client).received();
    game.times.extend(there.times().zip(&sent).chain(here.times().zip(&sent)).map(|(at, sent)| at - *sent));
}

fn frame(side: &mut impl Side, now: Instant, message: &[u8]) {
    assert!(side.send(now, message), "no space for a game's message");
    side.end_frame(now);
}

/// Figures of bulk traffic.
pub struct Bulk {
    /// Payload bytes per second.
    pub goodput: f64,
    /// Wire bytes per payload byte, including IP and UDP headers.
    pub overhead: f64,
    /// Datagram bytes per payload byte, without those headers.
    pub datagrams: f64,
}

const BULK_SIZE: usize = 400;

/// Sends `bytes` bytes in messages of 400 bytes from the server to the client.
pub fn bulk<C: Library>(seed: u64, link: Link, bytes: u32) -> Bulk {
    let mut pair = Pair::<C>::connect(seed, link, BULK_SIZE);
    let client = pair.client;
    let server = pair.server;
    let before = pair.wire();
    let start = pair.net.now();
    let sent_before = pair.net.totals().sent.bytes;
    let count = bytes / BULK_SIZE as u32;
    let mut next = 0;
    let mut at = start;
    while pair.net.machine(client).received().len() < count as usize {
        pair.net.with(server, |side, now| {
            while next < count && side.send(now, &numbered(next, BULK_SIZE)) {
                next += 1;
            }
            side.end_frame(now);
        });
        // The application refills the queue every millisecond.
        at += ms(1);
        pair.net.run_until(at);
        assert!(at < start + ms(3_600_000), "{}: not everything arrived", C::NAME);
    }
    let end = pair.net.machine(client).received().times().last().unwrap_or(start);
    Bulk {
        goodput: f64::from(bytes) / (end - start).as_secs_f64(),
        overhead: (pair.wire() - before) as f64 / f64::from(bytes),
        datagrams: (pair.net.totals().sent.bytes - sent_before) as f64 / f64::from(bytes),
    }
}

/// Game traffic in both directions with an outage of 5 s: the time from its end until everything sent before has arrived.
pub fn recovery<C: Library>(seed: u64, rtt: Duration) -> Duration {
    let mut pair = Pair::<C>::connect(seed, Link::default().delay(rtt / 2), GAME_SIZE);
    let client = pair.client;
    let server = pair.server;
    let start = pair.net.now();
    // Not synchronous with the frames.
    let cut = start + ms(2_000) + Duration::from_micros(1_234 * seed);
    pair.net.schedule_at(cut, move |net| net.partition(client, server, true));
    let back = cut + ms(5_000);
    pair.net.schedule_at(back, move |net| net.partition(client, server, false));
    let mut number = 0;
    let mut before = 0;
    while pair.net.now() < back + ms(1_000) {
        pair.net.run_until(start + FRAME * number);
        if pair.net.now() <= back {
            before = number as usize;
        }
        let message = numbered(number, GAME_SIZE);
        pair.net.with(client, |side, now| frame(side, now, &message));
        pair.net.with(server, |side, now| frame(side, now, &message));
        number += 1;
    }
    let arrived = pair.net.run_while(ms(60_000), |net| {
        net.machine(server).received().len() <= before || net.machine(client).received().len() <= before
    });
    assert!(arrived, "{}: did not recover", C::NAME);
    let [there, here] =
        [pair.net.machine(server).received(), pair.net.machine(client).received()].map(|all| all.at(before));
    there.max(here).unwrap_or(back) - back
}
