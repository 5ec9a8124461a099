//! A limiter allocates only when it is created.

use crate::common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate, TokenBuckets};
use std::time::Instant;

#[test]
fn checks_and_buckets_allocate_nothing() {
    let config = LimiterConfig {
        total: packets(Rate::per_second(10_000, 20_000)),
        max_entries: 1024,
        ..LimiterConfig::default()
    };
    let mut limiter = Limiter::new(&config, 1);
    let mut buckets = TokenBuckets::new(Rate::per_second(1, 1), 1024, 1);
    let start = Instant::now();
    let mut rng = TestRng::new(1);
    let used = allocation_counter::measure(|| {
        for step in 0..300_000 {
            let now = start + ms(step / 100);
            let source = match step % 4 {
                0 => rng.v4(),
                1 => rng.v6_in("3000::", 4),
                2 => std::net::Ipv4Addr::new(10, 0, 0, (step / 4) as u8).into(),
                _ => rng.v6_in("3000::", 60),
            };
            let _ = limiter.check(now, source, 100);
            let _ = buckets.take(now, rng.next());
            if step % 1000 == 0 {
                limiter.mark_known(now, source);
            }
        }
    });
    assert_eq!(used.count_total, 0);
    let stats = limiter.stats();
    assert!(stats.allowed > 0 && stats.total_refused() > 0 && stats.evicted > 0 && stats.known > 0, "{stats:?}");
}
