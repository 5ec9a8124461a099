//! The times of queries and timeouts, compared with a model that computes them for each server alone.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProberConfig};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Times of the queries to a server that never answers, and of its timeout, since the start.
#[derive(Debug, Default, PartialEq)]
struct Timeline {
    queried: Vec<Duration>,
    timed_out: Duration,
}

fn model(config: &ProberConfig, start: Duration) -> Timeline {
    let mut at = Duration::ZERO;
    let mut wait = config.retry_after.as_secs_f64();
    let mut queried = vec![start];
    for _ in 0..config.retries {
        at += Duration::from_secs_f64(wait);
        wait *= config.backoff;
        if at >= config.deadline {
            break;
        }
        queried.push(start + at);
    }
    Timeline { queried, timed_out: start + config.deadline }
}

/// Times with fractions of a second are rounded here and there.
fn is_near(a: Duration, b: Duration) -> bool {
    a.abs_diff(b) < Duration::from_micros(50)
}

proptest! {
    #[test]
    fn of_servers_that_do_not_answer(
        retries in 0u8..16,
        // With odd numbers, no retry falls on the deadline itself.
        retry_after in (0u64..100).prop_map(|ms| 2 * ms + 1),
        backoff in prop::sample::select(vec![1.0, 1.5, 2.0]),
        deadline in (1u64..2_000).prop_map(|ms| Duration::from_micros(ms * 1_000 + 777)),
        starts in prop::collection::vec(0u64..300, 1..40),
    ) {
        let config = ProberConfig {
            packets_per_second: 10_000_000,
            retries,
            retry_after: ms(retry_after),
            backoff,
            deadline,
            ..ProberConfig::default()
        };
        let mut prober = prober(config.clone());
        let start = Instant::now();
        let mut timelines: BTreeMap<u32, Timeline> = BTreeMap::new();
        let mut plan: Vec<(Instant, u32)> = starts.iter().zip(0..).map(|(at, n)| (start + ms(*at), n)).collect();
        plan.sort_by(|a, b| b.cmp(a));
        let mut now = start;
        while !plan.is_empty() || !prober.is_idle() {
            // Whatever comes first: the next request, or what the prober waits for.
            let next = plan.last().map(|(at, _)| *at).into_iter().chain(prober.poll_timeout()).min().unwrap();
            now = now.max(next);
            while let Some((_, number)) = plan.pop_if(|(at, _)| *at <= now) {
                prober.enqueue(Probe { address: address(number), query: query_for(number), tag: number.into() }).unwrap();
            }
            prober.handle_timeout(now);
            let mut out = Vec::new();
            while let Some(transmit) = prober.poll_transmit(now, &mut out) {
                let number = (0..).find(|number| address(*number) == transmit.to).unwrap();
                timelines.entry(number).or_default().queried.push(now - start);
            }
            while let Some(report) = prober.poll_event() {
                prop_assert_eq!(&report.outcome, &ProbeOutcome::TimedOut);
                let timeline = timelines.get_mut(&(report.probe.tag as u32)).unwrap();
                prop_assert_eq!(usize::from(report.retries) + 1, timeline.queried.len());
                timeline.timed_out = now - start;
            }
        }
        prop_assert_eq!(timelines.len(), starts.len());
        for (number, timeline) in timelines {
            let expected = model(&config, timeline.queried[0]);
            prop_assert!(timeline.queried[0] >= ms(starts[number as usize]));
            prop_assert!(timeline.queried[0] < ms(starts[number as usize] + 2));
            // A turn of a millisecond may pass between the time for a retry and its sending, and is not caught up with.
            let late = Duration::from_millis(2 * u64::from(retries) + 2);
            prop_assert!(is_near(timeline.timed_out, expected.timed_out), "{:?} {:?}", timeline, expected);
            prop_assert!(timeline.queried.len() <= expected.queried.len(), "{:?} {:?}", timeline, expected);
            let due = expected.queried.iter().filter(|at| **at + late < expected.timed_out).count();
            prop_assert!(timeline.queried.len() >= due, "{:?} {:?}", timeline, expected);
            for (queried, expected) in timeline.queried.iter().zip(&expected.queried) {
                prop_assert!(*queried + Duration::from_micros(50) >= *expected && *queried <= *expected + late);
            }
        }
    }
}
