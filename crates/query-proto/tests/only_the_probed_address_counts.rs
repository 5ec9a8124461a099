//! Forged replies are ignored: from other addresses, with another echo value, unsolicited.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, ServerQuery};
use rallypoint_wire::bloodmasters::Echo;
use std::time::Instant;

/// The datagrams with which a server answers this query.
fn answers(query: &[u8]) -> Vec<Vec<u8>> {
    let mut server = responder(&info(4));
    server.handle_datagram(Instant::now(), prober_address(), query);
    drain(&mut server, Instant::now()).into_iter().map(|(_, bytes)| bytes).collect()
}

fn probed(query: ServerQuery) -> (Prober, Instant, Vec<Vec<u8>>) {
    let mut prober = prober(ProberConfig::default());
    let now = Instant::now();
    prober.enqueue(Probe::new(address(4), query)).unwrap();
    let sent = drain(&mut prober, now);
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [address(4)]);
    (prober, now, answers(&sent[0].1))
}

#[test]
fn a_valid_reply_from_another_address_or_port_is_ignored() {
    for query in [Protocol::Bloodmasters.info(), INFOS] {
        let (mut prober, now, answers) = probed(query);
        let mut other_port = address(4);
        other_port.set_port(4001);
        for from in [address(5), other_port, prober_address()] {
            answers.iter().for_each(|answer| prober.handle_datagram(now, from, answer));
        }
        assert_eq!(prober.poll_event(), None);
        assert_eq!(prober.stats().unsolicited, 3 * answers.len() as u64);
        answers.iter().for_each(|answer| prober.handle_datagram(now, address(4), answer));
        assert!(matches!(prober.poll_event(), Some(ProbeResult { outcome: ProbeOutcome::Answered(_), .. })));
    }
}

#[test]
fn an_ipv4_server_answers_through_a_dual_stack_socket() {
    let (mut prober, now, answers) = probed(Protocol::Bloodmasters.info());
    prober.handle_datagram(now, "[::ffff:10.0.0.4]:4000".parse().unwrap(), &answers[0]);
    assert!(prober.poll_event().is_some());
}

#[test]
fn b7_a_reply_with_another_echo_is_ignored() {
    let (mut prober, now, answers) = probed(Protocol::Bloodmasters.info());
    let mut forged = answers[0].clone();
    for bit in 0..32 {
        forged[Echo::RANGE].copy_from_slice(&answers[0][Echo::RANGE]);
        forged[Echo::RANGE.start + bit / 8] ^= 1 << (bit % 8);
        prober.handle_datagram(now, address(4), &forged);
    }
    assert_eq!(prober.poll_event(), None);
    assert_eq!(prober.stats().wrong_echo, 32);
    prober.handle_datagram(now, address(4), &answers[0]);
    assert!(prober.poll_event().is_some());
}

#[test]
fn b7_every_query_has_its_own_echo_and_each_is_accepted() {
    for answered in 0..4 {
        let mut prober = prober(ProberConfig::default());
        let start = Instant::now();
        prober.enqueue(Probe::new(address(4), Protocol::Bloodmasters.info())).unwrap();
        let mut queries = drain(&mut prober, start);
        let mut now = start;
        while queries.len() < 4 {
            now = prober.poll_timeout().unwrap();
            prober.handle_timeout(now);
            queries.extend(drain(&mut prober, now));
        }
        let mut echoes: Vec<_> = queries.iter().map(|(_, bytes)| bytes[Echo::RANGE].to_vec()).collect();
        echoes.sort();
        echoes.dedup();
        assert_eq!(echoes.len(), 4);
        prober.handle_datagram(now, address(4), &answers(&queries[answered].1)[0]);
        let report = prober.poll_event().unwrap();
        assert_eq!((report.retries, prober.stats().wrong_echo), (3, 0));
    }
}

#[test]
fn s10_unrequested_players_are_ignored() {
    let (mut prober, now, infos) = probed(INFOS);
    let players = answers(&[0x88]);
    assert_eq!((infos.len(), players.len()), (7, 5));
    players.iter().chain(&infos).for_each(|datagram| prober.handle_datagram(now, address(4), datagram));
    let report = prober.poll_event().unwrap();
    assert_eq!(report.reply().unwrap().info.player_list, None);
    assert_eq!(prober.stats().redundant, 5);
}

/// A flood of well-made answers from everywhere, while the real servers answer.
#[test]
fn a_flood_of_forged_replies_changes_nothing() {
    let (mut net, prober) = network(9, 60, ProberConfig::default(), Link::default().delay(ms(30)));
    let forged = [answers(&[7, 0, 13, 1, 2, 3, 4]), answers(&[0x80]), answers(&[0x88])].concat();
    for step in 0..2_000u32 {
        net.schedule_in(ms(u64::from(step) / 20), {
            let datagram = forged[step as usize % forged.len()].clone();
            // Also from servers that are probed by the other protocol, or not yet.
            let number = if step % 2 == 0 { 1_000 + step } else { 3 * (step % 20) };
            let is_reply = datagram.get(2) == Some(&13);
            let from = if is_reply || number >= 1_000 { address(number) } else { address(2_000) };
            move |net| net.inject(from, prober_address(), &datagram)
        });
    }
    let reports = run(&mut net, prober);
    assert!(reports.iter().all(|report| own_answer(report).is_complete()));
    let stats = net.machine(prober).stats();
    assert!(stats.unsolicited > 1_000 && stats.wrong_echo > 0, "{stats:?}");
}
