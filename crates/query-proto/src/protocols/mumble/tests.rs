//! Mumble through a prober, with a reply of Murmur 1.3.4.

use crate::{
    MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// The reply to the token 0102030405060708 of a server with 57 places.
const PING: &[u8] = include_bytes!("../../../tests/captures/mumble/ping.bin");

fn answer(version: [u8; 3], query: &[u8]) -> Vec<Vec<u8>> {
    vec![[&PING[..1], &version, &query[4..], &PING[12..]].concat()]
}

/// A server of version 1.5.735. The longer reply is sent later, with 3 users.
fn answer_extended(query: &[u8]) -> Vec<Vec<u8>> {
    match query.strip_prefix(b"\x01") {
        Some(query) => {
            let token = query.strip_suffix(b"\x10\x01").expect("a request for more");
            vec![[b"\x01", token, b"\x18\x80\x80\xfc\x96\xd0\x80\x40\x20\x03\x28\x39\x30\xc0\xb2\x04"].concat()]
        }
        None => answer([1, 5, 255], query),
    }
}

#[test]
fn a_real_server_is_described_completely() {
    for query in [Protocol::Mumble.players(), Protocol::Mumble.info(), Protocol::Mumble.presence()] {
        let reply = probe(query, &|query| answer([1, 3, 4], query));
        assert!(reply.is_complete());
        assert_eq!(reply.round_trip.method, RttMethod::Echo);
        let info = reply.info;
        assert_eq!((info.game.as_deref(), info.version.as_deref()), (Some("mumble"), Some("1.3.4")));
        assert_eq!((info.players, info.max_players, info.player_list), (Some(0), Some(57), None));
        assert_eq!(info.extensions[&Protocol::Mumble].number("bandwidth"), Some(72_000));
    }
}

#[test]
fn a_patch_level_that_does_not_fit_is_requested() {
    let reply = probe(Protocol::Mumble.info(), &answer_extended);
    assert!(reply.is_complete());
    assert_eq!((reply.info.version.as_deref(), reply.info.players), (Some("1.5.735"), Some(0)));

    let reply = reply_of({
        let mut exchange = Exchange::new(Protocol::Mumble.info());
        exchange.answer(&|query| if query.len() == 12 { answer_extended(query) } else { Vec::new() });
        exchange.finish()
    });
    assert_eq!(reply.missing, [MissingPart::Part("extended ping (patch level)")]);
    assert_eq!(reply.info.version.as_deref(), Some("1.5"));

    let presence = probe(Protocol::Mumble.presence(), &|query| answer([1, 5, 255], query));
    assert!(presence.is_complete());
}

#[test]
fn a_reply_with_another_token_does_not_count() {
    let mut exchange = Exchange::new(Protocol::Mumble.info());
    exchange.queries();
    exchange.receive(PING);
    assert_eq!(exchange.prober.stats().wrong_echo, 1);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn numbers_that_cannot_be_are_left_out() {
    let reply = probe(Protocol::Mumble.info(), &|query| {
        vec![[&PING[..4], &query[4..], b"\0\x01\0\0\0\0\x01\x2c\0\0\0\0"].concat()]
    });
    assert_eq!((reply.info.players, reply.info.max_players), (None, Some(300)));
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Mumble.players();
    assert_order_is_irrelevant(query, &answer_extended);
    assert_changes_are_harmless(query, &answer_extended);
    assert_cuts_are_harmless(query, &|query| answer([1, 3, 4], query));
}
