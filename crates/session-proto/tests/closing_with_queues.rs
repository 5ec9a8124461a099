//! A session that is closed while messages wait in queues above the connection ends in time, and for good (S28).

use crate::common;

use common::{
    channels::{ChannelPair, ORDERED, table},
    *,
};
use rallypoint_machine::Machine;
use rallypoint_netsim::{Link, Node};
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, DisconnectReason, Encryption, Endpoint, EndpointConfig, Layer, PlayerId,
    ServerEvent,
};
use std::time::Instant;

/// The flush of S28, the three disconnects that follow it, and a tick of the timers.
const MAX_CLOSE: std::time::Duration = ms(2_200);

/// A client with channels that reconnects, in a session with a window of a few messages.
fn reconnecting_pair(idle_timeout: std::time::Duration) -> ChannelPair {
    let server = EndpointConfig::for_game("tag").channels(table(50_000));
    let mut client = ClientConfig::new("alice", "tag").channels(table(50_000));
    client.reconnect = true;
    client.connection.idle_timeout = idle_timeout;
    client.connection.keepalive = ms(1_000);
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(25)), server, client);
    pair.wait_for_player();
    pair
}

/// Queues more than the connection takes at once.
fn queue_much(pair: &mut ChannelPair) {
    let client = pair.client;
    pair.net.with(client, |app, now| while app.client.send(now, ORDERED, &[7; 40_000]).is_ok() {});
}

#[test]
fn s28_a_client_with_channels_that_loses_its_session_while_it_closes_does_not_log_in_again() {
    let mut pair = reconnecting_pair(secs(3));
    let client = pair.client;
    pair.net.isolate(client, true);
    // The session is lost within the 2 s of the flush.
    pair.net.run_for(ms(2_500));
    queue_much(&mut pair);
    pair.net.with(client, |app, now| app.client.close(now));
    pair.net.run_for(secs(5));
    pair.net.isolate(client, false);
    pair.net.run_for(secs(60));
    assert!(pair.client().client.is_closed(), "{:?}", pair.client().client);
    assert!(!pair.client().client.is_delivered());
    let connects = pair.client().events.iter().filter(|(_, event)| *event == ClientEvent::Connected).count();
    assert_eq!(connects, 1);
}

#[test]
fn s28_the_flush_of_channels_and_that_of_the_connection_share_2_s() {
    let mut pair = reconnecting_pair(secs(60));
    let client = pair.client;
    pair.net.isolate(client, true);
    queue_much(&mut pair);
    pair.net.with(client, |app, now| app.client.close(now));
    pair.net.run_for(MAX_CLOSE);
    assert!(pair.client().client.is_closed(), "{:?}", pair.client().client);
}

/// A server with channels and a player who has only the plain channel; neither gives the other up soon.
fn plain_player() -> (ChannelPair, Node<ClientApp>, PlayerId) {
    let mut server =
        EndpointConfig { plain_channel: Some(ORDERED), ..EndpointConfig::for_game("tag").channels(table(50_000)) };
    server.connection.idle_timeout = secs(60);
    server.connection.window = 64;
    let client = ClientConfig::new("alice", "tag").channels(table(50_000));
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
    let app = ClientApp::new(pair.net.now(), SERVER.into(), ClientConfig::new("bob", "tag"), 9);
    let plain = pair.net.add(([10, 0, 9, 9], 999), app);
    pair.net.run_for(secs(1));
    let server = &pair.server().server;
    let player = server.players().find(|player| !server.has_channels(*player)).expect("a player without channels");
    (pair, plain, player)
}

#[test]
fn s28_w115_a_plain_player_who_takes_nothing_is_disconnected_after_2_s() {
    let (mut pair, plain, player) = plain_player();
    pair.net.isolate(plain, true);
    pair.net.with(pair.server, |app, now| {
        while app.server.send(now, player, ORDERED, &[4; 40_000]).is_ok() {}
        assert!(app.server.disconnect(now, player, "bye"));
    });
    pair.net.run_for(MAX_CLOSE);
    let ended = ServerEvent::Disconnected(player, DisconnectReason::Closed);
    assert!(pair.server().events.iter().any(|(_, event)| *event == ended), "{:?}", pair.server().events);
}

/// A server and a client that reconnects, with streams that send 1,000 bytes per second.
fn slow_streams(idle_timeout: std::time::Duration) -> Pair {
    let layer = Layer::Stream { max_message: 50_000, is_named: true };
    let mut server = EndpointConfig { layer: layer.clone(), ..server_config() };
    server.connection.send_rate = Some(1_000);
    let mut client = ClientConfig { layer, reconnect: true, ..client_config(Encryption::Plain) };
    client.connection.send_rate = Some(1_000);
    client.connection.idle_timeout = idle_timeout;
    client.connection.keepalive = ms(1_000);
    client.connection.window = 64;
    server.connection.window = 64;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
    pair.wait_for_player();
    pair.net.run_for(ms(100));
    pair
}

#[test]
fn s28_a_session_with_more_to_hand_over_is_closed_after_2_s_and_not_resumed() {
    let mut pair = slow_streams(secs(10));
    let (client, server) = (pair.client, pair.server);
    // Both sides have more to hand over than the connection takes, and do not come to the end of it.
    pair.client_send(b"first");
    pair.client_send(&[7; 50_000]);
    pair.server_send(&[7; 50_000]);
    pair.net.with(client, |app, now| app.client.close(now));
    pair.net.with(server, |app, now| {
        let player = app.player();
        assert!(app.endpoint.disconnect(now, player, "bye"));
        assert_eq!(app.endpoint.players().count(), 0);
    });
    // Until then messages are delivered.
    pair.net.run_for(ms(1_900));
    assert_eq!(pair.server_received().len(), 1);
    assert!(pair.client().client.connection().is_some());
    pair.net.run_for(ms(300));
    assert!(pair.client().client.is_closed());
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::Closed)));
    assert_eq!(pair.server().disconnects(), [DisconnectReason::Closed]);
}

#[test]
fn s28_a_client_that_has_begun_to_close_does_not_log_in_again() {
    let mut pair = slow_streams(secs(3));
    let client = pair.client;
    pair.net.isolate(client, true);
    pair.net.run_for(ms(2_500));
    pair.client_send(&[7; 50_000]);
    pair.net.with(client, |app, now| app.client.close(now));
    pair.net.run_for(secs(5));
    assert!(pair.client().client.is_closed(), "{:?}", pair.client().client);
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::TimedOut)));
    assert!(!pair.client().client.is_delivered());
}

#[test]
fn s28_w52_an_ack_timeout_during_the_flush_does_not_leave_an_expired_timer() {
    let mut config = client_config(Encryption::Plain);
    config.connection.ack_timeout = secs(5);
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server_config(), config);
    pair.wait_for_player();
    pair.net.run_for(ms(100));
    let client = pair.client;
    pair.net.isolate(client, true);
    pair.client_send(b"never acknowledged");
    pair.net.run_for(ms(4_500));
    pair.net.with(client, |app, now| app.client.close(now));
    for _ in 0..20 {
        pair.net.run_for(ms(100));
        let now = pair.net.now();
        if let Some(at) = pair.client().client.poll_timeout() {
            assert!(at > now, "a timer that expired {:?} ago", now - at);
        }
    }
}

/// All datagrams that a machine sends now.
fn datagrams(now: Instant, machine: &mut impl Machine) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let emit = || machine.poll_transmit(now, &mut out).map(|_| std::mem::take(&mut out));
    std::iter::from_fn(emit).collect()
}

#[test]
fn w110_a_player_who_is_gone_before_events_are_polled_has_joined_and_left() {
    let start = Instant::now();
    let mut server = Endpoint::new(EndpointConfig::for_game("tag").channels(table(100)), [1; 32]).unwrap();
    let mut config = ClientConfig::new("alice", "tag").channels(table(100));
    config.connection.batch = 1;
    let mut client = Client::new(start, SERVER.into(), config, [2; 32]).unwrap();
    for login in datagrams(start, &mut client) {
        server.handle_datagram(start, CLIENT.into(), &login);
    }
    for success in datagrams(start, &mut server) {
        client.handle_datagram(start, SERVER.into(), &success);
    }
    // The message that proves the login, and then the hello.
    let first = datagrams(start, &mut client);
    assert_eq!(first.len(), 2);
    server.handle_datagram(start, CLIENT.into(), &first[0]);
    datagrams(start, &mut server);
    server.handle_datagram(start, CLIENT.into(), &first[1]);
    // The server is busy for longer than the session lasts without a datagram.
    server.handle_timeout(start + secs(11));
    let events: Vec<_> = std::iter::from_fn(|| server.poll_event()).collect();
    let [ServerEvent::Connected(new), ServerEvent::Message(_), ServerEvent::Disconnected(player, reason)] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((new.player, reason), (*player, &DisconnectReason::TimedOut));
    assert!(!server.accept_login(start + secs(11), *player), "it cannot be accepted again");
}
