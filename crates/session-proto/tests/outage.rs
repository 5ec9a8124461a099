//! The network loses everything for 5 s, and then works again.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Encryption, ONLY_CHANNEL};
use std::time::Duration;

/// Game traffic both ways, with an outage of 5 s. Returns how long after the outage the messages from before its end have
/// arrived, in each direction.
fn recovery(rtt: u64, seed: u64) -> [Duration; 2] {
    let mut pair = Pair::connect(seed, Link::default().delay(ms(rtt) / 2), Encryption::Plain);
    let client = pair.client;
    let server = pair.server;
    let frame = Duration::from_nanos(1_000_000_000 / 60);
    let start = pair.net.now();
    // The outage does not start on a frame boundary.
    let cut = start + secs(2) + Duration::from_micros(1_234 * seed);
    pair.net.schedule_at(cut, move |net| net.partition(client, server, true));
    pair.net.schedule_at(cut + secs(5), move |net| net.partition(client, server, false));
    let mut sent_before_end = 0;
    for number in 0..60 * 10 {
        pair.net.run_until(start + frame * number);
        if pair.net.now() <= cut + secs(5) {
            sent_before_end = number as usize;
        }
        pair.client_send(&numbered(number, 100));
        pair.server_send(&numbered(number, 100));
    }
    pair.net.run_for(secs(2));
    assert_eq!(pair.server_received().len(), 600);
    assert_eq!(pair.client().received.len(), 600);
    let delay = |received: &[(std::time::Instant, Vec<u8>)]| received[sent_before_end].0 - (cut + secs(5));
    [delay(pair.server_received()), delay(&pair.client().received)]
}

#[test]
fn s25_everything_is_delivered_one_rtt_and_100_ms_after_an_outage() {
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
fn s25_a_bulk_transfer_continues_after_an_outage() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)).bottleneck(16_000_000, 64_000));
    let client = pair.client;
    let server = pair.server;
    pair.net.schedule_in(secs(1), move |net| net.partition(client, server, true));
    pair.net.schedule_in(secs(6), move |net| net.partition(client, server, false));
    let mut sent = 0;
    for _ in 0..200 {
        pair.net.with(server, |app, now| {
            let player = app.player();
            while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(sent, 400)).is_ok() {
                sent += 1;
            }
        });
        pair.net.run_for(ms(50));
    }
    let received: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.len() > 15_000, "{}", received.len());
    assert!(received.iter().copied().eq(0..received.len() as u32));
    let wasted = pair.net.counters(server, client).partitioned.bytes;
    assert!(wasted < 400_000, "{wasted} bytes sent during the outage");
}

#[test]
fn the_loss_of_half_of_the_acks_costs_little() {
    let mut pair = Pair::plain(4, Link::default().delay(ms(25)));
    let mut random = 0u32;
    pair.net.set_filter(move |packet| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let is_ack = packet.bytes.first() == Some(&0xff);
        if is_ack && random >> 31 == 1 {
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
    assert_eq!(pair.server_received().len(), 600);
    let stats = pair.client().client.connection().unwrap().stats();
    // Lost acks look like lost messages, so each message is sent twice, and hardly ever a third time.
    assert!(stats.resends < 100 && stats.copies <= 600, "{stats:?}");
}
