//! Several probes of one address: with different protocols at the same time, with the same one after the other.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProberConfig, Protocol, QueueError, ServerInfo};
use std::time::Instant;

#[test]
fn both_protocols_at_one_address() {
    for length in 0..200 {
        // A reply of 128 to 134 bytes starts like an info: it is still distinguished.
        let (mut net, prober) = network(1, 0, ProberConfig::default(), Link::default().delay(ms(10)));
        let named = ServerInfo { website: Some("x".repeat(length)), ..info(4) };
        net.add(address(4), responder(&named));
        for (tag, query) in [(1, Protocol::Bloodmasters.info()), (2, SESSION)] {
            net.with(prober, |prober, _| prober.enqueue(Probe { address: address(4), query, tag })).unwrap();
        }
        let reports = run(&mut net, prober);
        let answers: Vec<_> = reports.iter().map(|report| report.reply().unwrap()).collect();
        let has = |index: usize, protocol| answers[index].info.extensions.contains_key(&protocol);
        assert_eq!(answers[0].info.website, named.website);
        assert!(has(0, Protocol::Bloodmasters) && !has(0, Protocol::Session));
        assert_eq!(answers[1].info.description, named.description);
        assert!(has(1, Protocol::Session) && !has(1, Protocol::Bloodmasters));
        assert!(answers.iter().all(|answer| answer.is_complete()));
        assert!(reports.iter().all(|report| report.malformed == 0 && report.retries == 0));
    }
}

#[test]
fn a_late_reply_of_one_protocol_does_not_count_for_the_other() {
    for length in 0..200 {
        let mut prober = prober(ProberConfig::default());
        let now = Instant::now();
        let mut server = responder(&ServerInfo { website: Some("x".repeat(length)), ..info(4) });
        server.handle_datagram(now, prober_address(), &[7, 0, 13, 1, 2, 3, 4]);
        let late = drain(&mut server, now).remove(0).1;
        prober.enqueue(Probe::new(address(4), INFOS)).unwrap();
        drain(&mut prober, now);
        prober.handle_datagram(now, address(4), &late);
        assert_eq!(prober.stats().unsolicited, 1, "a reply of {} bytes", late.len());
    }
}

#[test]
fn the_same_server_several_times() {
    let (mut net, prober) = network(1, 0, ProberConfig::default(), Link::default().delay(ms(10)));
    net.add(address(4), responder(&info(4)));
    for tag in 0..30 {
        let query = query_for(tag);
        net.with(prober, |prober, _| prober.enqueue(Probe { address: address(4), query, tag: tag.into() })).unwrap();
    }
    let reports = run(&mut net, prober);
    assert_eq!(reports.iter().map(|report| report.probe.tag).collect::<Vec<_>>(), (0..30).collect::<Vec<_>>());
    for report in reports {
        let answer = report.reply().unwrap();
        assert!(answer.is_complete(), "{report:?}");
        let players = answer.info.player_list.as_ref().map(Vec::len);
        assert_eq!(players, (report.probe.query != INFOS).then_some(4));
    }
}

#[test]
fn the_same_silent_server_several_times() {
    let (mut net, prober) = network(1, 0, ProberConfig::default(), Link::default());
    for _ in 0..3 {
        net.with(prober, |prober, _| prober.enqueue(Probe::new(address(4), INFOS))).unwrap();
    }
    assert!(run(&mut net, prober).iter().all(|report| report.outcome == ProbeOutcome::TimedOut));
    assert_eq!(net.machine(prober).stats().timed_out, 3);
}

#[test]
fn unusable_addresses_and_full_queues_are_rejected() {
    let mut prober = prober(ProberConfig { max_targets: 2, ..ProberConfig::default() });
    let nowhere = Probe::new("0.0.0.0:6969".parse().unwrap(), Protocol::Bloodmasters.info());
    assert_eq!(prober.enqueue(nowhere), Err(QueueError::UnusableAddress(nowhere.address)));
    for number in 0..2 {
        prober.enqueue(Probe::new(address(number), Protocol::Bloodmasters.info())).unwrap();
    }
    assert_eq!(prober.enqueue(Probe::new(address(2), Protocol::Bloodmasters.info())), Err(QueueError::QueueFull(2)));
    drain(&mut prober, Instant::now());
    prober.enqueue(Probe::new(address(2), Protocol::Bloodmasters.info())).unwrap();
    prober.handle_timeout(Instant::now());
}
