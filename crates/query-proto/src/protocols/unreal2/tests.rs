//! The Unreal Engine 2 through a prober.

use crate::{
    MissingPart, Player, Protocol, QueryReply, ServerQuery,
    protocols::fixture::{
        Exchange, assert_is_harmless, assert_is_part_of, assert_players_are_part_of, mutations, reply_of, reply_to,
        truncations,
    },
};
use std::time::Duration;

/// A server of Killing Floor with two players, rules in two datagrams.
const INFO: &[u8] =
    b"\x80\0\0\0\0\0\0\0\0\0\x1f\x1e\0\0\0\0\0\0\x13\x1b\xfe@@Bacon \x1b@\xfe\xfeTown\0\x0eKF-BioticsLab\0\
    \x0bKFGameType\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\x0a\0\0\0\0\0\0\0\x20\0\0\0\x044.0\0";
const RULES: [&[u8]; 2] = [
    b"\x80\0\0\0\x01\x0bServerMode\0\x0adedicated\0\x0eServerVersion\0\x051065\0\x08Mutator\0\x10KillingFloorMut\0",
    b"\x80\0\0\0\x01\x08Mutator\0\x0eMutLoginCheck\0\x0dGamePassword\0\x05True\0\x09MaxLives\0\x020\0",
];
const PLAYERS: [&[u8]; 2] = [
    b"\x80\0\0\0\x02\x07\0\0\0\x08\x1b@\xf8@Ada\0\x28\0\0\0\xfd\xff\xff\xff\0\0\0\x20",
    b"\x80\0\0\0\x02\x08\0\0\0\x8c\x43\0\x61\0\x66\0\xe9\0\x20\0\xac\x20\x20\0\x1b\0\x01\0\x01\0\x01\0\0\0\
        \0\0\0\0\x05\0\0\0\0\0\0\x40",
];

/// The types of queries.
fn types(queries: &[Vec<u8>]) -> Vec<u8> {
    let of = |query: &Vec<u8>| {
        assert_eq!((query.len(), &query[..4]), (5, &[0x79, 0, 0, 0][..]));
        query[4]
    };
    queries.iter().map(of).collect()
}

fn reply_with(query: ServerQuery, datagrams: &[&[u8]]) -> QueryReply {
    reply_of(reply_to(query, datagrams))
}

#[test]
fn rules_and_players_arrive_in_any_number_of_datagrams() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let mut exchange = Exchange::new(Protocol::Unreal2.players());
        assert_eq!(types(&exchange.queries()), [0]);
        assert_eq!(types(&exchange.deliver(INFO)), [1, 2]);
        let start = exchange.now;
        for index in order {
            let datagram = [RULES[0], RULES[1], PLAYERS[0], PLAYERS[1]][index];
            assert_eq!(types(&exchange.deliver(datagram)), [0; 0]);
            assert_eq!(types(&exchange.deliver(datagram)), [0; 0], "repeated");
        }
        assert_eq!(types(&exchange.retries()), [0; 0], "nothing is missing");
        assert!(exchange.now - start < Duration::from_millis(250));
        let reply = exchange.reply();
        assert!(reply.is_complete(), "{:?}", reply.missing);
        assert_eq!(reply.raw.datagrams().count(), 5);
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Bacon Town"), Some("KF-BioticsLab")));
        assert_eq!((info.mode.as_deref(), info.version.as_deref()), (Some("KFGameType"), Some("1065")));
        assert_eq!((info.players, info.max_players, info.password), (Some(2), Some(6), Some(true)));
        assert_eq!(info.rules["ServerMode"], "dedicated");
        let mut mods: Vec<_> = info.mods.into_iter().flat_map(|one| one.id).collect();
        mods.sort();
        assert_eq!(mods, ["KillingFloorMut", "MutLoginCheck"]);
        let player = |name: &str, team, score, ping_ms| Player {
            name: name.into(),
            team: Some(team),
            score: Some(score),
            ping_ms: Some(ping_ms),
            ..Player::default()
        };
        assert_eq!(info.player_list.unwrap(), [player("Ada", 0, -3, 40), player("Café € ", 1, 5, 0)]);
        let own = &info.extensions[&Protocol::Unreal2];
        assert_eq!((own.number("port"), own.number("wave"), own.number("waves")), (Some(7_711), Some(1), Some(10)));
        assert_eq!(own.text("skill"), Some("4.0"));
    }
}

#[test]
fn lost_players_are_requested_again_and_then_named() {
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    exchange.deliver(INFO);
    exchange.deliver(RULES[0]);
    exchange.deliver(PLAYERS[0]);
    assert_eq!(types(&exchange.retries()), [2]);
    exchange.deliver(PLAYERS[0]);
    assert_eq!(types(&exchange.retries()), [2]);
    assert_eq!(types(&exchange.retries()), [0; 0]);
    let reply = exchange.reply();
    assert_eq!(reply.missing, [MissingPart::Players { received: 1, expected: Some(2) }]);
    let reply = reply_with(Protocol::Unreal2.players(), &[INFO]);
    assert_eq!(reply.missing.len(), 2);
    assert_eq!(reply.info.player_list, None);
}

#[test]
fn an_empty_server_has_no_list_to_wait_for() {
    let mut empty = INFO.to_vec();
    let at = empty.windows(4).position(|bytes| bytes == [2, 0, 0, 0]).unwrap();
    empty[at] = 0;
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    assert_eq!(types(&exchange.deliver(&empty)), [1]);
    exchange.deliver(RULES[0]);
    let reply = exchange.reply();
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list), (Some(0), Some(Vec::new())));
}

#[test]
fn one_datagram_is_enough_for_a_description() {
    for query in [Protocol::Unreal2.info(), Protocol::Unreal2.presence()] {
        let mut exchange = Exchange::new(query);
        exchange.queries();
        assert_eq!(types(&exchange.deliver(RULES[0])), [0; 0], "not requested");
        assert_eq!(types(&exchange.deliver(INFO)), [0; 0]);
        let result = exchange.finish();
        assert_eq!(result.retries, 0);
        let reply = reply_of(result);
        assert!(reply.is_complete());
        assert!(reply.info.rules.is_empty());
    }
}

#[test]
fn every_truncation_and_change_is_harmless() {
    let all = [INFO, RULES[0], RULES[1], PLAYERS[0], PLAYERS[1]];
    let whole = reply_with(Protocol::Unreal2.players(), &all).info;
    for (index, datagram) in all.into_iter().enumerate() {
        let with = |changed: &[u8]| {
            let mut datagrams = all;
            datagrams[index] = changed;
            reply_to(Protocol::Unreal2.players(), datagrams)
        };
        for cut in truncations(datagram) {
            let result = with(cut);
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &whole);
                assert_players_are_part_of(&reply.info, &whole);
            }
        }
        for changed in mutations(datagram) {
            let result = with(&changed);
            assert_is_harmless(&result);
            let list = result.reply().and_then(|reply| reply.info.player_list.as_ref());
            assert!(list.is_none_or(|list| list.len() <= 4));
        }
    }
}

#[test]
fn endless_parts_are_not_kept() {
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    exchange.deliver(INFO);
    for number in 0..2_000_u32 {
        let rule = format!("{number:04}");
        exchange.receive(&[b"\x80\0\0\0\x01\x05", rule.as_bytes(), b"\0\x02x\0"].concat());
    }
    assert_eq!(exchange.prober.stats().redundant, 2_000 - 128);
    assert_eq!(exchange.reply().info.rules.len(), 128);
}
