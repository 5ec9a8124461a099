//! A path that becomes slower is measured, although every message is resent before its first ack can arrive (W75).

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use std::time::Duration;

#[test]
fn w75_resends_end_soon_after_the_path_has_become_slower() {
    for (before, after) in [(10, 150), (50, 150), (50, 200), (100, 400)] {
        let mut pair = Pair::plain(1, Link::default().delay(ms(before) / 2));
        let mut number = 0;
        let mut send_for = |pair: &mut Pair, seconds: u32| {
            let resends = pair.client().client.connection().unwrap().stats().resends;
            for _ in 0..60 * seconds {
                pair.client_send(&numbered(number, 100));
                number += 1;
                pair.net.run_for(Duration::from_nanos(1_000_000_000 / 60));
            }
            let stats = pair.client().client.connection().unwrap().stats();
            (stats.resends - resends, stats.rtt.unwrap())
        };
        send_for(&mut pair, 3);
        pair.net.set_default_link(Link::default().delay(ms(after) / 2));
        send_for(&mut pair, 3);
        let (resends, rtt) = send_for(&mut pair, 3);
        println!("{before} ms, then {after}: {resends} resends, {rtt:?}");
        assert_eq!(resends, 0, "{before} ms, then {after}");
        assert!(rtt.abs_diff(ms(after)) <= ms(after) / 10, "{before} ms, then {after}: {rtt:?}");
    }
}

#[test]
fn w75_streams_settle_within_a_second_after_a_short_path_has_become_long() {
    for (rate, before, after) in [(200, 0, 100), (200, 2, 100), (200, 0, 50), (60, 0, 100), (100, 10, 100)] {
        for len in [30, 100] {
            let mut pair = Pair::plain(1, Link::default().delay(ms(before) / 2));
            let mut number = 0;
            let mut max_unacked = 0;
            let mut send_for_a_second = |pair: &mut Pair| {
                let resends = pair.client().client.connection().unwrap().stats().resends;
                for _ in 0..rate {
                    pair.client_send(&numbered(number, len));
                    number += 1;
                    pair.net.run_for(secs(1) / rate);
                    max_unacked = max_unacked.max(pair.client().client.connection().unwrap().stats().unacked);
                }
                pair.client().client.connection().unwrap().stats().resends - resends
            };
            for _ in 0..3 {
                send_for_a_second(&mut pair);
            }
            pair.net.set_default_link(Link::default().delay(ms(after) / 2));
            let first = send_for_a_second(&mut pair);
            let second = send_for_a_second(&mut pair);
            println!(
                "{rate}/s of {len} bytes, {before} ms, then {after}: {first}, {second} resends, {max_unacked} unacked"
            );
            assert_eq!(second, 0, "{rate}/s of {len} bytes, {before} ms, then {after}");
            // Two round trips.
            let limit = 2 * u64::from(rate) * after / 1_000 + 4;
            assert!(max_unacked as u64 <= limit, "{rate}/s of {len} bytes, {before} ms, then {after}: {max_unacked}");
        }
    }
}
