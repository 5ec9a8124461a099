//! Teeworlds 0.7 through a prober, with replies of a Teeworlds server 0.7.5 and of a DDNet server 16.4.

use crate::{
    ExtensionValue, MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// The tokens of the server and of the client (11223344), and the reply to the number 01020304, with 3 players and a spectator.
const TOKEN: &[u8] = include_bytes!("../../../tests/captures/teeworlds7/token.bin");
const INFO: &[u8] = include_bytes!("../../../tests/captures/teeworlds7/info.bin");

/// Replies of DDNet, with 3 players and with 60.
const DDNET_FEW: &[u8] = include_bytes!("../../../tests/captures/teeworlds7/ddnet-few.bin");
const DDNET_FULL: &[u8] = include_bytes!("../../../tests/captures/teeworlds7/ddnet-full.bin");

/// The server: a captured reply with the tokens of a query.
fn answer(reply: &[u8], query: &[u8]) -> Vec<Vec<u8>> {
    if query.len() == 519 {
        return vec![[&TOKEN[..3], &query[8..12], &TOKEN[7..]].concat()];
    }
    if query[1..5] != TOKEN[8..12] {
        // The token was damaged on its way.
        return Vec::new();
    }
    assert_eq!(reply[17..21], *b"\x84\x8c\x90\x10");
    vec![[&reply[..1], &query[5..9], &query[1..5], &reply[9..17], &query[17..], &reply[21..]].concat()]
}

#[test]
fn a_real_server_is_described_completely() {
    let reply = probe(Protocol::Teeworlds7.players(), &|query| answer(INFO, query));
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    assert_eq!(reply.raw.datagrams().count(), 1, "the token is of no use later");
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("captest 0.7"), Some("ctf2")));
    assert_eq!((info.mode.as_deref(), info.version.as_deref()), (Some("CTF"), Some("0.7.5")));
    assert_eq!((info.players, info.max_players, info.spectators, info.bots), (Some(3), Some(6), Some(1), Some(0)));
    assert_eq!(info.password, Some(false));
    let list = info.player_list.unwrap();
    let shown: Vec<_> = list.iter().map(|it| (&*it.name, it.score, it.spectator)).collect();
    let expected = [("Ada", 0, false), ("Grace \"G\"", 0, false), ("Müller", 0, false), ("東京", 0, true)];
    assert_eq!(shown, expected.map(|(name, score, spectator)| (name, Some(score), spectator)));
    assert_eq!(list[3].extension.get("clan"), Some(&ExtensionValue::Text("clan 3".into())));
    assert_eq!((list[3].extension.number("country"), list[1].extension.number("country")), (Some(156), None::<i32>));
    let own = &info.extensions[&Protocol::Teeworlds7];
    assert_eq!(own.get("hostname"), Some(&ExtensionValue::Text("tee.example.org".into())));
    assert_eq!((own.number("max_clients"), own.number("skill_level")), (Some(8), Some(1)));
}

#[test]
fn ddnet_answers_too_with_times_instead_of_points() {
    let few = probe(Protocol::Teeworlds7.players(), &|query| answer(DDNET_FEW, query)).info;
    assert_eq!((few.version.as_deref(), few.max_players), (Some("0.7↔0.6.4, 16.4"), Some(64)));
    let list = few.player_list.unwrap();
    assert_eq!(list.len(), 3);
    assert!(list.iter().all(|player| player.score.is_none()), "no player has finished");
    let full = probe(Protocol::Teeworlds7.players(), &|query| answer(DDNET_FULL, query)).info;
    assert_eq!((full.players, full.player_list.unwrap().len()), (Some(60), 60));
}

#[test]
fn the_token_is_enough_for_presence() {
    let mut exchange = Exchange::new(Protocol::Teeworlds7.presence());
    let query = exchange.queries().remove(0);
    exchange.receive(&answer(INFO, &query)[0]);
    assert_eq!(exchange.queries(), Vec::<Vec<u8>>::new());
    assert!(reply_of(exchange.finish()).is_complete());
}

#[test]
fn a_server_that_only_exchanges_tokens_is_described_in_part() {
    let mut exchange = Exchange::new(Protocol::Teeworlds7.info());
    exchange.answer(&|query| if query.len() == 519 { answer(INFO, query) } else { Vec::new() });
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Part("inf3 (info)")]);
    assert_eq!(reply.info, crate::ServerInfo::default());
}

#[test]
fn replies_with_other_tokens_do_not_count() {
    let mut exchange = Exchange::new(Protocol::Teeworlds7.info());
    exchange.receive(TOKEN);
    let query = exchange.queries().remove(0);
    exchange.receive(TOKEN);
    assert_eq!(exchange.prober.stats().wrong_echo, 1);
    exchange.receive(&answer(INFO, &query)[0]);
    let query = exchange.queries().remove(0);
    let good = answer(INFO, &query).remove(0);
    for at in [1, 4, 18] {
        let mut forged = good.clone();
        forged[at] ^= 1;
        exchange.receive(&forged);
    }
    assert_eq!(exchange.prober.stats().wrong_echo, 4);
    exchange.receive(&good);
    assert!(matches!(exchange.finish().outcome, ProbeOutcome::Answered(_)));
}

#[test]
fn bots_are_not_players() {
    let start = [&INFO[..21], b"v\0n\0h\0m\0t\0\x01\0\x03\x08\x04\x08"].concat();
    let reply = [&start[..], b"a\0\0\x40\x05\0b\0\0\x40\x41\x02c\0\0\x40\0\x02d\0\0\x40\0\x03"].concat();
    let info = probe(Protocol::Teeworlds7.players(), &|query| answer(&reply, query)).info;
    assert_eq!((info.players, info.bots, info.spectators, info.password), (Some(1), Some(2), Some(1), Some(true)));
    let scores: Vec<_> = info.player_list.iter().flatten().map(|player| player.score).collect();
    assert_eq!(scores, [Some(5), Some(-2), Some(0), Some(0)]);
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Teeworlds7.players();
    assert_order_is_irrelevant(query, &|query| answer(INFO, query));
    assert_cuts_are_harmless(query, &|query| answer(INFO, query));
    assert_changes_are_harmless(query, &|query| answer(INFO, query));
    assert_changes_are_harmless(query, &|query| answer(DDNET_FULL, query));
}
