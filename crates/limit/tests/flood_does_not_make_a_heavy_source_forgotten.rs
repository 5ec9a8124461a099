//! Who has used up a budget can't get a new one by flooding the table with other sources.

mod common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::time::Instant;

#[test]
fn not_with_random_sources() {
    let config = LimiterConfig {
        host: packets(Rate::per_minute(1, 3)),
        net: packets(Rate::per_minute(10, 1000)),
        max_entries: 64,
        ..unlimited()
    };
    let mut limiter = Limiter::new(&config, 3);
    let (now, mut chance) = (Instant::now(), Chance(1));
    for _ in 0..3 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), Decision::Allowed);
    }
    for _ in 0..100_000 {
        let _ = limiter.check(now, chance.v4(), 100);
        let _ = limiter.check(now, chance.v6_in("3000::", 4), 100);
    }
    assert!(limiter.stats().evicted > 100_000);
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), refused(Scope::Host, Unit::Packets));
}

#[test]
fn not_when_every_seat_is_taken() {
    let config = LimiterConfig { host: packets(Rate::per_minute(1, 3)), max_entries: 64, ..unlimited() };
    let mut limiter = Limiter::new(&config, 3);
    let (now, mut chance) = (Instant::now(), Chance(2));
    for _ in 0..10_000 {
        limiter.vouch(now, chance.v4());
    }
    for _ in 0..3 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), Decision::Allowed);
    }
    for _ in 0..10_000 {
        let _ = limiter.check(now, chance.v4(), 100);
    }
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), refused(Scope::Host, Unit::Packets));
}
