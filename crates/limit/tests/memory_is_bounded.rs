//! However many sources there are, the tables keep their size.

mod common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate, TokenBuckets};
use std::time::Instant;

#[test]
fn under_a_flood_of_forged_sources() {
    let budget = packets(Rate::per_second(10, 10));
    let config = LimiterConfig { host: budget, net: budget, site: budget, max_entries: 2_000, ..unlimited() };
    let mut limiter = Limiter::new(&config, 9);
    let (memory, mut chance) = (limiter.memory(), Chance(1));
    assert!(memory <= 56 * config.max_entries);
    let start = Instant::now();
    for step in 0..100_000 {
        let now = start + ms(step);
        assert!(limiter.check(now, chance.v4(), 100).is_allowed());
        assert!(limiter.check(now, chance.v6_in("3000::", 4), 100).is_allowed());
    }
    let stats = limiter.stats();
    assert_eq!(limiter.memory(), memory);
    assert!(stats.hosts <= 2_000 && stats.hosts > 1_990, "{stats:?}");
    assert!(stats.nets <= 1_000 && stats.sites <= 500);
    assert!(stats.evicted > 490_000, "nearly all were new: {stats:?}");
}

#[test]
fn and_in_the_table_of_one_rate_as_well() {
    let mut buckets = TokenBuckets::new(Rate::per_second(1, 1), 1000, 9);
    let now = Instant::now();
    for key in 0..100_000_u64 {
        assert!(buckets.take(now, key));
    }
    assert_eq!((buckets.entries(), buckets.capacity()), (1000, 1000));
}
