//! Messages that were acknowledged are delivered, however the session ends: they are kept until they are read, and the end is
//! reported after them (W51).

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientConfig, ClientEvent, DisconnectReason, Encryption, ServerEvent};

const LINK: fn() -> Link = || Link::default().delay(ms(25));

/// The events and messages of a server that has not read for a while, in the order in which it gets them.
fn drain_server(pair: &mut Pair) -> Vec<String> {
    pair.net.with(pair.server, |app, _| {
        let mut log = Vec::new();
        while let Some(event) = app.endpoint.poll_event() {
            match event {
                ServerEvent::Message(player) => {
                    while let Some((_, message)) = app.endpoint.recv(player) {
                        log.push(format!("message {}", number_of(message)));
                    }
                }
                ServerEvent::Disconnected(_, reason) => log.push(format!("end: {reason}")),
                ServerEvent::Connected(_) => log.push("connected".into()),
                _ => {}
            }
        }
        log
    })
}

/// The expected log after `count` messages.
fn log(count: u32, end: &str) -> Vec<String> {
    (0..count).map(|number| format!("message {number}")).chain([format!("end: {end}")]).collect()
}

/// Makes the server's application stop reading and polling events.
fn stall(pair: &mut Pair) {
    pair.net.with(pair.server, |app, _| app.is_busy = true);
}

#[test]
fn w51_a_busy_server_gets_every_message_of_a_client_that_closed() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, LINK(), encryption);
        stall(&mut pair);
        for number in 0..100 {
            pair.client_send(&numbered(number, 100));
        }
        pair.net.with(pair.client, |app, now| app.client.close(now));
        pair.net.run_for(ms(1_500));
        assert!(pair.client().client.is_closed());
        assert_eq!(pair.client().client.undelivered(), 0, "the client was told that all was delivered");
        pair.net.run_for(secs(30));
        assert_eq!(drain_server(&mut pair), log(100, "the other side closed the session: "));
        assert_eq!((pair.server().endpoint.stats().memory, drain_server(&mut pair).len()), (0, 0));
    }
}

#[test]
fn w51_a_busy_server_gets_every_message_of_a_player_that_vanished() {
    let mut pair = Pair::plain(1, LINK());
    stall(&mut pair);
    for number in 0..100 {
        pair.client_send(&numbered(number, 100));
    }
    pair.net.run_for(secs(1));
    pair.net.remove(pair.client);
    pair.net.run_for(secs(60));
    assert_eq!(drain_server(&mut pair), log(100, "timed out"));
}

#[test]
fn w51_unread_messages_do_not_occupy_the_slot() {
    let mut config = server_config();
    config.max_players = 1;
    let mut pair = Pair::start(1, LINK(), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    stall(&mut pair);
    pair.client_send(&numbered(0, 100));
    pair.net.run_for(secs(1));
    let restarted = ClientApp::new(pair.net.now(), SERVER.into(), client_config(Encryption::Plain), 77);
    pair.net.replace(pair.client, restarted);
    pair.net.run_for(secs(1));
    assert!(pair.client().client.is_connected());
    pair.client_send(&numbered(1, 100));
    pair.net.run_for(secs(1));
    let log = drain_server(&mut pair);
    assert_eq!(log, ["message 0", "connected", "message 1", "end: replaced by a new login"]);
}

#[test]
fn w51_messages_of_a_player_that_the_server_disconnected_are_dropped() {
    let mut pair = Pair::plain(1, LINK());
    stall(&mut pair);
    pair.client_send(&numbered(0, 100));
    pair.net.run_for(secs(1));
    pair.net.with(pair.server, |app, now| {
        let player = app.player();
        app.endpoint.disconnect(now, player, "enough")
    });
    pair.net.run_for(secs(5));
    assert_eq!(drain_server(&mut pair), ["end: closed"]);
}

#[test]
fn w51_unread_messages_of_players_that_left_are_bounded() {
    let mut config = server_config();
    config.memory = 1 << 20;
    let mut pair = Pair::start(1, LINK(), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    stall(&mut pair);
    for round in 0..20 {
        for number in 0..200 {
            pair.client_send(&numbered(number, 400));
        }
        pair.net.run_for(secs(2));
        let app = ClientApp::new(pair.net.now(), SERVER.into(), client_config(Encryption::Plain), 10 + round);
        pair.net.replace(pair.client, app);
        pair.net.run_for(secs(1));
    }
    assert!(pair.client().client.is_connected());
    let memory = pair.server().endpoint.stats().memory;
    assert!(memory <= 1 << 20, "{memory}");
    let log = drain_server(&mut pair);
    assert_eq!(log.iter().filter(|line| line.starts_with("end")).count(), 20, "every end is reported");
}

#[test]
fn w51_a_busy_client_gets_every_message_of_a_server_that_disconnected_it() {
    for reconnect in [false, true] {
        let config = ClientConfig { reconnect, ..client_config(Encryption::Encrypted) };
        let mut pair = Pair::start(1, LINK(), server_config(), config);
        pair.wait_for_player();
        pair.net.run_for(secs(1));
        pair.net.with(pair.client, |app, _| app.is_busy = true);
        for number in 0..100 {
            pair.server_send(&numbered(number, 100));
        }
        pair.net.run_for(secs(1));
        let expected = if reconnect {
            // The server restarts: the client logs in again while its application is busy.
            pair.net.replace(pair.server, ServerApp::with_seed(server_config(), 9));
            pair.client_send(b"are you there?");
            pair.net.run_for(secs(5));
            pair.server_send(&numbered(100, 100));
            pair.net.run_for(secs(1));
            DisconnectReason::ClosedByPeer("unknown session".into())
        } else {
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                app.endpoint.disconnect(now, player, "maintenance")
            });
            pair.net.run_for(secs(5));
            DisconnectReason::ClosedByPeer("maintenance".into())
        };
        pair.net.with(pair.client, |app, now| {
            app.is_busy = false;
            app.poll(now);
        });
        let app = pair.client();
        let events: Vec<_> = app.events.iter().map(|(_, event)| event.clone()).collect();
        let end = events.iter().position(|event| *event == ClientEvent::Disconnected(expected.clone()));
        assert_eq!(app.received_before_event[end.expect("the end is reported")], 100, "{events:?}");
        let received: Vec<u32> = app.received.iter().map(|(_, message)| number_of(message)).collect();
        assert!(received.iter().copied().eq(0..100 + u32::from(reconnect)), "{received:?}");
        assert_eq!(app.client.is_connected(), reconnect);
    }
}

#[test]
fn w51_a_client_whose_application_never_reads_logs_in_again() {
    let config = ClientConfig { reconnect: true, ..client_config(Encryption::Plain) };
    let mut pair = Pair::start(1, LINK(), server_config(), config);
    pair.wait_for_player();
    pair.net.with(pair.client, |app, _| app.is_stalled = true);
    for round in 0..5 {
        pair.server_send(b"never read");
        pair.net.run_for(secs(1));
        pair.net.replace(pair.server, ServerApp::with_seed(server_config(), 10 + round));
        pair.client_send(b"are you there?");
        pair.net.run_for(secs(5));
        assert!(pair.client().client.is_connected());
    }
}
