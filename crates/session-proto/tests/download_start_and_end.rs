//! How long a download takes on a long path with random loss, where its first and its last round trips decide (S26, W74, W75).

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Connection, ConnectionStats, Encryption, ONLY_CHANNEL};
use std::time::Duration;

const RTT: Duration = ms(150);
const MESSAGES: u32 = 20_000;

struct Download {
    time: Duration,
    stats: ConnectionStats,
}

/// Transfers 8 MB in messages of 400 bytes to the client, with the largest window on both sides.
fn download(seed: u64, loss: f64) -> Download {
    let mut server = server_config();
    server.connection.window = 16_384;
    let mut client = client_config(Encryption::Plain);
    client.connection.window = 16_384;
    let mut pair = Pair::start(seed, Link::default().delay(RTT / 2).loss(loss), server, client);
    pair.wait_for_player();
    pair.net.run_for(ms(500));
    let start = pair.net.now();
    let mut next = 0;
    while pair.client().received.len() < MESSAGES as usize {
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            while next < MESSAGES && app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(next, 400)).is_ok() {
                next += 1;
            }
        });
        pair.net.run_for(ms(1));
        assert!(pair.net.now() < start + secs(60), "seed {seed}: not everything arrived");
    }
    let stats = pair.server().endpoint.connection(pair.server().player()).map(Connection::stats).unwrap();
    Download { time: pair.net.now() - start, stats }
}

#[test]
fn s26_the_window_grows_with_the_first_acks_of_a_download() {
    // Slow start takes seven round trips. With one more, it had waited for the acks of messages that filled the window.
    let time = download(1, 0.0).time;
    assert!(time < RTT * 15 / 2, "{time:?}");
}

#[test]
fn s26_a_download_with_random_loss_at_150_ms_is_as_fast_as_with_bbr() {
    // Seconds that quinn takes with BBR and windows of 8 MB (docs/benchmarks.md).
    for (loss, bbr) in [(0.01, 1.56), (0.05, 1.64), (0.1, 1.85), (0.2, 2.14)] {
        let mut times: Vec<Duration> = (1..=9).map(|seed| download(seed, loss).time).collect();
        times.sort();
        println!("{loss}: {:?}, at most {:?}", times[4], times[8]);
        assert!(times[4].as_secs_f64() < bbr, "{loss}: {times:?}");
    }
}

#[test]
fn w75_the_end_of_a_download_does_not_look_like_a_slower_path() {
    // At the end all acks are those of resends for a while.
    for seed in 1..=9 {
        let variation = download(seed, 0.1).stats.rtt_variation;
        println!("seed {seed}: {variation:?}");
        assert!(variation < RTT / 10, "seed {seed}: {variation:?}");
    }
}
