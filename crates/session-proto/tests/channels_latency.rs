//! Reliable bulk does not delay a sequenced position of the same session (W114).

use crate::common;

use common::{channels::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Channel, ChannelMode, ChannelTable, ClientConfig, Encryption, EndpointConfig};
use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

/// The measurements of a run.
struct Measured {
    /// 99th percentile of the time from `send` to the application.
    p99: Duration,
    /// Bytes of bulk per second.
    bulk: f64,
    /// Share of the positions that arrived; others were replaced by newer ones.
    delivered: f64,
}

/// A path, and the session on it.
#[derive(Clone, Copy, Debug)]
struct Setup {
    /// Bits per second.
    rate: u64,
    rtt: Duration,
    loss: f64,
    is_encrypted: bool,
    /// Whether the client sends.
    is_upload: bool,
}

/// The path of the goal.
const GOAL: Setup = Setup { rate: 5_000_000, rtt: ms(50), loss: 0.0, is_encrypted: true, is_upload: false };

/// 60 positions of 40 bytes per second for 30 s, with or without a download in the same direction.
fn measure(seed: u64, has_bulk: bool, setup: Setup) -> Measured {
    let Setup { rate, rtt, loss, is_encrypted, is_upload } = setup;
    let bulk = Channel { queue: 100_000, ..Channel::new(ChannelMode::ReliableOrdered, 1_000_000) };
    let table = ChannelTable::new(vec![bulk, bulk, Channel::new(ChannelMode::Sequenced, 100)]).unwrap();
    let link = Link::default().delay(rtt / 2).bottleneck(rate, 64_000).loss(loss);
    let server = EndpointConfig::for_game("tag").channels(table.clone());
    let mut client = ClientConfig::new("alice", "tag").channels(table);
    client.encryption = if is_encrypted { Encryption::Encrypted } else { Encryption::Plain };
    let mut pair = ChannelPair::start(seed, link, server, client);
    pair.wait_for_player();
    let server = pair.server;
    let client = pair.client;
    let start = pair.net.now();
    let mut sent_at: Vec<Instant> = Vec::new();
    while pair.net.now() < start + secs(30) {
        let number = sent_at.len() as u32;
        sent_at.push(pair.net.now());
        if is_upload {
            pair.net.with(client, |app, now| {
                app.client.send(now, SEQUENCED, &numbered(number, 40)).unwrap();
                while has_bulk && app.client.send(now, ORDERED, &[7; 5_000]).is_ok() {}
            });
        } else {
            pair.net.with(server, |app, now| {
                let player = app.player();
                app.server.send(now, player, SEQUENCED, &numbered(number, 40)).unwrap();
                while has_bulk && app.server.send(now, player, ORDERED, &[7; 5_000]).is_ok() {}
            });
        }
        pair.net.run_for(Duration::from_micros(16_667));
    }
    let received = if is_upload { &pair.server().received } else { &pair.client().received };
    let mut delays: Vec<Duration> = received
        .iter()
        .filter(|message| message.channel == SEQUENCED)
        .map(|message| message.at - sent_at[number_of(&message.bytes) as usize])
        .collect();
    delays.sort_unstable();
    let bulk: usize =
        received.iter().filter(|message| message.channel == ORDERED).map(|message| message.bytes.len()).sum();
    let delivered = delays.len() as f64 / sent_at.len() as f64;
    Measured { p99: delays[delays.len() * 99 / 100], bulk: bulk as f64 / 30.0, delivered }
}

/// Compares positions beside a download with positions alone, for several seeds.
fn compare(setup: Setup, seeds: RangeInclusive<u64>, min_bulk: f64) {
    for seed in seeds {
        let alone = measure(seed, false, setup);
        let beside = measure(seed, true, setup);
        println!("{seed}: alone {:?}, beside {:?}, bulk {:.0} kB/s", alone.p99, beside.p99, beside.bulk / 1e3);
        assert!(beside.p99 < 2 * alone.p99, "seed {seed}: {:?} beside, {:?} alone", beside.p99, alone.p99);
        assert!(beside.bulk > min_bulk, "seed {seed}: {} bytes per second", beside.bulk);
        assert!(beside.delivered > 0.97 - 2.0 * setup.loss, "seed {seed}: {}", beside.delivered);
    }
}

#[test]
fn w114_the_p99_of_positions_beside_a_download_is_below_twice_its_value_alone() {
    // The path carries 625 kB/s, of which the download has at least three quarters.
    compare(GOAL, 1..=6, 470_000.0);
}

#[test]
fn w114_the_p99_of_positions_beside_an_upload_is_below_twice_its_value_alone() {
    compare(Setup { is_upload: true, ..GOAL }, 31..=33, 460_000.0);
    compare(Setup { is_upload: true, is_encrypted: false, ..GOAL }, 34..=36, 460_000.0);
}

#[test]
fn w114_with_random_loss_a_download_still_uses_the_path() {
    compare(Setup { loss: 0.02, ..GOAL }, 1..=6, 400_000.0);
}

#[test]
fn w114_positions_beside_a_download_are_as_early_on_slower_faster_longer_and_shorter_paths() {
    let rates = [1, 2, 10, 20];
    let long_paths = [50, 150].into_iter().flat_map(|rtt| rates.map(|rate| (rtt, rate)));
    // On a short path, each datagram of the download that a position waits for has to take little time.
    let short_paths = [(10, 5), (10, 20)];
    for (seed, (rtt, rate)) in (11..).zip(long_paths.chain(short_paths)) {
        for loss in [0.0, 0.01, 0.05].into_iter().filter(|loss| rtt > 10 || *loss == 0.0) {
            let setup = Setup { rate: rate * 1_000_000, rtt: ms(rtt), loss, is_encrypted: seed % 2 == 0, ..GOAL };
            let alone = measure(seed, false, setup);
            let beside = measure(seed, true, setup);
            let share = beside.bulk * 8.0 / setup.rate as f64;
            println!("{setup:?}: {:?}, {:?}, {share:.2}, {:.3}", alone.p99, beside.p99, beside.delivered);
            assert!(beside.p99 < 2 * alone.p99, "{setup:?}: {:?} beside, {:?} alone", beside.p99, alone.p99);
            assert!(share > 0.3 && beside.delivered > 0.9 - 2.0 * loss, "{setup:?}: {share}, {}", beside.delivered);
        }
    }
}
