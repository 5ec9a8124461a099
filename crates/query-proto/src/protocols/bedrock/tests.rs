//! Bedrock through a prober and a responder, and replies with fields of all kinds.

use crate::{
    ProbeOutcome, ProbeResult, ProberStats, Protocol, Responder, ResponderConfig, RttMethod, ServerInfo,
    protocols::fixture::{Exchange, assert_changes_are_harmless, assert_is_harmless, server},
};
use rallypoint_machine::Machine;
use rallypoint_wire::query::bedrock::{Ping, Pong};
use std::time::{Duration, Instant};

const STATUS: &[u8] =
    "MCPE;§aBacon Town;649;1.20.61;3;20;13253860892328930865;Hügel §lworld;Survival;1;19132;19133;".as_bytes();

/// The result of a probe whose server answers its first ping with these datagrams within 20 ms.
fn probe(replies: impl FnOnce(Ping) -> Vec<Vec<u8>>) -> (ProbeResult, ProberStats) {
    let mut exchange = Exchange::new(Protocol::Bedrock.players());
    let mut ping = Vec::new();
    exchange.prober.poll_transmit(exchange.now, &mut ping).unwrap();
    exchange.now += Duration::from_millis(20);
    for reply in replies(Ping::parse(&ping).unwrap()) {
        exchange.receive(&reply);
    }
    let stats = exchange.prober.stats();
    (exchange.finish(), stats)
}

fn pong(time: [u8; 8], status: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Pong { time, server: [1; 8], status }.emit(&mut out);
    out
}

fn info_of(status: &[u8]) -> ServerInfo {
    let (result, _) = probe(|ping| vec![pong(ping.time, status)]);
    result.reply().unwrap().info.clone()
}

#[test]
fn a_server_is_described_completely() {
    let (result, _) = probe(|ping| vec![pong(ping.time, STATUS)]);
    assert_eq!(result.retries, 0);
    let reply = result.reply().unwrap();
    assert!(reply.is_complete());
    assert_eq!((reply.round_trip.method, reply.round_trip.time), (RttMethod::Echo, Duration::from_millis(20)));
    let info = &reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Bacon Town"), Some("Hügel world")));
    assert_eq!((info.players, info.max_players), (Some(3), Some(20)));
    assert_eq!((info.version.as_deref(), info.mode.as_deref()), (Some("1.20.61"), Some("Survival")));
    let extension = &info.extensions[&Protocol::Bedrock];
    assert_eq!((extension.number("protocol"), extension.number("port_v6")), (Some(649), Some(19_133)));
    assert_eq!(extension.get("server_id"), Some(&"13253860892328930865".to_owned().into()));
}

#[test]
fn a_reply_to_another_ping_is_forged() {
    let (result, stats) = probe(|_| vec![pong([0; 8], STATUS), pong([9; 8], STATUS)]);
    assert_eq!(result.outcome, ProbeOutcome::TimedOut);
    assert_eq!(stats.wrong_echo, 2);
}

#[test]
fn fields_may_be_missing_or_nonsense() {
    let info = info_of(b"MCPE;old;1;0.1;2;5");
    assert_eq!((info.players, info.max_players, info.map, info.mode), (Some(2), Some(5), None, None));
    let info = info_of(b"MCEE;a\\;b\x1b[31m;x;;-1;99999999999999999999999;;;;;;;;;;;");
    assert_eq!(info.name.as_deref(), Some("a;b\u{fffd}[31m"));
    assert_eq!((info.players, info.max_players, info.version), (None, None, None));
    assert_eq!(info.game_name.as_deref(), Some("Minecraft Education"));
    assert_eq!(info_of(b"MCPE;x;1;1;70000;90000").players, Some(u16::MAX));
    assert_eq!(info_of(b"MCPE").name, None);
    let (result, _) = probe(|ping| vec![pong(ping.time, b""), pong(ping.time, b"RAGE;x"), vec![0x1c; 5]]);
    assert_eq!((result.malformed, result.reply().is_some()), (3, false));
}

#[test]
fn a_second_reply_adds_nothing() {
    let (result, stats) = probe(|ping| vec![pong(ping.time, STATUS), pong(ping.time, b"MCPE;other")]);
    assert_eq!(result.reply().unwrap().info.name.as_deref(), Some("Bacon Town"));
    assert_eq!(stats.unsolicited, 1);
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    let respond = |query: &[u8]| vec![pong(Ping::parse(query).unwrap().time, STATUS)];
    assert_changes_are_harmless(Protocol::Bedrock.players(), &respond);
    for length in 0..pong([0; 8], STATUS).len() {
        let (result, _) = probe(|ping| vec![pong(ping.time, STATUS)[..length].to_vec()]);
        assert_is_harmless(&result);
    }
}

#[test]
fn a_responder_answers_with_the_time_of_the_ping() {
    let info = ServerInfo {
        name: Some("Bacon;Town".into()),
        map: Some("world".into()),
        mode: Some("Creative".into()),
        version: Some("1.21".into()),
        players: Some(3),
        max_players: Some(20),
        ..ServerInfo::default()
    };
    let config = ResponderConfig { protocols: vec![Protocol::Bedrock], ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, &info).unwrap();
    let (result, _) = probe(|ping| {
        let now = Instant::now();
        let mut datagram = Vec::new();
        ping.emit(&mut datagram);
        responder.handle_datagram(now, server(), &datagram);
        let mut out = Vec::new();
        responder.poll_transmit(now, &mut out).unwrap();
        vec![out]
    });
    let received = &result.reply().unwrap().info;
    assert_eq!(received.name.as_deref(), Some("Bacon,Town"));
    assert_eq!((&received.map, &received.mode, &received.version), (&info.map, &info.mode, &info.version));
    assert_eq!((received.players, received.max_players), (Some(3), Some(20)));
    let now = Instant::now();
    responder.handle_datagram(now, server(), &pong([0; 8], STATUS));
    assert!(responder.poll_transmit(now, &mut Vec::new()).is_none(), "a reply is no query");
}
