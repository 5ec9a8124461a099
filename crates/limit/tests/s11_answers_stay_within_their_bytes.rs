//! Answers to addresses that have proved nothing: bytes per address, per /24 or /56, and in total.

mod common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// A query of one byte draws this much.
const ANSWER: usize = 3188;

fn config() -> LimiterConfig {
    LimiterConfig {
        host: bytes(Rate::per_second(4_000, 16_000)),
        net: bytes(Rate::per_second(16_000, 64_000)),
        site: bytes(Rate::per_second(32_000, 128_000)),
        total: bytes(Rate::per_second(1_000_000, 4_000_000)),
        max_entries: 4096,
        ..LimiterConfig::default()
    }
}

/// The bytes that a minute of queries, a thousand per second, makes us send.
fn drawn_in_a_minute(mut victim: impl FnMut() -> IpAddr) -> usize {
    let mut limiter = Limiter::new(&config(), 1);
    let start = Instant::now();
    (0..60_000).filter(|&step| limiter.check(start + ms(step), victim(), ANSWER).is_allowed()).count() * ANSWER
}

#[test]
fn s11_one_address() {
    assert!(drawn_in_a_minute(|| ip("192.0.2.1")) <= 16_000 + 60 * 4_000);
}

#[test]
fn s11_one_network() {
    let mut chance = Chance(1);
    assert!(drawn_in_a_minute(|| ip(&format!("192.0.2.{}", chance.below(256)))) <= 64_000 + 60 * 16_000);
    assert!(drawn_in_a_minute(|| chance.v6_in("2001:db8::", 56)) <= 64_000 + 60 * 16_000);
    assert!(drawn_in_a_minute(|| chance.v6_in("2001:db8::", 48)) <= 128_000 + 60 * 32_000);
}

#[test]
fn s11_everybody() {
    let mut chance = Chance(2);
    let drawn = drawn_in_a_minute(|| chance.v4());
    assert!(drawn <= 4_000_000 + 60 * 1_000_000);
    assert!(drawn >= 60 * 1_000_000, "and what is allowed is used");
}

#[test]
fn s11_over_the_limit_means_dropped_with_a_reason() {
    let (mut limiter, now) = (Limiter::new(&config(), 1), Instant::now());
    for _ in 0..5 {
        assert_eq!(limiter.check(now, ip("192.0.2.1"), ANSWER), Decision::Allowed);
    }
    let over = limiter.check(now, ip("192.0.2.1"), ANSWER);
    assert_eq!(over, refused(Scope::Host, Unit::Bytes));
    assert_eq!(over.to_string(), "over_budget_host_bytes");
    assert_eq!(limiter.check(now, ip("192.0.2.1"), 60), Decision::Allowed, "a small one still fits");
    assert_eq!(limiter.check(now, ip("192.0.2.9"), 1 << 40), refused(Scope::Host, Unit::Bytes));
}
