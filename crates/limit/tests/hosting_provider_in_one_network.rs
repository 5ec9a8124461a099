//! A hosting provider fills a network with servers, restarts all of them at once, and is never refused.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig};
use std::{net::IpAddr, time::Instant};

fn host_servers(addresses: &[IpAddr], servers_per_address: u64) {
    let mut limiter = Limiter::new(&LimiterConfig::default(), 7);
    let start = Instant::now();
    let mut rng = TestRng::new(3);
    for round in 0..120 {
        let round_starts = start + secs(round * 30);
        // The first round is a restart: all within a second. Later refreshes are spread at random.
        let width = if round == 0 { 1 } else { 30 };
        let mut datagrams: Vec<_> = addresses
            .iter()
            .flat_map(|&address| {
                let events = rng.below(4);
                (0..servers_per_address + events).map(move |_| address)
            })
            .collect::<Vec<_>>()
            .into_iter()
            .map(|address| (round_starts + ms(rng.below(width * 1000)), address))
            .collect();
        datagrams.sort();
        for (now, address) in datagrams {
            assert_eq!(limiter.check(now, address, 700), Decision::Allowed, "{address} in round {round}");
        }
    }
}

#[test]
fn three_servers_on_each_of_250_addresses() {
    let addresses: Vec<_> = (1..=250).map(|last| ip(&format!("10.9.8.{last}"))).collect();
    host_servers(&addresses, 3);
}

#[test]
fn one_server_on_each_of_500_addresses_in_one_ipv6_network() {
    let addresses: Vec<_> = (1..=500).map(|last| ip(&format!("2001:db8:1:2::{last:x}"))).collect();
    host_servers(&addresses, 1);
}

#[test]
fn thirty_two_servers_on_each_of_20_addresses() {
    let addresses: Vec<_> = (1..=20).map(|last| ip(&format!("10.9.8.{last}"))).collect();
    host_servers(&addresses, 32);
}
