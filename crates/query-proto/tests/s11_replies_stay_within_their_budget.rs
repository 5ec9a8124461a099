//! A query proves nothing about its source, and its reply is many times larger: replies have budgets.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_limit::{OverBudget, Scope, Unit};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig, ServerInfo, Team};
use rallypoint_wire::session::ServerDatagram;
use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

const QUERIES: [&[u8]; 3] = [&[0x80], &[0x88], &[7, 0, 13, 1, 2, 3, 4]];

/// Server information that fills every part of a reply.
fn full() -> ServerInfo {
    let long = |byte: char| Some(byte.to_string().repeat(2_000));
    ServerInfo {
        name: long('n'),
        description: long('d'),
        game: long('g'),
        game_name: long('G'),
        map: long('m'),
        version: long('v'),
        website: long('w'),
        tags: vec!["t".repeat(100); 50],
        teams: (0..200).map(|id| Team { id, name: "T".repeat(600), ..Team::default() }).collect(),
        player_list: Some(vec![named(&"p".repeat(300)); 300]),
        ..ServerInfo::default()
    }
}

fn bytes(datagrams: &[(SocketAddr, Vec<u8>)]) -> usize {
    datagrams.iter().map(|(_, bytes)| bytes.len()).sum()
}

/// Number of reply bytes in a minute of queries at a given rate per second.
fn drawn_in_a_minute(queries: u64, mut from: impl FnMut(u64) -> IpAddr) -> usize {
    let mut responder = Responder::new(ResponderConfig::default(), 1, &full()).unwrap();
    let start = Instant::now();
    let mut drawn = 0;
    for step in 0..60 * queries {
        let now = start + Duration::from_secs(1) / queries as u32 * step as u32;
        responder.handle_datagram(now, SocketAddr::new(from(step), 1000), QUERIES[step as usize % 3]);
        drawn += bytes(&drain(&mut responder, now));
    }
    let stats = responder.stats();
    assert_eq!(stats.unproven_bytes, drawn as u64);
    assert_eq!(stats.answered + stats.over_budget, stats.received);
    drawn
}

#[test]
fn s11_one_address() {
    let drawn = drawn_in_a_minute(100, |_| [192, 0, 2, 1].into());
    assert!(drawn <= 32_768 + 60 * 4_000, "{drawn}");
    assert!(drawn >= 60 * 2_500, "and what is allowed is used: {drawn}");
}

#[test]
fn s11_one_network() {
    assert!(drawn_in_a_minute(200, |step| [192, 0, 2, step as u8].into()) <= (128 << 10) + 60 * 16_000);
    let within_56 = |step| IpAddr::from([0x2001, 0xdb8, 0, step as u16 % 256, 0, 0, 0, step as u16]);
    assert!(drawn_in_a_minute(200, within_56) <= (128 << 10) + 60 * 16_000);
    let within_48 = |step| IpAddr::from([0x2001, 0xdb8, 0, (step as u16) << 4, 0, 0, 0, 1]);
    assert!(drawn_in_a_minute(200, within_48) <= (256 << 10) + 60 * 32_000);
}

#[test]
fn s11_all_addresses_together() {
    let drawn = drawn_in_a_minute(1_000, |step| IpAddr::from((step as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()));
    assert!(drawn <= (512 << 10) + 60 * 128_000, "{drawn}");
}

#[test]
fn s11_over_the_limit_means_dropped_not_queued() {
    let mut responder = Responder::new(ResponderConfig::default(), 1, &full()).unwrap();
    let now = Instant::now();
    let mut drawn = 0;
    for _ in 0..100 {
        responder.handle_datagram(now, prober_address(), &[0x88]);
    }
    drawn += bytes(&drain(&mut responder, now));
    assert!((1..=32_768).contains(&drawn));
    let over = OverBudget { scope: Scope::Host, unit: Unit::Bytes };
    assert_eq!(responder.refused(over), responder.stats().over_budget);
    assert!(responder.refused(over) > 90);
    assert!(drain(&mut responder, now + Duration::from_secs(60)).is_empty(), "nothing comes later");
    responder.handle_datagram(now + Duration::from_secs(60), prober_address(), &[0x88]);
    assert!(!drain(&mut responder, now + Duration::from_secs(60)).is_empty(), "the budget has come back");
}

#[test]
fn s11_a_players_reply_has_at_most_16_kilobytes() {
    let mut responder = responder(&full());
    let now = Instant::now();
    responder.handle_datagram(now, prober_address(), &[0x88]);
    let sent = drain(&mut responder, now);
    assert!((15_000..=16_384).contains(&bytes(&sent)), "{}", bytes(&sent));
    let kinds: Vec<u8> = sent.iter().map(|(_, bytes)| bytes[0]).collect();
    assert!(kinds.is_sorted() && kinds.contains(&0x88) && kinds.contains(&0x89), "teams first, and players too (S10)");
}

#[test]
fn s11_an_info_reply_has_at_most_3188_bytes() {
    let mut responder = responder(&full());
    let now = Instant::now();
    responder.handle_datagram(now, prober_address(), &[0x80]);
    let sent = drain(&mut responder, now);
    assert!(bytes(&sent) <= 3_188, "{}", bytes(&sent));
    let kinds: Vec<u8> = sent.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(kinds, [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86], "all seven, in order (S9)");
    assert!(sent.iter().all(|(_, bytes)| ServerDatagram::parse(bytes).is_ok()));
}

#[test]
fn s9_all_seven_infos_are_sent_even_if_they_are_empty() {
    let mut responder = responder(&ServerInfo::default());
    let now = Instant::now();
    responder.handle_datagram(now, prober_address(), &[0x80]);
    assert_eq!(drain(&mut responder, now).len(), 7);
}

#[test]
fn s2_a_reflected_info_is_not_answered() {
    let mut responder = responder(&full());
    let now = Instant::now();
    for query in [[0x80], [0x88]] {
        responder.handle_datagram(now, prober_address(), &query);
        for (_, answer) in drain(&mut responder, now) {
            responder.handle_datagram(now, prober_address(), &answer);
            assert!(drain(&mut responder, now).is_empty());
        }
    }
}

#[test]
fn b4_a_reflected_reply_is_not_answered_but_a_padded_query_is() {
    let mut responder = responder(&info(4));
    let now = Instant::now();
    responder.handle_datagram(now, prober_address(), QUERIES[2]);
    let reply = drain(&mut responder, now).remove(0).1;
    responder.handle_datagram(now, prober_address(), &reply);
    assert!(drain(&mut responder, now).is_empty(), "or two servers would answer each other for ever");
    for padding in [1, 10, 64, 500] {
        for byte in [0, b'x', 0xff] {
            let length = (7 + padding as u16).to_le_bytes();
            let padded = [&length[..], &[13, 1, 2, 3, 4], &vec![byte; padding]].concat();
            responder.handle_datagram(now, prober_address(), &padded);
            assert_eq!(drain(&mut responder, now), [(prober_address(), reply.clone())], "{padding} bytes {byte}");
        }
    }
}

#[test]
fn b3_thousands_of_queries_in_one_datagram_stop_at_the_budget() {
    let mut responder = Responder::new(ResponderConfig::default(), 1, &info(4)).unwrap();
    let now = Instant::now();
    let datagram = QUERIES[2].repeat(9_000);
    responder.handle_datagram(now, prober_address(), &datagram);
    assert!(bytes(&drain(&mut responder, now)) <= 65_536);
    assert_eq!(responder.stats().over_budget + responder.stats().over_queue, 1, "the rest is not even looked at");
}

#[test]
fn each_protocol_can_be_switched_off() {
    let now = Instant::now();
    for (session, bloodmasters) in [(true, false), (false, true), (false, false)] {
        let enabled = [(session, Protocol::Session), (bloodmasters, Protocol::Bloodmasters)];
        let protocols = enabled.into_iter().filter(|(is_on, _)| *is_on).map(|(_, protocol)| protocol).collect();
        let config = ResponderConfig { protocols, ..generous() };
        let mut responder = Responder::new(config, 1, &info(4)).unwrap();
        let answers = QUERIES.map(|query| {
            responder.handle_datagram(now, prober_address(), query);
            drain(&mut responder, now).len()
        });
        assert_eq!(answers, [7 * usize::from(session), 5 * usize::from(session), usize::from(bloodmasters)]);
    }
}

#[test]
fn a_reply_never_mixes_two_infos() {
    let mut responder = responder(&info(1));
    let now = Instant::now();
    responder.handle_datagram(now, prober_address(), &[0x80]);
    let mut out = Vec::new();
    responder.poll_transmit(now, &mut out);
    responder.set_info(&info(2));
    let rest = drain(&mut responder, now);
    assert!(rest[0].1.windows(8).any(|text| text == b"server 1"));
    responder.handle_datagram(now, prober_address(), &[0x80]);
    assert!(drain(&mut responder, now)[1].1.windows(8).any(|text| text == b"server 2"));
}

proptest! {
    /// Whatever comes, from wherever: never an empty datagram (B10), never one to an address that sent no query, never more than
    /// the budgets allow.
    #[test]
    fn any_datagrams(
        script in prop::collection::vec((0u64..500, 0u8..8, prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            prop::sample::select(QUERIES.map(<[u8]>::to_vec).to_vec()),
            (1usize..600).prop_map(|count| QUERIES[2].repeat(count)),
        ]), 1..100),
    ) {
        let mut responder = Responder::new(ResponderConfig::default(), 1, &info(4)).unwrap();
        let start = Instant::now();
        let mut now = start;
        let mut drawn = [0; 8];
        for (delay, host, datagram) in script {
            now += ms(delay);
            let from = SocketAddr::from(([192, 0, 2, host], 1000));
            responder.handle_datagram(now, from, &datagram);
            for (to, answer) in drain(&mut responder, now) {
                prop_assert_eq!(to, from);
                drawn[usize::from(host)] += answer.len();
            }
        }
        let most = 65_536.0 + 16_000.0 * (now - start).as_secs_f64() + 1.0;
        prop_assert!(drawn.iter().all(|drawn| *drawn as f64 <= most));
    }
}
