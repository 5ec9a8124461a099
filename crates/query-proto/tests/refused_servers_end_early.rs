//! A refused server is not queried until its deadline; but a forged refusal does not hide a live server.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, ProbeOutcome, Prober, ProberConfig, Protocol, ServerQuery};
use std::{net::SocketAddr, time::Instant};

/// A prober after the first query of a server, with the time and the query.
fn probed(query: ServerQuery) -> (Prober, Instant, Vec<u8>) {
    let mut prober = prober(ProberConfig::default());
    let now = Instant::now();
    prober.enqueue(Probe::new(address(4), query)).unwrap();
    let (_, query) = drain(&mut prober, now).remove(0);
    (prober, now, query)
}

/// The next query that is sent to it.
fn next(prober: &mut Prober, now: &mut Instant) -> Vec<u8> {
    loop {
        *now = prober.poll_timeout().unwrap();
        prober.handle_timeout(*now);
        if let Some((_, query)) = drain(prober, *now).pop() {
            return query;
        }
    }
}

fn outcome(prober: &mut Prober) -> Option<ProbeOutcome> {
    prober.poll_event().map(|report| report.outcome)
}

fn outcome_at_the_end(prober: &mut Prober, now: &mut Instant) -> ProbeOutcome {
    run_to_the_end(prober, now);
    outcome(prober).unwrap()
}

#[test]
fn b7_the_echo_in_a_quote_proves_a_refusal() {
    let (mut prober, _, query) = probed(Protocol::Bloodmasters.info());
    prober.handle_refused(address(4), &query);
    assert_eq!(outcome(&mut prober), Some(ProbeOutcome::Refused));
    assert!(prober.is_idle() && prober.poll_timeout().is_none());
    assert_eq!((prober.stats().refused, prober.stats().sent), (1, 1));
}

#[test]
fn b7_without_the_echo_nothing_ends_before_the_deadline() {
    let (mut prober, start, query) = probed(Protocol::Bloodmasters.info());
    let mut forged = query.clone();
    let mut now = start;
    forged[query.len() - 1] ^= 1;
    for _ in 0..5 {
        prober.handle_refused(address(5), &query);
        for quoted in [&forged[..], &query[..query.len() - 1], b"", &[0x80]] {
            prober.handle_refused(address(4), quoted);
            assert_eq!(prober.poll_event(), None);
        }
        next(&mut prober, &mut now);
    }
    assert_eq!(
        outcome_at_the_end(&mut prober, &mut now),
        ProbeOutcome::Refused,
        "the server was silent and a refusal was received"
    );
    assert_eq!(now, start + prober.config().deadline);
}

#[test]
fn two_queries_without_an_echo_have_to_be_refused() {
    let (mut prober, mut now, query) = probed(INFOS);
    for _ in 0..10 {
        prober.handle_refused(address(4), &query);
    }
    assert_eq!(prober.poll_event(), None, "ten times the same");
    let again = next(&mut prober, &mut now);
    assert_eq!(prober.poll_event(), None);
    prober.handle_refused(address(4), &again);
    assert_eq!(outcome(&mut prober), Some(ProbeOutcome::Refused));
    assert!(prober.is_idle());
}

#[test]
fn a_port_is_closed_for_both_protocols() {
    let (mut prober, now, query) = probed(Protocol::Bloodmasters.info());
    prober.enqueue(Probe::new(address(4), SESSION)).unwrap();
    let now = now + ms(10);
    assert_eq!(drain(&mut prober, now).len(), 1);
    prober.handle_refused(address(4), &query);
    assert_eq!(
        [outcome(&mut prober), outcome(&mut prober)],
        [Some(ProbeOutcome::Refused), Some(ProbeOutcome::Refused)]
    );
}

#[test]
fn a_server_that_has_sent_anything_is_not_refused() {
    let (mut prober, mut now, query) = probed(INFOS);
    let mut server = responder(&info(4));
    server.handle_datagram(now, prober_address(), &query);
    let (_, first) = drain(&mut server, now).remove(0);
    prober.handle_datagram(now, address(4), &first);
    for _ in 0..5 {
        prober.handle_refused(address(4), &query);
        next(&mut prober, &mut now);
    }
    assert!(
        matches!(outcome_at_the_end(&mut prober, &mut now), ProbeOutcome::Answered(answer) if answer.missing.len() == 6)
    );
}

#[test]
fn forged_refusals_do_not_hide_a_server_that_answers_in_time() {
    let (mut net, prober) = network(11, 90, ProberConfig::default(), Link::default().delay(ms(60)).jitter(ms(20)));
    for step in 0..4_000u32 {
        net.schedule_in(ms(u64::from(step) / 20), move |net| {
            let to: SocketAddr = address(step % 90);
            let quotes: [&[u8]; 4] = [&[0x80], &[0x88], &[7, 0, 13, 1, 2, 3, 4], &[]];
            net.with(prober, |prober, _| prober.handle_refused(to, quotes[step as usize / 90 % 4]));
        });
    }
    assert!(run(&mut net, prober).iter().all(|report| own_answer(report).is_complete()));
}

#[test]
fn a_cancelled_probe_has_no_result_and_the_next_one_starts() {
    let (mut prober, now, _) = probed(Protocol::Bloodmasters.info());
    let this = Probe::new(address(4), Protocol::Bloodmasters.info());
    let other = Probe::new(address(4), INFOS);
    prober.enqueue(Probe { tag: 5, ..this }).unwrap();
    let now = now + ms(10);
    assert!(drain(&mut prober, now).is_empty(), "one after the other");
    assert!(!prober.cancel(&other) && !prober.cancel(&Probe { tag: 5, ..this }) && prober.cancel(&this));
    assert!(!prober.cancel(&this));
    assert_eq!(prober.poll_event(), None);
    assert_eq!(drain(&mut prober, now).len(), 1);
    assert!(prober.cancel(&Probe { tag: 5, ..this }));
    assert!(prober.is_idle() && prober.poll_timeout().is_none());
}
