//! A datagram is charged to every budget or to none.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::time::Instant;

#[test]
fn an_address_over_its_budget() {
    let config = LimiterConfig {
        host: packets(Rate::per_minute(1, 2)),
        net: packets(Rate::per_minute(1, 4)),
        total: packets(Rate::per_minute(1, 6)),
        reserved_percent: 0,
        ..unlimited()
    };
    let mut limiter = Limiter::new(&config, 1);
    let now = Instant::now();
    for attempt in 0..1000 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 100).is_allowed(), attempt < 2);
    }
    // Two of the network's four remain, and then two of the total's six.
    for attempt in 0..1000 {
        assert_eq!(limiter.check(now, ip("10.0.0.2"), 100).is_allowed(), attempt < 2);
    }
    assert_eq!(limiter.check(now, ip("10.0.0.3"), 100), refused(Scope::Net, Unit::Packets));
    for attempt in 0..1000 {
        assert_eq!(limiter.check(now, ip("10.0.1.1"), 100).is_allowed(), attempt < 2);
    }
    assert_eq!(limiter.check(now, ip("10.0.2.1"), 100), refused(Scope::Total, Unit::Packets));
    assert_eq!(limiter.stats().allowed, 6);
}

#[test]
fn a_total_that_is_used_up() {
    let config = LimiterConfig {
        host: packets(Rate::per_minute(1, 5)),
        total: packets(Rate::per_second(1, 1)),
        reserved_percent: 0,
        ..unlimited()
    };
    let mut limiter = Limiter::new(&config, 1);
    let now = Instant::now();
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 100), Decision::Allowed);
    for _ in 0..1000 {
        assert_eq!(limiter.check(now, ip("10.0.0.2"), 100), refused(Scope::Total, Unit::Packets));
    }
    assert_eq!(limiter.stats().hosts, 1, "a source that never passed takes no slot");
    for second in 1..=5 {
        assert_eq!(limiter.check(now + secs(second), ip("10.0.0.2"), 100), Decision::Allowed);
    }
}

#[test]
fn too_many_bytes_but_not_too_many_packets() {
    let config = LimiterConfig {
        host: rallypoint_limit::Budget {
            packets: Some(Rate::per_minute(1, 2)),
            bytes: Some(Rate::per_minute(1, 1000)),
        },
        ..unlimited()
    };
    let mut limiter = Limiter::new(&config, 1);
    let now = Instant::now();
    for _ in 0..10 {
        assert_eq!(limiter.check(now, ip("10.0.0.1"), 1001), refused(Scope::Host, Unit::Bytes));
    }
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 500), Decision::Allowed);
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 500), Decision::Allowed);
    assert_eq!(limiter.check(now, ip("10.0.0.1"), 0), refused(Scope::Host, Unit::Packets));
}
