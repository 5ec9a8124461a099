//! The two kinds of traffic, over a simulated network: a game's, and bulk.

use crate::contender::{Contender, Side, ms, numbered};
use rallypoint_netsim::{Link, Network, Node};
use std::time::{Duration, Instant};

/// What IPv4 and UDP put before every datagram.
pub const IP_UDP: u64 = 28;

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 45_555);
const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 1], 1_000);

/// One server and one client on a link.
pub struct Pair<C: Contender> {
    pub net: Network,
    pub server: Node<C::Server>,
    pub client: Node<C::Client>,
}

impl<C: Contender> Pair<C> {
    /// Both, not yet connected.
    pub fn start(seed: u64, link: Link, size: usize) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let (server, client) = C::pair(net.now(), SERVER.into(), size);
        let (server, client) = (net.add(SERVER, server), net.add(CLIENT, client));
        Self { net, server, client }
    }

    /// Both, connected a moment ago.
    pub fn connect(seed: u64, link: Link, size: usize) -> Self {
        let mut pair = Self::start(seed, link, size);
        let (server, client) = (pair.server, pair.client);
        let came = pair
            .net
            .run_while(ms(60_000), |net| !net.machine(server).is_connected() || !net.machine(client).is_connected());
        assert!(came, "{}: no connection with seed {seed}", C::NAME);
        pair.net.run_for(ms(500));
        pair
    }

    /// Bytes sent by both so far, with the headers of IP and UDP.
    pub fn wire(&self) -> u64 {
        let sent = self.net.totals().sent;
        sent.bytes + IP_UDP * sent.datagrams
    }
}

/// What was measured of a game's traffic.
#[derive(Default)]
pub struct Game {
    /// How long each message took, both ways.
    pub times: Vec<Duration>,
    /// Bytes on the wire.
    pub wire: u64,
    /// Bytes of payload.
    pub payload: u64,
}

impl Game {
    /// The time within which this share of the messages arrived, in milliseconds.
    pub fn at(&self, share: f64) -> f64 {
        self.times[((self.times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3
    }

    /// Bytes on the wire for each byte of payload.
    pub fn overhead(&self) -> f64 {
        self.wire as f64 / self.payload as f64
    }
}

const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
const GAME_SIZE: usize = 100;

/// 60 messages of 100 bytes per second each way, for so long, with several seeds.
pub fn game<C: Contender>(seeds: u64, link: Link, length: Duration) -> Game {
    let mut game = Game::default();
    for seed in 1..=seeds {
        play::<C>(seed, link, length, &mut game);
    }
    game.times.sort();
    game
}

fn play<C: Contender>(seed: u64, link: Link, length: Duration, game: &mut Game) {
    let mut pair = Pair::<C>::connect(seed, link, GAME_SIZE);
    let (client, server) = (pair.client, pair.server);
    let (before, start) = (pair.wire(), pair.net.now());
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
        net.machine(server).heard().len() < count as usize || net.machine(client).heard().len() < count as usize
    });
    assert!(arrived, "{}: not everything arrived with seed {seed}", C::NAME);
    let (there, here) = (pair.net.machine(server).heard(), pair.net.machine(client).heard());
    game.times.extend(there.iter().zip(&sent).chain(here.iter().zip(&sent)).map(|(at, sent)| *at - *sent));
}

fn frame(side: &mut impl Side, now: Instant, message: &[u8]) {
    assert!(side.send(now, message), "no room for a game's message");
    side.end_frame(now);
}

/// What was measured of bulk traffic.
pub struct Bulk {
    /// Payload bytes per second.
    pub goodput: f64,
    /// Bytes on the wire, with the headers of IP and UDP, for each byte of payload.
    pub overhead: f64,
    /// The same without those headers.
    pub datagrams: f64,
}

const BULK_SIZE: usize = 400;

/// So many bytes in messages of 400, from the server to the client.
pub fn bulk<C: Contender>(seed: u64, link: Link, bytes: u32) -> Bulk {
    let mut pair = Pair::<C>::connect(seed, link, BULK_SIZE);
    let (client, server) = (pair.client, pair.server);
    let (before, start) = (pair.wire(), pair.net.now());
    let sent_before = pair.net.totals().sent.bytes;
    let count = bytes / BULK_SIZE as u32;
    let mut next = 0;
    let mut at = start;
    while pair.net.machine(client).heard().len() < count as usize {
        pair.net.with(server, |side, now| {
            while next < count && side.send(now, &numbered(next, BULK_SIZE)) {
                next += 1;
            }
            side.end_frame(now);
        });
        // An application that fills what has become free, every millisecond.
        at += ms(1);
        pair.net.run_until(at);
        assert!(at < start + ms(3_600_000), "{}: not everything arrived", C::NAME);
    }
    let end = *pair.net.machine(client).heard().last().unwrap_or(&start);
    Bulk {
        goodput: f64::from(bytes) / (end - start).as_secs_f64(),
        overhead: (pair.wire() - before) as f64 / f64::from(bytes),
        datagrams: (pair.net.totals().sent.bytes - sent_before) as f64 / f64::from(bytes),
    }
}

/// A game's traffic both ways, and the network is away for 5 s: how long after its return everything from before was there.
pub fn recovery<C: Contender>(seed: u64, rtt: Duration) -> Duration {
    let mut pair = Pair::<C>::connect(seed, Link::default().delay(rtt / 2), GAME_SIZE);
    let (client, server) = (pair.client, pair.server);
    let start = pair.net.now();
    // Not in step with the frames.
    let cut = start + ms(2_000) + Duration::from_micros(1_234 * seed);
    pair.net.schedule_at(cut, move |net| net.partition(client, server, true));
    let back = cut + ms(5_000);
    pair.net.schedule_at(back, move |net| net.partition(client, server, false));
    let (mut number, mut before) = (0, 0);
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
        net.machine(server).heard().len() <= before || net.machine(client).heard().len() <= before
    });
    assert!(arrived, "{}: did not come back", C::NAME);
    let last = pair.net.machine(server).heard()[before].max(pair.net.machine(client).heard()[before]);
    last - back
}
