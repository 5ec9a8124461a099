//! Datagrams are sent evenly: no burst that a home router drops.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, ProberConfig, Protocol};
use std::time::{Duration, Instant};

/// The most datagrams that were sent within any window of this length.
fn most_within(window: Duration, times: &[Duration]) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (last, at) in times.iter().enumerate() {
        while times[first] + window < *at {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

/// The number of datagrams that a pace allows in a window: its share, the share of 2 ms to catch up, and one.
fn allowed(window: Duration, per_second: u32) -> usize {
    ((window + ms(2)).as_secs_f64() * f64::from(per_second)) as usize + 1
}

/// When the prober sent, over a network with loss, with servers that are dead and retries in between.
fn sent_at(per_second: u32, count: u32) -> Vec<Duration> {
    let config = ProberConfig { packets_per_second: per_second, ..ProberConfig::default() };
    let (mut net, prober) = network(1, count, config, Link::default().delay(ms(20)).loss(0.2));
    net.record(1_000_000);
    for dead in 0..count / 4 {
        let target = Probe::new(address(100_000 + dead), query_for(dead));
        net.with(prober, |prober, _| prober.enqueue(target)).unwrap();
    }
    run(&mut net, prober);
    let records = net.log().records();
    records.filter(|record| record.from == prober_address()).map(|record| record.sent).collect()
}

#[test]
fn no_burst_in_any_ten_milliseconds() {
    for (per_second, count) in [(100, 30), (2_000, 300), (20_000, 600)] {
        let times = sent_at(per_second, count);
        assert!(times.len() > count as usize, "with retries");
        for window in [ms(0), ms(1), ms(10), ms(100), ms(1000)] {
            let most = most_within(window, &times);
            let allowed = allowed(window, per_second);
            assert!(most <= allowed, "{most} of {allowed} in {window:?} at {per_second} per second");
        }
    }
}

#[test]
fn the_allowed_rate_is_used() {
    let times = sent_at(2_000, 600);
    let first_second = times.iter().filter(|at| **at < *times.first().unwrap() + ms(300)).count();
    assert!((590..=610).contains(&first_second), "300 ms at 2,000 per second: {first_second}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With any event loop, however late it is.
    #[test]
    fn a_late_event_loop_causes_no_burst(per_second in 1u32..100_000, delays in prop::collection::vec(0u64..20_000, 1..200)) {
        let config = ProberConfig { packets_per_second: per_second, ..ProberConfig::default() };
        let mut prober = prober(config);
        let start = Instant::now();
        for number in 0..5_000 {
            prober.enqueue(Probe::new(address(number), Protocol::Bloodmasters.info())).unwrap();
        }
        let mut now = start;
        let mut times = Vec::new();
        for delay in delays {
            now += Duration::from_micros(delay);
            prober.handle_timeout(now);
            let count = drain(&mut prober, now).len();
            times.extend(std::iter::repeat_n(now - start, count));
        }
        for window in [ms(0), ms(10), ms(100)] {
            prop_assert!(most_within(window, &times) <= allowed(window, per_second));
        }
    }
}
