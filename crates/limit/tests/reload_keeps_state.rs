//! New budgets at run time: what was used stays used, who was known stays known.

mod common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, TokenBuckets, Unit};
use std::time::Instant;

fn host(rate: Rate) -> LimiterConfig {
    LimiterConfig { host: packets(rate), ..unlimited() }
}

#[test]
fn an_empty_bucket_stays_empty() {
    let (mut limiter, now) = (Limiter::new(&host(Rate::per_second(1, 5)), 1), Instant::now());
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&host(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
}

#[test]
fn after_a_change_nobody_is_worse_off_than_with_an_empty_bucket() {
    // An hour is missing in the bucket under the old rate; under the new one it is never more than five seconds.
    let (mut limiter, now) = (Limiter::new(&host(Rate::per_minute(1, 60)), 1), Instant::now());
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&host(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
}

#[test]
fn the_total_is_no_worse_off_either() {
    let total = |rate| LimiterConfig { total: packets(rate), reserved_percent: 0, ..unlimited() };
    let (mut limiter, now) = (Limiter::new(&total(Rate::per_minute(1, 60)), 1), Instant::now());
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&total(Rate::per_second(1, 5)));
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Total, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip("10.0.0.1"), 0), Decision::Allowed);
}

#[test]
fn no_limit_forgives_everything() {
    let (mut limiter, now) = (Limiter::new(&host(Rate::per_minute(1, 60)), 1), Instant::now());
    while limiter.check(now, ip("10.0.0.1"), 0).is_allowed() {}
    limiter.set_config(&unlimited());
    limiter.set_config(&host(Rate::per_minute(1, 60)));
    assert_eq!((0..100).filter(|_| limiter.check(now, ip("10.0.0.1"), 0).is_allowed()).count(), 60);
}

#[test]
fn a_higher_rate_is_felt_at_once() {
    let (mut limiter, now) = (Limiter::new(&host(Rate::per_second(1, 1)), 1), Instant::now());
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), Decision::Allowed);
    limiter.set_config(&host(Rate::per_second(100, 500)));
    for _ in 0..400 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), Decision::Allowed);
    }
}

#[test]
fn another_table_size_keeps_the_entries() {
    let config = |max_entries| LimiterConfig { max_entries, ..host(Rate::per_minute(1, 1)) };
    let (mut limiter, now) = (Limiter::new(&config(4096), 1), Instant::now());
    let sources: Vec<_> = (0..100).map(|n| ip(&format!("10.0.{n}.1"))).collect();
    for &source in &sources {
        assert_eq!(limiter.check(now, source, 0), Decision::Allowed);
        assert!(limiter.vouch(now, source));
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
fn a_table_that_is_too_small_keeps_the_known() {
    let config = |max_entries| LimiterConfig { max_entries, ..host(Rate::per_minute(1, 1)) };
    let (mut limiter, now) = (Limiter::new(&config(4096), 1), Instant::now());
    let mut chance = Chance(1);
    for n in 0..1000 {
        let _ = limiter.check(now, chance.v4(), 0);
        if n % 500 == 0 {
            assert!(limiter.vouch(now, chance.v4()));
        }
    }
    limiter.set_config(&config(8));
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 2));
    for _ in 0..50 {
        limiter.vouch(now, chance.v4());
    }
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 6));
    limiter.set_config(&config(4096));
    assert_eq!((limiter.stats().hosts, limiter.stats().known), (8, 6));
}

#[test]
fn the_table_of_one_rate_reloads_as_well() {
    let (mut buckets, now) = (TokenBuckets::new(Rate::per_minute(1, 1), 64, 1), Instant::now());
    assert!(buckets.take(now, 1_u64));
    buckets.set_rate(Rate::per_second(1, 1));
    assert!(!buckets.take(now, 1_u64));
    assert!(buckets.take(now + secs(1), 1_u64));
    assert!(buckets.take(now + secs(2), 1_u64));
}
