//! Which sources get a share of the reserved part of the total, and which lose it.

use crate::common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate};
use std::{net::IpAddr, time::Instant};

/// One packet per minute in total, ten at once: after five, only the reserved part is left.
fn limiter() -> Limiter {
    Limiter::new(&LimiterConfig { total: packets(Rate::per_minute(1, 10)), max_entries: 8, ..unlimited() }, 1)
}

const SOURCE: &str = "10.0.0.1";

/// Whether the source passes although the rest of the total is used up.
fn is_known_at(limiter: &mut Limiter, now: Instant, source: IpAddr) -> bool {
    let mut rng = TestRng::new(1);
    while limiter.check(now, rng.v4(), 0).is_allowed() {}
    limiter.check(now, source, 0).is_allowed()
}

#[test]
fn a_source_that_comes_back_after_ten_seconds_is_known() {
    let mut limiter = limiter();
    let start = Instant::now();
    assert!(limiter.check(start, ip(SOURCE), 0).is_allowed());
    assert!(!is_known_at(&mut limiter, start + ms(9_999), ip(SOURCE)));
    assert!(is_known_at(&mut limiter, start + ms(10_000), ip(SOURCE)));
}

#[test]
fn a_source_that_comes_back_after_three_minutes_is_not_known() {
    let mut limiter = limiter();
    let start = Instant::now();
    assert!(limiter.check(start, ip(SOURCE), 0).is_allowed());
    assert!(!is_known_at(&mut limiter, start + secs(180), ip(SOURCE)));
}

#[test]
fn a_known_source_is_forgotten_after_two_minutes() {
    let mut limiter = limiter();
    let start = Instant::now();
    assert!(limiter.mark_known(start, ip(SOURCE)));
    assert!(is_known_at(&mut limiter, start + secs(119), ip(SOURCE)));
    assert!(!is_known_at(&mut limiter, start + secs(119 + 121), ip(SOURCE)));
}

#[test]
fn a_source_can_be_marked_known_at_once() {
    let mut limiter = limiter();
    let start = Instant::now();
    assert!(limiter.mark_known(start, ip(SOURCE)));
    assert!(limiter.mark_known(start, ip(SOURCE)), "marking it twice is allowed");
    assert_eq!(limiter.stats().known, 1);
    assert!(is_known_at(&mut limiter, start, ip(SOURCE)));
}

#[test]
fn a_source_that_never_passed_is_not_known() {
    let mut limiter = limiter();
    let start = Instant::now();
    for tenth in 0..600 {
        assert!(!is_known_at(&mut limiter, start + ms(tenth * 100), ip(SOURCE)));
    }
}

#[test]
fn new_sources_do_not_evict_known_ones() {
    let mut limiter = limiter();
    let start = Instant::now();
    let mut rng = TestRng::new(2);
    let known: Vec<_> = (0..100).map(|_| rng.v4()).filter(|&source| limiter.mark_known(start, source)).collect();
    assert_eq!(known.len(), 6, "of the eight slots of the only set");
    for second in 0..300 {
        let now = start + secs(second);
        // New sources, each of them several times so that they could become known.
        let newcomer = ip(&format!("10.0.{}.1", second / 20 % 200));
        let _ = limiter.check(now, newcomer, 0);
        assert!(!limiter.mark_known(now, newcomer));
        for &source in known.iter().filter(|_| second % 60 == 0) {
            assert!(limiter.mark_known(now, source), "still known at {second} s");
            let _ = limiter.check(now, source, 0);
        }
    }
    assert_eq!(limiter.stats().known, 6);
}
