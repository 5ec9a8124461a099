//! Everything is lost for 5 s, and then the network is back.

mod common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::Encryption;
use std::time::Duration;

/// A game's traffic both ways; the network is away for 5 s. How long after its return everything from before was there.
fn recovery(rtt: u64, seed: u64) -> [Duration; 2] {
    let mut pair = Pair::connect(seed, Link::default().delay(ms(rtt) / 2), Encryption::Plain);
    let (client, server) = (pair.client, pair.server);
    let frame = Duration::from_nanos(1_000_000_000 / 60);
    let start = pair.net.now();
    // Not in step with the frames.
    let cut = start + secs(2) + Duration::from_micros(1_234 * seed);
    pair.net.schedule_at(cut, move |net| net.partition(client, server, true));
    pair.net.schedule_at(cut + secs(5), move |net| net.partition(client, server, false));
    let mut before_return = 0;
    for number in 0..60 * 10 {
        pair.net.run_until(start + frame * number);
        if pair.net.now() <= cut + secs(5) {
            before_return = number as usize;
        }
        pair.client_send(&numbered(number, 100));
        pair.server_send(&numbered(number, 100));
    }
    pair.net.run_for(secs(2));
    assert_eq!(pair.server_heard().len(), 600);
    assert_eq!(pair.client().heard.len(), 600);
    let late = |heard: &[(std::time::Instant, Vec<u8>)]| heard[before_return].0 - (cut + secs(5));
    [late(pair.server_heard()), late(&pair.client().heard)]
}

#[test]
fn s25_everything_is_there_one_rtt_and_100_ms_after_the_network_is() {
    for rtt in [10, 50, 150] {
        for seed in 0..10 {
            let times = recovery(rtt, seed);
            for time in times {
                assert!(time <= ms(rtt + 100), "rtt {rtt}, seed {seed}: {times:?}");
            }
        }
    }
}

#[test]
fn s25_bulk_goes_on_after_an_outage() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)).bottleneck(16_000_000, 64_000));
    let (client, server) = (pair.client, pair.server);
    pair.net.schedule_in(secs(1), move |net| net.partition(client, server, true));
    pair.net.schedule_in(secs(6), move |net| net.partition(client, server, false));
    let mut sent = 0;
    for _ in 0..200 {
        pair.net.with(server, |app, now| {
            let player = app.player();
            while app.endpoint.send(now, player, &numbered(sent, 400)).is_ok() {
                sent += 1;
            }
        });
        pair.net.run_for(ms(50));
    }
    let heard: Vec<u32> = pair.client().heard.iter().map(|(_, message)| number_of(message)).collect();
    assert!(heard.len() > 15_000, "{}", heard.len());
    assert!(heard.iter().copied().eq(0..heard.len() as u32));
    let wasted = pair.net.counters(server, client).partitioned.bytes;
    assert!(wasted < 400_000, "{wasted} bytes into the void");
}

#[test]
fn half_of_the_acks_lost_costs_little() {
    let mut pair = Pair::plain(4, Link::default().delay(ms(25)));
    let mut toss = 0u32;
    pair.net.set_filter(move |packet| {
        toss = toss.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let ack = packet.bytes.first() == Some(&0xff);
        if ack && toss >> 31 == 1 {
            rallypoint_netsim::FilterAction::Drop
        } else {
            rallypoint_netsim::FilterAction::Pass
        }
    });
    for number in 0..600 {
        pair.client_send(&numbered(number, 100));
        pair.net.run_for(ms(16));
    }
    pair.net.run_for(secs(1));
    assert_eq!(pair.server_heard().len(), 600);
    let stats = pair.client().client.connection().unwrap().stats();
    // What is lost is not the messages but their acks, which looks the same; then each is sent twice, and hardly ever again.
    assert!(stats.resends < 100 && stats.copies <= 600, "{stats:?}");
}
