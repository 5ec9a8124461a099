//! A source that has used up its budget cannot get a new one by flooding the table with other sources.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::time::Instant;

#[test]
fn random_sources() {
    let config = LimiterConfig {
        host: packets(Rate::per_minute(1, 3)),
        net: packets(Rate::per_minute(10, 1000)),
        max_entries: 64,
        ..unlimited()
    };
    let mut limiter = Limiter::new(&config, 3);
    let now = Instant::now();
    let mut rng = TestRng::new(1);
    for _ in 0..3 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), Decision::Allowed);
    }
    for _ in 0..100_000 {
        let _ = limiter.check(now, rng.v4(), 100);
        let _ = limiter.check(now, rng.v6_in("3000::", 4), 100);
    }
    assert!(limiter.stats().evicted > 100_000);
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), refused(Scope::Host, Unit::Packets));
}

#[test]
fn all_reserved_slots_taken() {
    let config = LimiterConfig { host: packets(Rate::per_minute(1, 3)), max_entries: 64, ..unlimited() };
    let mut limiter = Limiter::new(&config, 3);
    let now = Instant::now();
    let mut rng = TestRng::new(2);
    for _ in 0..10_000 {
        limiter.mark_known(now, rng.v4());
    }
    for _ in 0..3 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), Decision::Allowed);
    }
    for _ in 0..10_000 {
        let _ = limiter.check(now, rng.v4(), 100);
    }
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), refused(Scope::Host, Unit::Packets));
}
