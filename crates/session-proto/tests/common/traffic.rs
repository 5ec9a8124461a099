//! The two kinds of traffic that are measured: game traffic and bulk transfer.

use super::*;
use rallypoint_session_proto::{Connection, ConnectionConfig, ONLY_CHANNEL};

/// Bytes of the IPv4 and UDP headers.
const IP_UDP: u64 = 28;

/// Measurements of game traffic.
pub struct Game {
    /// Delivery time of each message in both directions, sorted.
    pub times: Vec<Duration>,
    /// Bytes on the wire per byte of payload, both directions, IP and UDP headers included.
    pub overhead: f64,
}

impl Game {
    /// The delivery time of this quantile.
    pub fn at(&self, share: f64) -> Duration {
        self.times[((self.times.len() - 1) as f64 * share) as usize]
    }
}

/// 60 messages of 100 bytes per second each way.
pub fn game(seed: u64, link: Link, duration: Duration, encryption: Encryption) -> Game {
    let mut pair = Pair::connect(seed, link, encryption);
    pair.net.run_for(ms(500));
    let client = pair.client;
    let server = pair.server;
    let wire = |pair: &Pair| {
        let sent = pair.net.totals().sent;
        sent.bytes + IP_UDP * sent.datagrams
    };
    let before = wire(&pair);
    let start = pair.net.now();
    let count = (duration.as_millis() * 60 / 1000) as u32;
    let mut sent = Vec::new();
    for number in 0..count {
        pair.net.run_until(start + Duration::from_nanos(1_000_000_000 / 60) * number);
        sent.push(pair.net.now());
        pair.client_send(&numbered(number, 100));
        pair.server_send(&numbered(number, 100));
    }
    let arrived = pair.net.run_while(secs(30), |net| {
        let received = net.machine(server).received.values().next().map_or(0, Vec::len);
        (received as u32) < count || (net.machine(client).received.len() as u32) < count
    });
    assert!(arrived, "seed {seed}: not everything arrived");
    let overhead = (wire(&pair) - before) as f64 / f64::from(2 * count * 100);
    let received = pair.server_received().iter().zip(&sent).chain(pair.client().received.iter().zip(&sent));
    let mut times: Vec<_> = received.map(|((at, _), sent)| *at - *sent).collect();
    times.sort();
    Game { times, overhead }
}

/// Measurements of a bulk transfer.
pub struct Bulk {
    pub time: Duration,
    /// Payload bytes per second.
    pub goodput: f64,
    /// Bytes of datagrams per byte of payload, both directions.
    pub overhead: f64,
}

/// Transfers `bytes` bytes from the server to the client, in messages of 400 bytes.
pub fn bulk(seed: u64, link: Link, bytes: u32, encryption: Encryption) -> Bulk {
    bulk_window(seed, link, bytes, encryption, ConnectionConfig::default().window)
}

/// A bulk transfer with a window of this many messages on both sides.
pub fn bulk_window(seed: u64, link: Link, bytes: u32, encryption: Encryption, window: usize) -> Bulk {
    let mut server = server_config();
    server.connection.window = window;
    let mut client = client_config(encryption);
    client.connection.window = window;
    let mut pair = Pair::start(seed, link, server, client);
    pair.wait_for_player();
    pair.net.run_for(ms(500));
    let client = pair.client;
    let server = pair.server;
    let start = pair.net.now();
    let count = bytes / 400;
    let before = pair.net.totals().sent.bytes;
    let mut next = 0;
    let push = |net: &mut Network, next: &mut u32| {
        net.with(server, |app, now| {
            let player = app.player();
            while *next < count && app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(*next, 400)).is_ok() {
                *next += 1;
            }
        });
    };
    push(&mut pair.net, &mut next);
    let arrived = pair.net.run_while(secs(600), |net| {
        let app = net.machine(server);
        if next < count && app.endpoint.connection(app.player()).is_some_and(Connection::is_writable) {
            push(net, &mut next);
        }
        (net.machine(client).received.len() as u32) < count
    });
    let stats = pair.server().endpoint.connection(pair.server().player()).map(Connection::stats);
    assert!(arrived, "seed {seed}: not everything arrived: {stats:?}");
    let time = pair.net.now() - start;
    let received = pair.client().received.iter().map(|(_, message)| number_of(message));
    assert!(received.eq(0..count));
    Bulk {
        time,
        goodput: f64::from(bytes) / time.as_secs_f64(),
        overhead: (pair.net.totals().sent.bytes - before) as f64 / f64::from(bytes),
    }
}
