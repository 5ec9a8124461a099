//! The statistics of a connection show the loss and the round-trip time of the network, whatever is done about them.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::ConnectionStats;
use std::time::Duration;

/// Statistics of a client that sends `messages` messages of 100 bytes, one per `interval`.
fn stats_after(seed: u64, link: Link, messages: u32, interval: Duration) -> ConnectionStats {
    let mut pair = Pair::plain(seed, link);
    for number in 0..messages {
        pair.client_send(&numbered(number, 100));
        pair.net.run_for(interval);
    }
    pair.client().client.connection().unwrap().stats()
}

#[test]
fn loss_is_shown_within_a_tenth_of_the_truth_although_copies_hide_it() {
    for percent in [1, 2, 5, 10, 20, 30] {
        let loss = f64::from(percent) / 100.0;
        let link = Link::default().delay(ms(25)).loss(loss);
        // Three minutes of a game. A single minute of chance would be further off than what is tested.
        let shown: Vec<f64> =
            (0..24).map(|seed| stats_after(seed, link, 10_800, Duration::from_micros(16_667)).loss).collect();
        let mean = shown.iter().sum::<f64>() / shown.len() as f64;
        println!("{percent} %: {:.2} % of {shown:.3?}", mean * 100.0);
        assert!((mean - loss).abs() <= 0.1 * loss, "{percent} %: {mean}, {shown:?}");
    }
}

/// Mean loss that a client shows after it has sent 3,000 messages of 40 bytes, ten per second.
fn mean_loss_of_a_sparse_stream(uplink: Link, downlink: Link) -> f64 {
    let seeds = 16;
    let shown = (0..seeds).map(|seed| {
        let mut pair = Pair::plain(seed, Link::default().delay(ms(25)));
        let (client, server) = (pair.client, pair.server);
        pair.net.set_link(client, server, uplink);
        pair.net.set_link(server, client, downlink);
        for number in 0..3_000 {
            pair.client_send(&numbered(number, 40));
            pair.net.run_for(ms(100));
        }
        pair.client().client.connection().unwrap().stats().loss
    });
    shown.sum::<f64>() / seeds as f64
}

#[test]
fn w82_lost_acks_of_a_sparse_stream_do_not_count_as_lost_messages() {
    let link = Link::default().delay(ms(25));
    for percent in [5, 10, 30] {
        let loss = f64::from(percent) / 100.0;
        let mean = mean_loss_of_a_sparse_stream(link.loss(loss), link.loss(loss));
        println!("{percent} %: {:.2} %", mean * 100.0);
        assert!((mean - loss).abs() <= 0.1 * loss, "{percent} %: {mean}");
        let mean = mean_loss_of_a_sparse_stream(link.loss(loss), link);
        println!("{percent} % of the messages: {:.2} %", mean * 100.0);
        assert!((mean - loss).abs() <= 0.1 * loss, "{percent} % of the messages: {mean}");
        let mean = mean_loss_of_a_sparse_stream(link, link.loss(loss));
        println!("{percent} % of the acks: {:.2} %", mean * 100.0);
        assert!(mean <= 0.1 * loss, "{percent} % of the acks: {mean}");
    }
}

#[test]
fn w82_loss_is_shown_within_a_tenth_of_the_truth_at_the_end_of_a_download() {
    for percent in [2, 10, 30] {
        let loss = f64::from(percent) / 100.0;
        let seeds = 6;
        let shown = (0..seeds).map(|seed| {
            let mut pair = Pair::plain(seed, Link::default().delay(ms(25)).loss(loss));
            let mut next = 0;
            while next < 20_000 {
                pair.net.with(pair.server, |app, now| {
                    let player = app.player();
                    while next < 20_000 && app.endpoint.send(now, player, &numbered(next, 400)).is_ok() {
                        next += 1;
                    }
                });
                pair.net.run_for(ms(2));
            }
            pair.net.run_for(secs(2));
            let server = pair.server();
            server.endpoint.connection(server.player()).unwrap().stats().loss
        });
        let mean = shown.sum::<f64>() / f64::from(seeds as u32);
        println!("{percent} %: {:.2} %", mean * 100.0);
        assert!((mean - loss).abs() <= 0.1 * loss, "{percent} %: {mean}");
    }
}

#[test]
fn the_round_trip_time_is_shown_within_a_tenth_of_the_truth_at_any_rate() {
    for rtt in [10, 20, 50, 150] {
        for rate in [5, 20, 30, 45, 60, 120] {
            let link = Link::default().delay(ms(rtt) / 2);
            let shown = stats_after(1, link, 300, secs(1) / rate).rtt.unwrap();
            assert!(shown.abs_diff(ms(rtt)) <= ms(rtt) / 10, "RTT {rtt} ms, {rate} messages/s: {shown:?}");
        }
    }
}
