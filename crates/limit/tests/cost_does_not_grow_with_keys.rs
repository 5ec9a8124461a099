//! The number of places looked at is the same for an empty table, a full one and a large one.

mod common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig};
use std::time::Instant;

/// The most places looked at for one datagram, over many.
fn most_probes(max_entries: usize, sources: u64) -> u64 {
    let mut limiter = Limiter::new(&LimiterConfig { max_entries, ..LimiterConfig::default() }, 2);
    let start = Instant::now();
    let mut most = 0;
    for step in 0..sources {
        let before = limiter.stats().probes;
        let mut chance = Chance(step / 3);
        let source = if step % 2 == 0 { chance.v4() } else { chance.v6_in("3000::", 4) };
        let _ = limiter.check(start + ms(step * 4_000), source, 100);
        most = most.max(limiter.stats().probes - before);
    }
    most
}

#[test]
fn at_most_three_looks_at_a_set_in_each_table() {
    for (max_entries, sources) in [(8, 10), (8, 10_000), (1 << 12, 10), (1 << 12, 100_000), (1 << 20, 100_000)] {
        let probes = most_probes(max_entries, sources);
        assert!(probes <= 3 * 24, "{probes} probes with {sources} sources in {max_entries} entries");
    }
}
