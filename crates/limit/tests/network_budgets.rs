//! The owner of a whole network cannot exceed the budget of that network.

use crate::common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// Sends as much as possible for a minute, from any address. Returns the number of packets that passed, and the limiter.
fn attack(mut source: impl FnMut() -> IpAddr) -> (u64, Limiter) {
    let mut limiter = Limiter::new(&LimiterConfig::default(), 5);
    let start = Instant::now();
    for step in 0..60_000 {
        let now = start + ms(step);
        for _ in 0..3 {
            let _ = limiter.check(now, source(), 100);
        }
    }
    (limiter.stats().allowed, limiter)
}

#[test]
fn one_address() {
    let (passed, limiter) = attack(|| ip("192.0.2.1"));
    assert_eq!(passed, 300 + 10 * 60 - 1);
    assert_eq!(limiter.stats().total_refused(), limiter.stats().refused(over(Scope::Host)));
}

#[test]
fn an_ipv4_24() {
    let mut rng = TestRng::new(1);
    let (passed, limiter) = attack(|| ip(&format!("192.0.2.{}", rng.below(256))));
    assert_eq!(passed, 4_000 + 200 * 60 - 1);
    assert!(limiter.stats().known <= 256);
}

#[test]
fn an_ipv6_56() {
    let mut rng = TestRng::new(2);
    let (passed, limiter) = attack(|| rng.v6_in("2001:db8::", 56));
    assert_eq!(passed, 4_000 + 200 * 60 - 1);
    assert_eq!(limiter.stats().known, 1, "one customer, one reserved slot");
}

#[test]
fn an_ipv6_48() {
    let mut rng = TestRng::new(3);
    let (passed, limiter) = attack(|| rng.v6_in("2001:db8::", 48));
    assert_eq!(passed, 8_000 + 400 * 60 - 1);
    assert!(limiter.stats().known <= 256);
    assert_eq!(limiter.stats().total_refused(), limiter.stats().refused(over(Scope::Site)));
}

fn over(scope: Scope) -> rallypoint_limit::OverBudget {
    rallypoint_limit::OverBudget { scope, unit: Unit::Packets }
}
