//! Forged sources use up the total; servers that were known before are not affected.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate};
use std::{net::IpAddr, time::Instant};

fn config() -> LimiterConfig {
    LimiterConfig { total: packets(Rate::per_second(200, 800)), max_entries: 1024, ..LimiterConfig::default() }
}

/// Honest servers refresh every 30 s for five minutes; the flood begins after one minute, at five times the total.
/// Returns the number of refreshes that were refused.
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
        // Each server refreshes at its own time within the 30 seconds.
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
fn random_ipv4_sources() {
    let mut rng = TestRng::new(4);
    assert_eq!(refused_refreshes(&config(), &honest(), || rng.v4()), 0);
}

#[test]
fn random_ipv6_sources() {
    let mut rng = TestRng::new(5);
    assert_eq!(refused_refreshes(&config(), &honest(), || rng.v6_in("3000::", 4)), 0);
}

#[test]
fn without_a_reserved_part_the_same_flood_is_harmful() {
    let mut rng = TestRng::new(6);
    let config = LimiterConfig { reserved_percent: 0, ..config() };
    assert!(refused_refreshes(&config, &honest(), || rng.v4()) > 300, "refreshes are refused");
}
