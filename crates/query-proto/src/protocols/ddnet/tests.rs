//! DDNet through a prober, with replies of a DDNet server 16.4.

use crate::{
    MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// Replies with token 1192967, with 3 clients, and with 60 in two datagrams.
const FEW: &[u8] = include_bytes!("../../../tests/captures/ddnet/few.bin");
const FULL: &[u8] = include_bytes!("../../../tests/captures/ddnet/full.bin");
const MORE: &[u8] = include_bytes!("../../../tests/captures/ddnet/full-more.bin");

/// The reply of a server without the extension.
const BASIC: &[u8] = include_bytes!("../../../tests/captures/teeworlds/few.bin");

/// The captured reply with the token of a query.
fn with_token(reply: &[u8], query: &[u8]) -> Vec<u8> {
    assert_eq!((&query[..2], &query[4..14]), (&b"xe"[..], &b"\0\0\xff\xff\xff\xffgie3"[..]));
    let token = u32::from_be_bytes([0, query[2], query[3], query[14]]).to_string();
    assert_eq!(reply[14..21], *b"1192967");
    [&reply[..14], token.as_bytes(), &reply[21..]].concat()
}

fn with_basic_token(reply: &[u8], query: &[u8]) -> Vec<u8> {
    [&reply[..14], query[14].to_string().as_bytes(), &reply[15..]].concat()
}

#[test]
fn a_real_server_is_described_completely() {
    let reply = probe(Protocol::Ddnet.players(), &|query| vec![with_token(FEW, query)]);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("captest ö server"));
    assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("ddnet"), Some("TestDDraceNetwor")));
    assert_eq!((info.players, info.max_players, info.spectators), (Some(3), Some(64), Some(0)));
    assert_eq!(info.player_list.unwrap().len(), 3);
    let own = &info.extensions[&Protocol::Ddnet];
    assert_eq!((own.number("map_crc"), own.number("map_size")), (Some(2_370_593_926_u32), Some(1_082_711)));
}

#[test]
fn sixty_players_come_in_two_datagrams() {
    let reply = probe(Protocol::Ddnet.players(), &|query| vec![with_token(FULL, query), with_token(MORE, query)]);
    assert!(reply.is_complete());
    assert_eq!(reply.info.players, Some(60));
    let list = reply.info.player_list.unwrap();
    assert_eq!(list.len(), 60);
    assert_eq!((&*list[0].name, &*list[59].name), ("Ada", "player 59"));
    assert_eq!(list[5].name, "x y", "the server has replaced the control character");
}

#[test]
fn a_lost_part_is_missing_and_attempts_are_not_mixed() {
    let mut exchange = Exchange::new(Protocol::Ddnet.players());
    exchange.answer(&|query| vec![with_token(FULL, query)]);
    exchange.wait();
    // The second attempt is answered with the other part only.
    exchange.answer(&|query| vec![with_token(MORE, query)]);
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Players { received: 43, expected: Some(60) }]);
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(60), 43));
}

#[test]
fn parts_without_the_first_one_describe_nothing() {
    let mut exchange = Exchange::new(Protocol::Ddnet.players());
    exchange.answer(&|query| vec![with_token(MORE, query)]);
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Part("iext (info)")]);
    assert_eq!(reply.info, crate::ServerInfo::default());
}

#[test]
fn a_server_without_the_extension_is_understood() {
    let reply = probe(Protocol::Ddnet.players(), &|query| vec![with_basic_token(BASIC, query)]);
    assert!(reply.is_complete());
    assert_eq!((reply.info.game.as_deref(), reply.info.players), (Some("teeworlds"), Some(3)));
    assert_eq!(reply.info.player_list.unwrap().len(), 3);
}

#[test]
fn a_reply_with_another_token_does_not_count() {
    let mut exchange = Exchange::new(Protocol::Ddnet.info());
    let mut query = exchange.queries().remove(0);
    for (at, expected) in [(2, 1), (3, 2), (14, 3)] {
        query[at] ^= 1;
        exchange.receive(&with_token(FEW, &query));
        assert_eq!(exchange.prober.stats().wrong_echo, expected);
        query[at] ^= 1;
    }
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Ddnet.players();
    let full = |query: &[u8]| vec![with_token(FULL, query), with_token(MORE, query)];
    assert_order_is_irrelevant(query, &full);
    assert_cuts_are_harmless(query, &full);
    assert_changes_are_harmless(query, &full);
    assert_cuts_are_harmless(query, &|query| vec![with_token(FEW, query)]);
    assert_changes_are_harmless(query, &|query| vec![with_basic_token(BASIC, query)]);
}
