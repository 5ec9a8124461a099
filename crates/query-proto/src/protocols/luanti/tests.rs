//! Luanti through a prober, with datagrams of a Minetest server 5.6.1.

use crate::{
    ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe,
    },
};

/// The number of a client, 2.
const PEER: &[u8] = b"\x4f\x45\x74\x03\0\x01\0\x03\xff\xdc\0\x01\0\x02";

const HELLO: &[u8] = b"\x4f\x45\x74\x03\0\0\0\x01";
const DISCONNECT: &[u8] = b"\x4f\x45\x74\x03\0\x02\0\0\x03";

fn answer(query: &[u8]) -> Vec<Vec<u8>> {
    if query == HELLO { vec![PEER.to_vec()] } else { Vec::new() }
}

#[test]
fn a_connection_is_ended_at_once() {
    for query in [Protocol::Luanti.presence(), Protocol::Luanti.info(), Protocol::Luanti.players()] {
        let mut exchange = Exchange::new(query);
        assert_eq!(exchange.queries(), [HELLO]);
        exchange.receive(PEER);
        assert_eq!(exchange.prober.in_flight(), 1, "until the disconnect has been sent");
        assert_eq!(exchange.queries(), [DISCONNECT, DISCONNECT]);
        assert_eq!(exchange.prober.in_flight(), 0, "nothing else is expected");
        let ProbeOutcome::Answered(reply) = exchange.finish().outcome else { panic!("no reply") };
        assert!(reply.is_complete());
        assert_eq!((reply.info.game.as_deref(), reply.round_trip.method), (Some("luanti"), RttMethod::FirstReply));
    }
}

#[test]
fn a_number_that_is_sent_again_changes_nothing() {
    let mut exchange = Exchange::new(Protocol::Luanti.presence());
    exchange.queries();
    exchange.receive(PEER);
    exchange.receive(PEER);
    assert_eq!(exchange.prober.stats().redundant, 1);
    assert_eq!(exchange.queries(), [DISCONNECT, DISCONNECT]);
}

#[test]
fn a_silent_server_times_out() {
    let mut exchange = Exchange::new(Protocol::Luanti.presence());
    assert_eq!(exchange.queries(), [HELLO]);
    exchange.receive(b"\x4f\x45\x74\x03\0\x01\0\x00\x00\xff\xdc");
    let result = exchange.finish();
    assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)));
    assert_eq!(result.malformed, 1);
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Luanti.players();
    assert!(probe(query, &answer).is_complete());
    assert_order_is_irrelevant(query, &answer);
    assert_cuts_are_harmless(query, &answer);
    assert_changes_are_harmless(query, &answer);
}
