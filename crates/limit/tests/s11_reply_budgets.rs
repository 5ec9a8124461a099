//! Replies to unverified addresses are limited in bytes per address, per /24 or /56, and in total.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// Size of the reply to a query of one byte, in bytes.
const REPLY: usize = 3188;

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

/// Number of bytes sent in reply to a minute of queries, a thousand per second.
fn sent_in_a_minute(mut victim: impl FnMut() -> IpAddr) -> usize {
    let mut limiter = Limiter::new(&config(), 1);
    let start = Instant::now();
    (0..60_000).filter(|&step| limiter.check(start + ms(step), victim(), REPLY).is_allowed()).count() * REPLY
}

#[test]
fn s11_one_address() {
    assert!(sent_in_a_minute(|| ip("192.0.2.1")) <= 16_000 + 60 * 4_000);
}

#[test]
fn s11_one_network() {
    let mut rng = TestRng::new(1);
    assert!(sent_in_a_minute(|| ip(&format!("192.0.2.{}", rng.below(256)))) <= 64_000 + 60 * 16_000);
    assert!(sent_in_a_minute(|| rng.v6_in("2001:db8::", 56)) <= 64_000 + 60 * 16_000);
    assert!(sent_in_a_minute(|| rng.v6_in("2001:db8::", 48)) <= 128_000 + 60 * 32_000);
}

#[test]
fn s11_all_addresses() {
    let mut rng = TestRng::new(2);
    let sent = sent_in_a_minute(|| rng.v4());
    assert!(sent <= 4_000_000 + 60 * 1_000_000);
    assert!(sent >= 60 * 1_000_000, "and the budget is used");
}

#[test]
fn s11_a_refusal_has_a_reason() {
    let mut limiter = Limiter::new(&config(), 1);
    let now = Instant::now();
    for _ in 0..5 {
        assert_eq!(limiter.check(now, ip("192.0.2.1"), REPLY), Decision::Allowed);
    }
    let over = limiter.check(now, ip("192.0.2.1"), REPLY);
    assert_eq!(over, refused(Scope::Host, Unit::Bytes));
    assert_eq!(over.to_string(), "over_budget_host_bytes");
    assert_eq!(limiter.check(now, ip("192.0.2.1"), 60), Decision::Allowed, "a small one still fits");
    assert_eq!(limiter.check(now, ip("192.0.2.9"), 1 << 40), refused(Scope::Host, Unit::Bytes));
}
