//! Replies that are delayed, repeated, reordered and damaged count only for the server that sent them.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::{Link, Rng};
use rallypoint_query_proto::{Probe, ProbeOutcome, Prober, ProberConfig, Protocol};
use std::time::Instant;

#[test]
fn reordered_repeated_and_delayed() {
    for seed in 0..4 {
        let link = Link::default().delay(ms(30)).jitter_reordering(ms(250)).loss(0.1);
        let (mut net, prober) = network(seed, 120, ProberConfig::default(), link);
        let reports = run(&mut net, prober);
        assert_eq!(reports.len(), 120);
        reports.iter().for_each(|report| {
            own_answer(report);
        });
    }
}

#[test]
fn repeated_on_the_way() {
    // A player packet that the network duplicated cannot be distinguished from a player of the same name (S10), so there are
    // no players here.
    let link = Link::default().delay(ms(30)).jitter_reordering(ms(90)).duplicate(0.5);
    let (mut net, prober) = network(3, 0, ProberConfig::default(), link);
    for number in 0..120 {
        net.add(address(number), responder(&info(number)));
        let query = [Protocol::Bloodmasters.info(), INFOS][number as usize % 2];
        let target = Probe { address: address(number), query, tag: number.into() };
        net.with(prober, |prober, _| prober.enqueue(target)).unwrap();
    }
    for report in run(&mut net, prober) {
        assert!(own_answer(&report).is_complete());
    }
    let stats = net.machine(prober).stats();
    assert!(stats.unsolicited > 0 && stats.redundant > 0, "{stats:?}");
}

/// Replies of one server arrive a second time, from its address, while another server is probed.
#[test]
fn replies_to_an_earlier_probe_do_not_count_for_a_later_one() {
    let mut prober = prober(ProberConfig::default());
    let mut server = responder(&info(0));
    let now = Instant::now();
    let start_probe = |prober: &mut Prober| {
        prober.enqueue(Probe::new(address(0), Protocol::Bloodmasters.info())).unwrap();
    };
    start_probe(&mut prober);
    for (_, query) in drain(&mut prober, now) {
        server.handle_datagram(now, prober_address(), &query);
    }
    let first = drain(&mut server, now);
    prober.handle_datagram(now, address(0), &first[0].1);
    assert!(prober.poll_event().is_some());

    start_probe(&mut prober);
    assert_eq!(drain(&mut prober, now + ms(10)).len(), 1);
    prober.handle_datagram(now, address(0), &first[0].1);
    assert!(prober.poll_event().is_none(), "it has the old echo");
    assert_eq!(prober.stats().wrong_echo, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_network(seed: u64) {
        let link = Link { corrupt: 0.0, duplicate: 0.0, ..Link::random(&mut Rng::new(seed)) };
        let (mut net, prober) = network(seed, 40, ProberConfig::default(), link);
        let reports = run(&mut net, prober);
        prop_assert_eq!(reports.len(), 40, "one for each");
        for report in reports {
            match &report.outcome {
                ProbeOutcome::Answered(_) => {
                    own_answer(&report);
                }
                ProbeOutcome::TimedOut => {}
                ProbeOutcome::Malformed(_) | ProbeOutcome::Refused => prop_assert!(false, "nothing was damaged or refused"),
            }
        }
    }
}
