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
