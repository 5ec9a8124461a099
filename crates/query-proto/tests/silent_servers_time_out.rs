//! A silent server takes its deadline, and delays no other server.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProbeResult, ProberConfig, Protocol};
use std::time::{Duration, Instant};

#[test]
fn each_is_retried_and_then_times_out() {
    for query in [Protocol::Bloodmasters.info(), INFOS, SESSION] {
        let mut prober = prober(ProberConfig::default());
        let start = Instant::now();
        prober.enqueue(Probe { address: address(1), query, tag: 77 }).unwrap();
        let mut now = start;
        let mut times = Vec::new();
        while !prober.is_idle() {
            times.extend(drain(&mut prober, now).iter().map(|_| now - start));
            if let Some(report) = prober.poll_event() {
                assert_eq!(now, start + Duration::from_secs(4), "exactly at the deadline");
                assert_eq!((report.outcome, report.retries, report.probe.tag), (ProbeOutcome::TimedOut, 15, 77));
            } else {
                now = prober.poll_timeout().expect("there is something to wait for");
                prober.handle_timeout(now);
            }
        }
        assert_eq!(prober.poll_timeout(), None, "nothing is left to wait for");
        let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits.len(), 15);
        assert_eq!(waits[0], ms(200));
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "backoff: {waits:?}");
    }
}

#[test]
fn a_scan_takes_as_long_as_the_deadline_of_silent_servers() {
    let config = ProberConfig { packets_per_second: 20_000, ..ProberConfig::default() };
    let (mut net, prober) = network(2, 900, config, Link::default().delay(ms(10)).loss(0.05));
    for dead in 0..100 {
        let target = Probe { address: address(50_000 + dead), query: query_for(dead), tag: 5_000 };
        net.with(prober, |prober, _| prober.enqueue(target)).unwrap();
    }
    let reports = run(&mut net, prober);
    let (alive, dead): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.probe.tag < 5_000);
    assert!(alive.iter().all(|report| own_answer(report).is_complete()), "nothing that lives is missed");
    assert!(dead.iter().all(|report| report.outcome == ProbeOutcome::TimedOut));
    assert_eq!((alive.len(), dead.len()), (900, 100));
    assert!(net.elapsed() < Duration::from_millis(4_100), "{:?}", net.elapsed());
}

#[test]
fn the_deadline_counts_from_the_first_query_not_from_enqueueing() {
    let config = ProberConfig { max_in_flight: 1, retries: 0, ..ProberConfig::default() };
    let (mut net, prober) = network(1, 0, config, Link::default());
    for number in 0..5 {
        net.with(prober, |prober, _| prober.enqueue(Probe::new(address(number), INFOS))).unwrap();
    }
    let times: Vec<Duration> = {
        assert!(net.run_until_idle(Duration::from_secs(100)));
        let now = net.now();
        let elapsed = net.elapsed();
        net.take_events(prober).into_iter().map(|(at, ProbeResult { .. })| elapsed - (now - at)).collect()
    };
    assert_eq!(times.len(), 5);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Duration::from_secs(4)), "one after the other: {times:?}");
}
