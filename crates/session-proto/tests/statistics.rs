//! The statistics of a connection show the loss and the round-trip time of the network, whatever is done about them.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ConnectionStats, ONLY_CHANNEL, SessionMachine};
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
        let runs: Vec<_> = (0..4).map(|seed| shown_while_sending(seed, link, link, 60)).collect();
        let mean = |value: fn(&Shown) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
        let (shown, lost) = (mean(|shown| shown.loss), mean(|shown| shown.lost));
        println!("{percent} %: {:.2} %, and {:.2} % shown", lost * 100.0, shown * 100.0);
        assert!((shown - lost).abs() <= 0.1 * lost, "{percent} %: {shown} shown, {lost} lost");
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
                    while next < 20_000 && app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(next, 400)).is_ok() {
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

/// What a client shows while it sends messages, and the truth: the mean of the loss and of the round-trip time, sampled every
/// second, and the share of its datagrams that was lost.
struct Shown {
    loss: f64,
    rtt: Duration,
    lost: f64,
}

fn shown_while_sending(seed: u64, uplink: Link, downlink: Link, rate: u32) -> Shown {
    // The login is not lost.
    let mut pair = Pair::plain(seed, Link { loss: 0.0, ..uplink });
    let (client, server) = (pair.client, pair.server);
    pair.net.set_link(client, server, uplink);
    pair.net.set_link(server, client, downlink);
    let messages = 6_000.max(30 * rate);
    let mut samples: Vec<ConnectionStats> = Vec::new();
    for number in 0..messages {
        let sent = pair.net.with(client, |app, now| app.client.send(now, ONLY_CHANNEL, &numbered(number, 100)));
        assert_eq!(sent.map(drop), Ok(()), "message {number}, {uplink:?}, {rate}/s");
        pair.net.run_for(secs(1) / rate);
        // The first half minute is that of the averages themselves.
        if number.is_multiple_of(rate) && number > messages / 5 {
            samples.push(pair.client().client.connection().unwrap().stats());
        }
    }
    let counters = pair.net.counters(client, server);
    let count = samples.len() as u32;
    Shown {
        loss: samples.iter().map(|stats| stats.loss).sum::<f64>() / f64::from(count),
        rtt: samples.iter().filter_map(|stats| stats.rtt).sum::<Duration>() / count,
        lost: counters.lost().datagrams as f64 / counters.sent.datagrams as f64,
    }
}

/// Loss and round-trip time within a tenth of the truth, on paths that lose in one or both directions.
fn assert_truth(name: &str, is_symmetric: bool) {
    let mut wrong = Vec::new();
    for (percent, rtt) in [(5, 5), (10, 20), (20, 100), (30, 50), (10, 300), (30, 300)] {
        for rate in [5, 20, 60, 200] {
            let path = Link::default().delay(ms(rtt) / 2);
            let link = path.loss(f64::from(percent) / 100.0);
            let runs: Vec<_> = (0..4)
                .map(|seed| shown_while_sending(seed, link, if is_symmetric { link } else { path }, rate))
                .collect();
            let mean = |value: fn(&Shown) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
            let loss = mean(|shown| shown.loss) / mean(|shown| shown.lost);
            let rtt_ratio = mean(|shown| shown.rtt.as_secs_f64()) / ms(rtt).as_secs_f64();
            let line =
                format!("{name}, {percent} %, RTT {rtt} ms, {rate}/s: loss {loss:.2}, RTT {rtt_ratio:.2} of the truth");
            println!("{line}");
            if (loss - 1.0).abs() > 0.1 || (rtt_ratio - 1.0).abs() > 0.1 {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn w82_loss_and_round_trip_time_are_true_with_loss_in_both_directions() {
    assert_truth("both directions", true);
}

#[test]
fn w82_loss_and_round_trip_time_are_true_with_loss_in_one_direction() {
    assert_truth("one direction", false);
}

#[test]
fn the_bytes_per_second_are_those_of_the_last_second() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(10)));
    for number in 0..100 {
        pair.client_send(&numbered(number, 100));
        pair.net.run_for(ms(20));
        if number % 50 == 49 {
            pair.net.with(pair.client, |app, now| app.client.sample_throughput(now));
            pair.net.with(pair.server, |app, now| app.endpoint.sample_throughput(now));
        }
    }
    let client = pair.client().client.connection().unwrap().stats();
    let server = pair.server().endpoint.connection(pair.server().player()).unwrap().stats();
    // 50 messages per second, each with a header, and copies at most.
    assert!((5_000..12_000).contains(&client.bytes_sent_per_second), "{client:?}");
    assert!(server.bytes_received_per_second.abs_diff(client.bytes_sent_per_second) < 500, "{server:?}");
    pair.net.run_for(secs(2));
    pair.net.with(pair.client, |app, now| app.client.sample_throughput(now));
    let idle = pair.client().client.connection().unwrap().stats();
    assert!(idle.bytes_sent_per_second < 100, "{idle:?}");
}
