//! How a session ends (S28), and how an idle one is kept alive (S29).

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, DisconnectReason, Encryption, ONLY_CHANNEL, SendError, ServerEvent};

const CLIENT_DISCONNECT: [u8; 5] = [0x8d, 0xef, 0x02, 0xd2, 0x00];

#[test]
fn s28_a_client_that_closes_delivers_the_messages_that_are_left() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)).loss(0.1));
    for number in 0..200 {
        pair.client_send(&numbered(number, 400));
    }
    pair.net.with(pair.client, |app, now| app.client.close(now));
    let refused = pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, b"late"));
    assert_eq!(refused, Err(SendError::Closed));
    pair.net.run_for(secs(5));
    assert_eq!(pair.server_received().len(), 200);
    assert_eq!(pair.server().disconnects(), [DisconnectReason::ClosedByPeer(String::new())]);
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::Closed)));
    assert!(pair.client().client.is_closed());
    assert_eq!(pair.server().endpoint.stats().players, 0);
}

#[test]
fn a_client_that_closes_learns_how_many_messages_were_not_acknowledged() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)));
    pair.client_send(b"delivered");
    pair.net.run_for(secs(1));
    assert_eq!(pair.client().client.undelivered(), 0);
    let client = pair.client;
    pair.net.isolate(client, true);
    pair.client_send(b"lost");
    pair.client_send(b"lost, too");
    assert_eq!(pair.client().client.undelivered(), 2);
    pair.net.with(client, |app, now| app.client.close(now));
    pair.net.run_for(secs(3));
    assert!(pair.client().client.is_closed());
    assert_eq!(pair.client().client.undelivered(), 2, "messages without bytes do not count");
}

#[test]
fn s28_a_player_learns_the_reason_of_a_disconnect() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)));
    pair.net.with(pair.server, |app, now| {
        let player = app.player();
        assert!(app.endpoint.disconnect(now, player, "it is late"));
    });
    pair.net.run_for(secs(3));
    assert!(pair.client().has(&ClientEvent::Closing));
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::ClosedByPeer("it is late".into()))));
    assert_eq!(pair.server().disconnects(), [DisconnectReason::Closed]);
    let sent = pair.net.counters(pair.server, pair.client).sent.datagrams;
    pair.net.run_for(secs(20));
    assert_eq!(pair.net.counters(pair.server, pair.client).sent.datagrams, sent, "nothing more is sent");
}

#[test]
fn s28_a_player_on_a_slow_path_learns_the_reason_of_a_disconnect() {
    // Three timeouts of this path are longer than the client waits for any datagram.
    let mut config = client_config(Encryption::Plain);
    config.connection.idle_timeout = secs(3);
    config.connection.keepalive = ms(800);
    let mut pair = Pair::start(1, Link::default().delay(ms(600)), server_config(), config);
    pair.wait_for_player();
    for _ in 0..3 {
        pair.client_send(b"measures the round trip");
        pair.net.run_for(secs(2));
    }
    pair.net.with(pair.server, |app, now| {
        let player = app.player();
        assert!(app.endpoint.disconnect(now, player, "it is late"));
    });
    pair.net.run_for(secs(15));
    assert!(
        pair.client().has(&ClientEvent::Disconnected(DisconnectReason::ClosedByPeer("it is late".into()))),
        "{:?}",
        pair.client().events
    );
}

#[test]
fn s28_forged_disconnects_change_nothing() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, Link::default().delay(ms(25)), encryption);
        for number in 0..100 {
            pair.net.inject(CLIENT, SERVER, &CLIENT_DISCONNECT);
            pair.net.inject(SERVER, CLIENT, b"\0go away");
            pair.client_send(&numbered(number, 50));
            pair.server_send(&numbered(number, 50));
            pair.net.run_for(ms(100));
        }
        // And while both sides are idle.
        for _ in 0..20 {
            pair.net.inject(CLIENT, SERVER, &CLIENT_DISCONNECT);
            pair.net.inject(SERVER, CLIENT, b"\0go away");
            pair.net.run_for(ms(700));
        }
        assert!(pair.client().client.is_connected());
        assert_eq!(pair.server().disconnects(), []);
        assert_eq!((pair.server_received().len(), pair.client().received.len()), (100, 100));
        let closing = |event: &(_, ServerEvent)| matches!(event.1, ServerEvent::Closing(_));
        assert!(pair.server().events.iter().any(closing), "the event is raised at once");
    }
}

#[test]
fn s29_an_idle_session_costs_less_than_40_bytes_per_second() {
    let mut pair = Pair::connect(1, Link::default().delay(ms(25)), Encryption::Encrypted);
    pair.net.run_for(secs(10));
    let before = pair.net.totals().sent;
    pair.net.run_for(secs(600));
    let after = pair.net.totals().sent;
    let headers = 28 * (after.datagrams - before.datagrams);
    let per_second = (after.bytes - before.bytes + headers) / 600;
    assert!(per_second < 40, "{per_second} bytes per second with the headers of UDP and IP");
    assert!(pair.client().client.is_connected() && pair.server().disconnects().is_empty());
}

#[test]
fn s29_a_session_ends_after_10_s_without_a_datagram() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)));
    pair.net.run_for(secs(5));
    pair.net.partition(pair.client, pair.server, true);
    pair.net.run_for(ms(7_500));
    assert!(pair.client().client.is_connected());
    pair.net.run_for(secs(3));
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::TimedOut)));
    assert_eq!(pair.server().disconnects(), [DisconnectReason::TimedOut]);
}

#[test]
fn s29_keepalives_are_answered_5_times_a_second_and_only_for_a_player() {
    let mut pair = Pair::plain(1, Link::default());
    pair.net.run_for(secs(1));
    let before = pair.net.counters(pair.server, pair.client).sent.datagrams;
    for _ in 0..1000 {
        pair.net.inject(CLIENT, SERVER, &[0x33]);
        pair.net.inject(CLIENT, SERVER, &[0xcc]);
        pair.net.inject(([10, 9, 9, 9], 9), SERVER, &[0x33]);
        pair.net.run_for(ms(1));
    }
    let answers = pair.net.counters(pair.server, pair.client).sent.datagrams - before;
    assert!(answers <= 6, "{answers}");
    assert_eq!(pair.server().endpoint.stats().unvalidated_bytes, 14, "only the login success");
}
