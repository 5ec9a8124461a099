//! A partial reply is a reply, and names what is missing.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::{FilterAction, Link};
use rallypoint_query_proto::{
    MissingPart, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, ServerInfo, ServerQuery,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Probes server 4. Only those of its datagrams arrive for which `passes` returns true.
fn report(query: ServerQuery, passes: impl Fn(Duration, &[u8]) -> bool + 'static) -> ProbeResult {
    let (mut net, prober) = network(1, 0, ProberConfig::default(), Link::default().delay(ms(10)));
    let server = address(4);
    net.add(server, responder(&info(4)));
    net.set_filter(move |packet| {
        if packet.from != server || passes(packet.at, packet.bytes) { FilterAction::Pass } else { FilterAction::Drop }
    });
    net.with(prober, |prober, _| prober.enqueue(Probe { address: server, query, tag: 4 })).unwrap();
    run(&mut net, prober).remove(0)
}

#[test]
fn s9_seven_distinct_infos_are_all() {
    let report = report(INFOS, |_, _| true);
    assert!(own_answer(&report).is_complete());
    assert_eq!(report.retries, 0);
    assert_eq!(own_answer(&report).raw.session().count(), 7);
}

/// The seven infos as they are called.
const NAMES: [&str; 7] = [
    "info 1 (numbers and game)",
    "info 2 (name and description)",
    "info 3 (game name)",
    "info 4 (map)",
    "info 5 (mod ids)",
    "info 6 (mod names)",
    "info 7 (tags)",
];

#[test]
fn s9_each_missing_info_is_named() {
    for part in 0..7 {
        let report = report(INFOS, move |_, bytes| bytes[0] != 0x80 + part);
        let answer = own_answer(&report);
        assert_eq!(answer.missing, [MissingPart::Part(NAMES[usize::from(part)])]);
        assert_eq!(report.retries, ProberConfig::default().retries, "it was queried again for the missing info");
        assert_eq!(answer.info.name.is_none(), part == 1);
        assert_eq!(answer.info.players.is_none(), part == 0);
        assert_eq!(answer.info.tags.is_empty(), part == 6);
    }
    assert_eq!(MissingPart::Part(NAMES[1]).to_string(), "info 2 (name and description)");
}

#[test]
fn s9_a_retry_brings_what_was_missing() {
    let report = report(SESSION, |at, bytes| at > ms(100) || bytes[0] % 2 == 0);
    assert!(own_answer(&report).is_complete());
    assert_eq!(report.retries, 1);
}

#[test]
fn s10_players_are_complete_when_info_1_says_so() {
    let report = report(SESSION, |_, _| true);
    let answer = own_answer(&report);
    assert!(answer.is_complete());
    assert_eq!(answer.info.player_list, info(4).player_list);
    assert_eq!(answer.info.teams, info(4).teams);
    assert_eq!(report.retries, 0);
}

#[test]
fn s10_missing_players_are_counted() {
    let report = report(SESSION, |_, bytes| !bytes.ends_with(b"player 2 of 4"));
    let answer = own_answer(&report);
    assert_eq!(answer.missing, [MissingPart::Players { received: 3, expected: Some(4) }]);
    assert_eq!(answer.missing[0].to_string(), "1 of 4 players");
    assert_eq!(answer.info.player_list.as_ref().unwrap().len(), 3, "repeated answers are not counted again");
    assert_eq!(report.retries, ProberConfig::default().retries);
}

#[test]
fn s10_a_player_leaves_between_two_queries() {
    let (mut net, prober) = network(1, 0, ProberConfig::default(), Link::default().delay(ms(10)));
    let server = net.add(address(4), responder(&info(4)));
    net.set_filter(|packet| {
        let is_player = packet.bytes[0] == 0x89;
        if is_player && packet.at < ms(100) { FilterAction::Drop } else { FilterAction::Pass }
    });
    net.with(prober, |prober, _| prober.enqueue(Probe::new(address(4), SESSION))).unwrap();
    net.run_for(ms(100));
    let mut fewer = info(4);
    fewer.player_list.as_mut().unwrap().pop();
    net.with(server, |server, _| server.set_info(&fewer));
    let report = run(&mut net, prober).remove(0);
    let answer = report.reply().unwrap();
    assert!(answer.is_complete(), "{report:?}");
    assert_eq!((report.retries, answer.info.players), (1, Some(3)));
    assert_eq!(answer.info.player_list, fewer.player_list);
}

#[test]
fn s10_without_info_1_players_are_not_requested() {
    let report = report(SESSION, |_, bytes| bytes[0] != 0x80);
    let missing = &own_answer(&report).missing;
    assert_eq!(*missing, [MissingPart::Part(NAMES[0]), MissingPart::Players { received: 0, expected: None }]);
    assert_eq!(missing[1].to_string(), "players");
}

#[test]
fn s10_an_empty_server_has_an_empty_list_of_players() {
    let empty = ServerInfo { player_list: Some(Vec::new()), players: Some(0), ..info(5) };
    let sent = exchange(&mut prober(ProberConfig::default()), &empty, address(5));
    assert_eq!(sent.1, 1, "players are not requested");
    let answer = sent.0.reply().unwrap();
    assert!(answer.is_complete());
    assert_eq!(answer.info.player_list, Some(Vec::new()));
}

#[test]
fn s10_identical_players_are_not_merged() {
    let twins = vec![named("twin"), named("twin"), named("other"), named("twin")];
    let info = ServerInfo { player_list: Some(twins.clone()), players: Some(4), ..info(5) };
    let (report, _) = exchange(&mut prober(ProberConfig::default()), &info, address(5));
    assert!(report.reply().unwrap().is_complete());
    assert_eq!(report.reply().unwrap().info.player_list, Some(twins));
}

/// Probes a server on a network without loss; also returns the number of queries.
fn exchange(prober: &mut Prober, info: &ServerInfo, server: SocketAddr) -> (ProbeResult, usize) {
    let mut responder = responder(info);
    let mut now = Instant::now();
    let mut sent = 0;
    prober.enqueue(Probe { address: server, query: SESSION, tag: 0 }).unwrap();
    loop {
        now += ms(1);
        for (_, query) in drain(prober, now) {
            sent += 1;
            responder.handle_datagram(now, prober_address(), &query);
        }
        for (_, answer) in drain(&mut responder, now) {
            prober.handle_datagram(now, server, &answer);
        }
        if let Some(report) = prober.poll_event() {
            return (report, sent);
        }
    }
}

#[test]
fn b6_a_truncated_reply_says_where_it_ends() {
    let mut prober = prober(ProberConfig::default());
    let now = Instant::now();
    let mut responder = responder(&info(4));
    prober.enqueue(Probe::new(address(4), Protocol::Bloodmasters.info())).unwrap();
    for (_, query) in drain(&mut prober, now) {
        responder.handle_datagram(now, prober_address(), &query);
    }
    let reply = drain(&mut responder, now).remove(0).1;
    prober.handle_datagram(now, address(4), &reply[..reply.len() - 30]);
    let ProbeOutcome::Answered(answer) = prober.poll_event().unwrap().outcome else { panic!("partial") };
    assert_eq!(answer.info.name.as_deref(), Some("server 4"));
    assert_eq!(answer.missing.len(), 1);
    assert_eq!(answer.missing[0].to_string(), "everything from player name on");
    assert_eq!(prober.stats().partial, 1);
}
