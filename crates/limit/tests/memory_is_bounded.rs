//! The tables keep their size with any number of sources.

use crate::common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate, TokenBuckets};
use std::time::Instant;

#[test]
fn a_flood_of_forged_sources_does_not_grow_a_limiter() {
    let budget = packets(Rate::per_second(10, 10));
    let config = LimiterConfig { host: budget, net: budget, site: budget, max_entries: 2_000, ..unlimited() };
    let mut limiter = Limiter::new(&config, 9);
    let memory = limiter.memory();
    let mut rng = TestRng::new(1);
    assert!(memory <= 56 * config.max_entries);
    let start = Instant::now();
    for step in 0..100_000 {
        let now = start + ms(step);
        assert!(limiter.check(now, rng.v4(), 100).is_allowed());
        assert!(limiter.check(now, rng.v6_in("3000::", 4), 100).is_allowed());
    }
    let stats = limiter.stats();
    assert_eq!(limiter.memory(), memory);
    assert!(stats.hosts <= 2_000 && stats.hosts > 1_990, "{stats:?}");
    assert!(stats.nets <= 1_000 && stats.sites <= 500);
    assert!(stats.evicted > 490_000, "nearly all were new: {stats:?}");
}

#[test]
fn many_keys_do_not_grow_token_buckets() {
    let mut buckets = TokenBuckets::new(Rate::per_second(1, 1), 1000, 9);
    let now = Instant::now();
    for key in 0..100_000_u64 {
        assert!(buckets.take(now, key));
    }
    assert_eq!((buckets.entries(), buckets.capacity()), (1000, 1000));
}
