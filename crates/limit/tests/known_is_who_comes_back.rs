//! Who gets a share of the reserved part of the total, and who loses it.

mod common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate};
use std::{net::IpAddr, time::Instant};

/// One packet per minute in total, ten at once: after five, only what is reserved is left.
fn limiter() -> Limiter {
    Limiter::new(&LimiterConfig { total: packets(Rate::per_minute(1, 10)), max_entries: 8, ..unlimited() }, 1)
}

const SOURCE: &str = "10.0.0.1";

/// Whether the source passes although the rest of the total is used up.
fn is_known_at(limiter: &mut Limiter, now: Instant, source: IpAddr) -> bool {
    let mut chance = Chance(1);
    while limiter.check(now, chance.v4(), 0).is_allowed() {}
    limiter.check(now, source, 0).is_allowed()
}

#[test]
fn after_ten_seconds() {
    let (mut limiter, start) = (limiter(), Instant::now());
    assert!(limiter.check(start, ip(SOURCE), 0).is_allowed());
    assert!(!is_known_at(&mut limiter, start + ms(9_999), ip(SOURCE)));
    assert!(is_known_at(&mut limiter, start + ms(10_000), ip(SOURCE)));
}

#[test]
fn but_not_after_three_minutes() {
    let (mut limiter, start) = (limiter(), Instant::now());
    assert!(limiter.check(start, ip(SOURCE), 0).is_allowed());
    assert!(!is_known_at(&mut limiter, start + secs(180), ip(SOURCE)));
}

#[test]
fn and_not_when_it_has_been_away_for_long() {
    let (mut limiter, start) = (limiter(), Instant::now());
    assert!(limiter.vouch(start, ip(SOURCE)));
    assert!(is_known_at(&mut limiter, start + secs(119), ip(SOURCE)));
    assert!(!is_known_at(&mut limiter, start + secs(119 + 121), ip(SOURCE)));
}

#[test]
fn at_once_when_somebody_vouches_for_it() {
    let (mut limiter, start) = (limiter(), Instant::now());
    assert!(limiter.vouch(start, ip(SOURCE)));
    assert!(limiter.vouch(start, ip(SOURCE)), "twice is no mistake");
    assert_eq!(limiter.stats().known, 1);
    assert!(is_known_at(&mut limiter, start, ip(SOURCE)));
}

#[test]
fn and_not_when_it_never_passed() {
    let (mut limiter, start) = (limiter(), Instant::now());
    for tenth in 0..600 {
        assert!(!is_known_at(&mut limiter, start + ms(tenth * 100), ip(SOURCE)));
    }
}

#[test]
fn seats_are_not_taken_from_those_who_sit() {
    let (mut limiter, start) = (limiter(), Instant::now());
    let mut chance = Chance(2);
    let seated: Vec<_> = (0..100).map(|_| chance.v4()).filter(|&source| limiter.vouch(start, source)).collect();
    assert_eq!(seated.len(), 6, "of the eight places of the only set");
    for second in 0..300 {
        let now = start + secs(second);
        // Newcomers, each of them twice so that they would be known.
        let newcomer = ip(&format!("10.0.{}.1", second / 20 % 200));
        let _ = limiter.check(now, newcomer, 0);
        assert!(!limiter.vouch(now, newcomer));
        for &source in seated.iter().filter(|_| second % 60 == 0) {
            assert!(limiter.vouch(now, source), "still known at {second} s");
            let _ = limiter.check(now, source, 0);
        }
    }
    assert_eq!(limiter.stats().known, 6);
}
