//! When budgets change at run time, what was used stays used, and known sources stay known.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, TokenBuckets, Unit};
use std::time::Instant;

fn host(rate: Rate) -> LimiterConfig {
    LimiterConfig { host: packets(rate), ..unlimited() }
}

#[test]
fn an_empty_bucket_stays_empty() {
    let mut limiter = Limiter::new(&host(Rate::per_second(1, 5)), 1);
    let now = Instant::now();
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&host(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
}

#[test]
fn after_a_change_a_bucket_is_at_worst_empty() {
    // Under the old rate the bucket takes an hour to refill; under the new one never more than five seconds.
    let mut limiter = Limiter::new(&host(Rate::per_minute(1, 60)), 1);
    let now = Instant::now();
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&host(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
}

#[test]
fn after_a_change_the_total_is_at_worst_empty() {
    let total = |rate| LimiterConfig { total: packets(rate), reserved_percent: 0, ..unlimited() };
    let mut limiter = Limiter::new(&total(Rate::per_minute(1, 60)), 1);
    let now = Instant::now();
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&total(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Total, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
}

#[test]
fn removing_a_limit_refills_its_buckets() {
    let mut limiter = Limiter::new(&host(Rate::per_minute(1, 60)), 1);
    let now = Instant::now();
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&unlimited());
    limiter.set_config(&host(Rate::per_minute(1, 60)));
    assert_eq!((0..100).filter(|_| limiter.check(now, ip("10.0.0.1"), 0).is_allowed()).count(), 60);
}

#[test]
fn a_higher_rate_takes_effect_at_once() {
    let mut limiter = Limiter::new(&host(Rate::per_second(1, 1)), 1);
    let now = Instant::now();
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), Decision::Allowed);
    limiter.set_config(&host(Rate::per_second(100, 500)));
    for _ in 0..400 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), Decision::Allowed);
    }
}

#[test]
fn resizing_keeps_the_entries() {
    let config = |max_entries| LimiterConfig { max_entries, ..host(Rate::per_minute(1, 1)) };
    let mut limiter = Limiter::new(&config(4096), 1);
    let now = Instant::now();
    let sources: Vec<_> = (0..100).map(|n| ip(&format!("10.0.{n}.1"))).collect();
    for &source in &sources {
        assert_eq!(limiter.check(now, source, 0), Decision::Allowed);
        assert!(limiter.mark_known(now, source));
    }
    for max_entries in [65_536, 1000, 4096] {
        limiter.set_config(&config(max_entries));
        assert_eq!((limiter.stats().hosts, limiter.stats().known), (100, 100));
        for &source in &sources {
            assert_eq!(limiter.check(now, source, 0), refused(Scope::Host, Unit::Packets));
        }
    }
}

#[test]
fn a_table_that_becomes_too_small_keeps_known_sources() {
    let config = |max_entries| LimiterConfig { max_entries, ..host(Rate::per_minute(1, 1)) };
    let mut limiter = Limiter::new(&config(4096), 1);
    let now = Instant::now();
    let mut rng = TestRng::new(1);
    for n in 0..1000 {
        let _ = limiter.check(now, rng.v4(), 0);
        if n % 500 == 0 {
            assert!(limiter.mark_known(now, rng.v4()));
        }
    }
    limiter.set_config(&config(8));
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 2));
    for _ in 0..50 {
        limiter.mark_known(now, rng.v4());
    }
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 6));
    limiter.set_config(&config(4096));
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 6));
}

#[test]
fn token_buckets_keep_their_state_when_the_rate_changes() {
    let mut buckets = TokenBuckets::new(Rate::per_minute(1, 1), 64, 1);
    let now = Instant::now();
    assert!(buckets.take(now, 1_u64));
    buckets.set_rate(Rate::per_second(1, 1));
    assert!(!buckets.take(now, 1_u64));
    assert!(buckets.take(now + secs(1), 1_u64));
    assert!(buckets.take(now + secs(2), 1_u64));
}
