//! What can somebody do who really owns a network?

mod common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// Sends as much as possible for a minute, from any address. Gives the number of packets that passed, and the limiter.
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
fn with_one_address() {
    let (passed, limiter) = attack(|| ip("192.0.2.1"));
    assert_eq!(passed, 300 + 10 * 60 - 1);
    assert_eq!(limiter.stats().total_refused(), limiter.stats().refused(refusal(Scope::Host)));
}

#[test]
fn with_a_24() {
    let mut chance = Chance(1);
    let (passed, limiter) = attack(|| ip(&format!("192.0.2.{}", chance.below(256))));
    assert_eq!(passed, 4_000 + 200 * 60 - 1);
    assert!(limiter.stats().known <= 256);
}

#[test]
fn with_a_56() {
    let mut chance = Chance(2);
    let (passed, limiter) = attack(|| chance.v6_in("2001:db8::", 56));
    assert_eq!(passed, 4_000 + 200 * 60 - 1);
    assert_eq!(limiter.stats().known, 1, "one customer, one seat");
}

#[test]
fn with_a_48() {
    let mut chance = Chance(3);
    let (passed, limiter) = attack(|| chance.v6_in("2001:db8::", 48));
    assert_eq!(passed, 8_000 + 400 * 60 - 1);
    assert!(limiter.stats().known <= 256);
    assert_eq!(limiter.stats().total_refused(), limiter.stats().refused(refusal(Scope::Site)));
}

fn refusal(scope: Scope) -> rallypoint_limit::OverBudget {
    rallypoint_limit::OverBudget { scope, unit: Unit::Packets }
}
