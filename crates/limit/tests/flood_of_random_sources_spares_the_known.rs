//! Forged sources use up the total; servers that were there before don't notice.

mod common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate};
use std::{net::IpAddr, time::Instant};

fn config() -> LimiterConfig {
    LimiterConfig { total: packets(Rate::per_second(200, 800)), max_entries: 1024, ..LimiterConfig::default() }
}

/// Honest servers refresh every 30 s for five minutes; the flood begins after one, at five times the total.
/// Gives the number of refreshes that were refused.
fn refused_refreshes(config: &LimiterConfig, honest: &[IpAddr], mut forged: impl FnMut() -> IpAddr) -> u64 {
    let mut limiter = Limiter::new(config, 11);
    let start = Instant::now();
    let mut refused = 0;
    for slot in 0..5 * 60 * 10 {
        let now = start + ms(slot * 100);
        let seconds = slot / 10;
        if seconds >= 60 {
            for _ in 0..100 {
                let _ = limiter.check(now, forged(), 100);
            }
        }
        // Each server has its own moment within the 30 seconds.
        for (index, &server) in honest.iter().enumerate() {
            if slot % 300 == index as u64 * 3 {
                refused += u64::from(limiter.check(now, server, 700) != Decision::Allowed);
            }
        }
    }
    assert!(limiter.stats().total_refused() > 150_000, "there was a flood");
    refused
}

fn honest() -> Vec<IpAddr> {
    (0..80).map(|n| ip(&format!("10.0.{n}.1"))).chain((0..20).map(|n| ip(&format!("2001:db8:{n:x}::1")))).collect()
}

#[test]
fn when_the_sources_are_random_ipv4_addresses() {
    let mut chance = Chance(4);
    assert_eq!(refused_refreshes(&config(), &honest(), || chance.v4()), 0);
}

#[test]
fn when_the_sources_are_random_ipv6_addresses() {
    let mut chance = Chance(5);
    assert_eq!(refused_refreshes(&config(), &honest(), || chance.v6_in("3000::", 4)), 0);
}

#[test]
fn because_a_part_of_the_total_is_reserved() {
    let mut chance = Chance(6);
    let config = LimiterConfig { reserved_percent: 0, ..config() };
    assert!(refused_refreshes(&config, &honest(), || chance.v4()) > 300, "without it the same flood is felt");
}
