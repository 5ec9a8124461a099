//! A peer that acknowledges nothing does not keep a session, and its window, for ever (W52).

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::{FilterAction, Link};
use rallypoint_session_proto::{ClientEvent, DisconnectReason, Encryption, ONLY_CHANNEL};

const LINK: fn() -> Link = || Link::default().delay(ms(25));

/// Removes the acks of a player whose keepalives and messages still arrive.
fn drop_acks(pair: &mut Pair) {
    pair.net.set_filter(|packet| {
        let is_ack = packet.from == CLIENT.into() && packet.bytes.first() == Some(&0xff);
        if is_ack { FilterAction::Drop } else { FilterAction::Pass }
    });
}

#[test]
fn w52_a_session_without_acks_ends_after_30_s() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, LINK(), encryption);
        pair.net.run_for(secs(5));
        drop_acks(&mut pair);
        pair.server_send(b"never acknowledged");
        pair.net.run_for(secs(29));
        assert_eq!(pair.server().disconnects(), []);
        pair.net.run_for(secs(2));
        assert_eq!(pair.server().disconnects(), [DisconnectReason::AckTimeout]);
        assert_eq!((pair.server().endpoint.stats().players, pair.server().endpoint.stats().memory), (0, 0));
        pair.net.run_for(secs(2));
        let reason = DisconnectReason::ClosedByPeer("nothing was acknowledged for too long".into());
        assert!(pair.client().has(&ClientEvent::Disconnected(reason)), "{:?}", pair.client().events);
    }
}

#[test]
fn w52_the_time_is_counted_from_the_first_message_after_the_last_ack() {
    let mut pair = Pair::plain(1, LINK());
    // An idle session has nothing to acknowledge, however long that takes.
    pair.net.run_for(secs(300));
    drop_acks(&mut pair);
    for number in 0..20 {
        pair.server_send(&numbered(number, 50));
        pair.net.run_for(secs(1));
    }
    // A single ack is enough for another 30 s.
    pair.net.clear_filter();
    pair.net.run_for(secs(1));
    drop_acks(&mut pair);
    pair.server_send(&numbered(20, 50));
    pair.net.run_for(secs(29));
    assert_eq!(pair.server().disconnects(), []);
    pair.net.clear_filter();
    pair.net.run_for(secs(60));
    assert_eq!((pair.server().disconnects(), pair.client().received.len()), (vec![], 21));
}

#[test]
fn w52_resend_requests_and_acks_of_old_messages_do_not_count() {
    let mut pair = Pair::plain(1, LINK());
    pair.server_send(b"acknowledged");
    pair.net.run_for(secs(1));
    drop_acks(&mut pair);
    pair.server_send(b"not acknowledged");
    for _ in 0..300 {
        pair.net.with(pair.server, |app, now| {
            app.handle_datagram(now, CLIENT.into(), b"\xff\x01\0\0\0\0\xff\xff\xff\xff");
            app.handle_datagram(now, CLIENT.into(), b"\xaa\x01\x01\0\0\0\xfe\xff\xff\xff");
        });
        pair.net.run_for(ms(110));
    }
    assert_eq!(pair.server().disconnects(), [DisconnectReason::AckTimeout]);
}

#[test]
fn w52_a_peer_that_reads_nothing_for_a_while_can_be_given_more_time() {
    let mut server = server_config();
    server.connection.ack_timeout = secs(120);
    let mut pair = Pair::start(1, LINK(), server, client_config(Encryption::Plain));
    pair.wait_for_player();
    pair.net.with(pair.client, |app, _| app.is_stalled = true);
    let mut sent = 0;
    for _ in 0..1_000 {
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(sent, 50)).is_ok() {
                sent += 1;
            }
        });
        pair.net.run_for(ms(100));
    }
    assert_eq!(pair.server().disconnects(), []);
    pair.net.with(pair.client, |app, now| {
        app.is_stalled = false;
        while let Some(message) = app.client.recv().map(|(_, bytes)| bytes.to_vec()) {
            app.received.push((now, message));
        }
    });
    pair.net.run_for(secs(5));
    let received = pair.client().received.iter().map(|(_, message)| number_of(message));
    assert!(received.eq(0..sent));
}

#[test]
fn w52_a_client_that_reconnects_logs_in_again() {
    let mut config = client_config(Encryption::Plain);
    config.reconnect = true;
    let mut pair = Pair::start(1, LINK(), server_config(), config);
    pair.wait_for_player();
    drop_acks(&mut pair);
    pair.server_send(b"never acknowledged");
    pair.net.run_for(secs(31));
    pair.net.clear_filter();
    pair.net.run_for(secs(3));
    assert_eq!((pair.server().connect_count(), pair.client().client.is_connected()), (2, true));
}
