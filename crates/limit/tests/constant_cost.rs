//! The number of slots examined is the same for an empty table, a full one and a large one.

use crate::common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig};
use std::time::Instant;

/// Maximum number of slots examined for one datagram.
fn max_probes(max_entries: usize, sources: u64) -> u64 {
    let mut limiter = Limiter::new(&LimiterConfig { max_entries, ..LimiterConfig::default() }, 2);
    let start = Instant::now();
    let mut max = 0;
    for step in 0..sources {
        let before = limiter.stats().probes;
        let mut rng = TestRng::new(step / 3);
        let source = if step % 2 == 0 { rng.v4() } else { rng.v6_in("3000::", 4) };
        let _ = limiter.check(start + ms(step * 4_000), source, 100);
        max = max.max(limiter.stats().probes - before);
    }
    max
}

#[test]
fn at_most_three_passes_over_one_set_per_table() {
    for (max_entries, sources) in [(8, 10), (8, 10_000), (1 << 12, 10), (1 << 12, 100_000), (1 << 20, 100_000)] {
        let probes = max_probes(max_entries, sources);
        assert!(probes <= 3 * 24, "{probes} probes with {sources} sources in {max_entries} entries");
    }
}
