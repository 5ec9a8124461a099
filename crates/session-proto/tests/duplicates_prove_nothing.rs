//! A datagram that was received before, or claims a number that was, proves nothing: in an encrypted session it is opened
//! first, and even then it neither keeps a session alive nor validates an address (W64). Datagrams that cannot be opened are
//! dropped, however many (S30).

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, Connection, DisconnectReason, Encryption};

/// An encrypted session in which both sides have sent something, and the first datagram of each side.
fn connect() -> (Pair, [Vec<u8>; 2]) {
    let link = Link::default().delay(ms(10));
    let mut pair = Pair::start(1, link, server_config(), client_config(Encryption::Encrypted));
    let tap = Wiretap::attach(&mut pair.net);
    pair.wait_for_player();
    pair.client_send(b"from the client");
    pair.server_send(b"from the server");
    pair.net.run_for(secs(1));
    let first = |from: ([u8; 4], u16)| tap.sent(from, &[SEALED]).first().unwrap().clone();
    let datagrams = [first(CLIENT), first(SERVER)];
    (pair, datagrams)
}

/// Cuts the path, and waits until what is under way has arrived.
fn cut_off(pair: &mut Pair) {
    pair.net.partition(pair.client, pair.server, true);
    pair.net.run_for(ms(50));
}

#[test]
fn w64_a_forged_duplicate_is_not_acked_and_keeps_no_session_alive() {
    let (mut pair, [from_client, from_server]) = connect();
    cut_off(&mut pair);
    let tap = Wiretap::attach(&mut pair.net);
    for _ in 0..120 {
        pair.net.inject(CLIENT, SERVER, &with_wrong_seal(&from_client));
        pair.net.inject(SERVER, CLIENT, &with_wrong_seal(&from_server));
        pair.net.run_for(ms(100));
    }
    assert_eq!((tap.bytes(SERVER, &[ACK]), tap.bytes(CLIENT, &[ACK])), (0, 0));
    assert_eq!(pair.server().disconnects(), [DisconnectReason::TimedOut]);
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::TimedOut)));
}

#[test]
fn w64_a_replayed_duplicate_keeps_no_session_alive() {
    let (mut pair, [from_client, from_server]) = connect();
    cut_off(&mut pair);
    for _ in 0..120 {
        pair.net.inject(CLIENT, SERVER, &from_client);
        pair.net.inject(SERVER, CLIENT, &from_server);
        pair.net.run_for(ms(100));
    }
    assert_eq!(pair.server().disconnects(), [DisconnectReason::TimedOut]);
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::TimedOut)));
}

#[test]
fn w64_a_duplicate_does_not_prove_that_a_disconnect_was_forged() {
    let (mut pair, [from_client, from_server]) = connect();
    cut_off(&mut pair);
    pair.net.inject(CLIENT, SERVER, b"\x8d\xef\x02\xd2\x00");
    pair.net.inject(SERVER, CLIENT, b"\x00bye");
    for _ in 0..30 {
        pair.net.inject(CLIENT, SERVER, &with_wrong_seal(&from_client));
        pair.net.inject(SERVER, CLIENT, &from_server);
        pair.net.run_for(ms(100));
    }
    assert_eq!(pair.server().disconnects().len(), 1);
    assert!(!pair.client().client.is_connected());
}

#[test]
fn w64_a_duplicate_earns_a_new_address_no_credit() {
    let (mut pair, [from_client, _]) = connect();
    let claimed = ([10, 9, 9, 9], 9);
    // The session claims to have moved: the new address is not validated, and what it may be sent is limited.
    pair.net.rebind(pair.client, claimed);
    pair.client_send(b"moved");
    pair.net.run_for(ms(15));
    pair.net.isolate(pair.client, true);
    pair.net.run_for(ms(100));
    let before = pair.server().endpoint.stats().unvalidated_bytes;
    for number in 0..50 {
        pair.server_send(&numbered(number, 400));
    }
    for _ in 0..2_000 {
        pair.net.inject(claimed, SERVER, &with_wrong_seal(&from_client));
        pair.net.inject(claimed, SERVER, &from_client);
        pair.net.run_for(ms(1));
    }
    let drawn = pair.server().endpoint.stats().unvalidated_bytes - before;
    assert!(drawn < 1_000, "{drawn} bytes to an address that proved nothing");
}

#[test]
fn s30_datagrams_that_cannot_be_opened_do_not_end_a_session() {
    let (mut pair, [from_client, from_server]) = connect();
    let mut forged = [with_wrong_seal(&from_client), with_wrong_seal(&from_server)];
    // A number inside the window, and one that was received before.
    for number in [1_000_u32, 0] {
        for datagram in &mut forged {
            datagram[5..9].copy_from_slice(&number.to_le_bytes());
            let crc = crc(&datagram[5..]);
            datagram[1..5].copy_from_slice(&crc.to_le_bytes());
        }
        for _ in 0..350 {
            for _ in 0..100 {
                pair.net.inject(CLIENT, SERVER, &forged[0]);
                pair.net.inject(SERVER, CLIENT, &forged[1]);
            }
            pair.net.run_for(ms(1));
        }
    }
    pair.client_send(b"still here");
    pair.server_send(b"still here");
    pair.net.run_for(secs(1));
    assert_eq!((pair.server_received().len(), pair.client().received.len()), (2, 2));
    let dropped = pair.client().client.connection().map(Connection::stats).unwrap().dropped;
    assert_eq!(dropped, 70_000);
}
