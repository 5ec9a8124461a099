//! After a limiter has been made, nothing is allocated any more.

mod common;
use common::*;
use rallypoint_limit::{Limiter, LimiterConfig, Rate, TokenBuckets};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Instant,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn whatever_happens() {
    let config = LimiterConfig {
        total: packets(Rate::per_second(10_000, 20_000)),
        max_entries: 1024,
        ..LimiterConfig::default()
    };
    let mut limiter = Limiter::new(&config, 1);
    let mut buckets = TokenBuckets::new(Rate::per_second(1, 1), 1024, 1);
    let (start, mut chance) = (Instant::now(), Chance(1));
    let before = ALLOCATIONS.get();
    for step in 0..300_000 {
        let now = start + ms(step / 100);
        let source = match step % 4 {
            0 => chance.v4(),
            1 => chance.v6_in("3000::", 4),
            2 => std::net::Ipv4Addr::new(10, 0, 0, (step / 4) as u8).into(),
            _ => chance.v6_in("3000::", 60),
        };
        let _ = limiter.check(now, source, 100);
        let _ = buckets.take(now, chance.next());
        if step % 1000 == 0 {
            limiter.vouch(now, source);
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let stats = limiter.stats();
    assert!(stats.allowed > 0 && stats.total_refused() > 0 && stats.evicted > 0 && stats.known > 0, "{stats:?}");
}
