//! Servers and a prober on a virtual network.
#![allow(dead_code, reason = "each test file uses some of it")]

use rallypoint_limit::Rate;
use rallypoint_machine::Machine;
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_query_proto::{
    Player, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, QueryReply, Responder, ResponderConfig,
    ServerInfo, ServerQuery, Team,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

pub const SESSION: ServerQuery = Protocol::Session.players();
pub const INFOS: ServerQuery = Protocol::Session.info();

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The address of the server with this number.
pub fn address(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    ([10, a, b, c], 4000).into()
}

pub fn prober_address() -> SocketAddr {
    ([192, 0, 2, 1], 50_000).into()
}

/// The description of the server with this number, different from all others.
pub fn info(number: u32) -> ServerInfo {
    let players: Vec<Player> = (0..number % 5).map(|player| named(&format!("player {player} of {number}"))).collect();
    ServerInfo {
        name: Some(format!("server {number}")),
        description: Some(format!("the server with the number {number}")),
        map: Some(format!("map {}", number % 7)),
        game: Some("tag".into()),
        players: Some(players.len() as u16),
        max_players: Some(16),
        teams: vec![Team { id: 1, name: "red".into(), ranked: true, color: [255, 0, 0] }],
        player_list: Some(players),
        tags: vec!["test".into(), number.to_string()],
        ..ServerInfo::default()
    }
}

pub fn named(name: &str) -> Player {
    Player {
        name: name.into(),
        team: Some(1),
        rank: Some(2),
        ping_ms: Some(30),
        platform: Some(-1),
        ..Player::default()
    }
}

/// Budgets that are never used up.
pub fn generous() -> ResponderConfig {
    let rate = Rate::per_second(1 << 30, 1 << 30);
    ResponderConfig {
        per_address: rate,
        per_network: rate,
        per_site: rate,
        total: rate,
        max_addresses: 8,
        ..ResponderConfig::default()
    }
}

pub fn responder(info: &ServerInfo) -> Responder {
    Responder::new(generous(), 7, info).unwrap()
}

pub fn prober(config: ProberConfig) -> Prober {
    Prober::new(config, [42; 32]).unwrap()
}

/// Query by which the server with this number is probed.
pub fn query_for(number: u32) -> ServerQuery {
    [Protocol::Bloodmasters.info(), INFOS, SESSION][number as usize % 3]
}

/// A network with servers 0 to `count`, and a prober with a probe of each. Their numbers are the tags.
pub fn network(seed: u64, count: u32, config: ProberConfig, link: Link) -> (Network, Node<Prober>) {
    let mut net = Network::new(seed);
    net.set_default_link(link);
    for number in 0..count {
        net.add(address(number), responder(&info(number)));
    }
    let prober = net.add(prober_address(), prober(config));
    net.with(prober, |prober, _| {
        for number in 0..count {
            let target = Probe { address: address(number), query: query_for(number), tag: number.into() };
            prober.enqueue(target).unwrap();
        }
    });
    (net, prober)
}

/// Runs until every probe has ended; returns the results in the order of their tags.
pub fn run(net: &mut Network, prober: Node<Prober>) -> Vec<ProbeResult> {
    let done = net.run_while(Duration::from_secs(3600), |net| !net.machine(prober).is_idle());
    assert!(done, "the prober becomes idle");
    let mut reports: Vec<ProbeResult> = net.take_events(prober).into_iter().map(|(_, report)| report).collect();
    reports.sort_by_key(|report| report.probe.tag);
    reports
}

/// The reply of a server, checked to be its own.
pub fn own_answer(report: &ProbeResult) -> &QueryReply {
    let number = report.probe.tag as u32;
    assert_eq!(report.probe.address, address(number));
    let ProbeOutcome::Answered(answer) = &report.outcome else { panic!("{report:?}") };
    if let Some(name) = &answer.info.name {
        assert_eq!(*name, format!("server {number}"));
    }
    let players = answer.info.player_list.iter().flatten();
    let mut names: Vec<_> = players.map(|player| player.name.clone()).collect();
    names.sort();
    if answer.is_complete() && report.probe.query != INFOS {
        let mut all: Vec<_> = info(number).player_list.unwrap().into_iter().map(|player| player.name).collect();
        all.sort();
        assert_eq!(names, all, "of server {number}");
    } else {
        assert!(names.iter().all(|name| name.ends_with(&format!(" of {number}"))), "{names:?} of server {number}");
    }
    answer
}

/// Runs a prober without any further replies until it is idle.
pub fn run_to_the_end(prober: &mut Prober, now: &mut Instant) {
    while prober.in_flight() > 0 {
        drain(prober, *now);
        *now = prober.poll_timeout().unwrap();
        prober.handle_timeout(*now);
    }
}

/// Everything that a machine wants to send now.
pub fn drain(machine: &mut impl Machine, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = machine.poll_transmit(now, &mut out) {
        assert_eq!(transmit.len, out.len());
        assert!(!out.is_empty(), "B10");
        sent.push((transmit.to, std::mem::take(&mut out)));
    }
    sent
}
