//! With streams, messages may have any length, and small ones share datagrams (S33).

use crate::common;

use common::{Pair, client_event, client_options, server_event, server_options, until};
use rallypoint_session::{
    ClientEvent, ClientOptions, DisconnectReason, Encryption, Layer, LinkConditions, LoginError, ONLY_CHANNEL,
    PolledClient, PolledServer, SendError, ServerEvent, ServerOptions,
};
use std::time::Duration;

fn stream_options(max_message: usize) -> (ServerOptions, ClientOptions) {
    (server_options().stream(max_message), client_options(Encryption::Encrypted).stream(max_message))
}

#[test]
fn s33_long_messages_arrive_complete() {
    let (server, client) = stream_options(1 << 20);
    let mut pair = Pair::new(server, client);
    let long: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
    pair.client.send(ONLY_CHANNEL, &long).unwrap();
    pair.client.send(ONLY_CHANNEL, b"short").unwrap();
    pair.server.send(pair.player, ONLY_CHANNEL, &long[..7_000]).unwrap();
    assert_eq!(pair.server_recv(), long);
    assert_eq!(pair.server_recv(), b"short");
    assert_eq!(pair.client_recv(), &long[..7_000]);
    assert_eq!((pair.client.max_message(), pair.server.max_message(pair.player)), (Some(1 << 20), Some(1 << 20)));
}

#[test]
fn s33_small_messages_share_datagrams() {
    let (server, client) = stream_options(1_000);
    let mut pair = Pair::new(server, client);
    let before = pair.client.stats().unwrap().messages_sent;
    for number in 0..100u8 {
        pair.client.send(ONLY_CHANNEL, &[number; 9]).unwrap();
    }
    for number in 0..100u8 {
        assert_eq!(pair.server_recv(), [number; 9]);
    }
    let sent = pair.client.stats().unwrap().messages_sent - before;
    assert!(sent <= 3, "1000 bytes took {sent} datagrams");
}

#[test]
fn s33_messages_that_are_left_are_delivered_before_a_disconnect() {
    let (mut server, mut client) = stream_options(1 << 20);
    // Small, so that few datagrams are more than fits: under Wine, each takes milliseconds on a busy machine.
    server.endpoint.connection.window = 256;
    client.client.connection.window = 256;
    let mut pair = Pair::new(server, client);
    let long = vec![7; 300_000];
    pair.server.send(pair.player, ONLY_CHANNEL, &long).unwrap();
    assert!(pair.server.disconnect(pair.player, "enough"));
    assert_eq!(pair.server.send(pair.player, ONLY_CHANNEL, b"more"), Err(SendError::Closed));
    assert_eq!(pair.client_recv(), long);
    until("the client is disconnected", || {
        pair.poll();
        matches!(pair.client.next_event(), Some(ClientEvent::Disconnected(_)))
    });
}

/// Drops every datagram.
fn outage() -> Option<LinkConditions> {
    Some(LinkConditions { loss: 1.0, ..LinkConditions::default() })
}

/// A pair whose streams have more to send than fits, with an idle timeout that plays no part.
fn full_pair() -> Pair {
    let (mut server, mut client) = stream_options(1 << 20);
    for connection in [&mut server.endpoint.connection, &mut client.client.connection] {
        connection.window = 64;
        connection.idle_timeout = Duration::from_mins(5);
    }
    client.client.reconnect = true;
    Pair::new(server, client)
}

#[test]
fn s28_a_client_whose_stream_cannot_be_sent_closes_for_good() {
    let mut pair = full_pair();
    pair.client.set_link_conditions(outage());
    pair.client.send(ONLY_CHANNEL, &vec![7; 300_000]).unwrap();
    pair.client.close();
    until("the client is closed", || {
        pair.poll();
        let _ = pair.client.next_event();
        pair.client.is_closed()
    });
    assert!(!pair.client.is_delivered());
}

#[test]
fn s28_a_player_whose_stream_cannot_be_sent_is_disconnected() {
    let mut pair = full_pair();
    pair.client.set_link_conditions(outage());
    pair.server.send(pair.player, ONLY_CHANNEL, &vec![7; 300_000]).unwrap();
    assert!(pair.server.disconnect(pair.player, "enough"));
    until("the player is gone", || {
        pair.poll();
        pair.server.next_event() == Some(ServerEvent::Disconnected(pair.player, DisconnectReason::Closed))
    });
}

#[test]
fn s33_errors_name_the_limit() {
    let (server, client) = stream_options(100);
    let mut pair = Pair::new(server, client);
    assert_eq!(pair.client.send(ONLY_CHANNEL, &[0; 101]), Err(SendError::TooLarge { limit: 100, length: 101 }));
    assert_eq!(pair.client.send(ONLY_CHANNEL, &[]), Err(SendError::Empty));
    // Without streams, a message that does not fit into a datagram is refused.
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    let refused = pair.client.send(ONLY_CHANNEL, &[0; 485]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a message of 485 bytes is too large: the limit is 484 bytes; use a stream for more"
    );
    assert_eq!(pair.server.max_message(pair.player), Some(497));
}

#[test]
fn s33_a_client_that_breaks_the_stream_is_disconnected() {
    let (mut server, _) = stream_options(100);
    server.endpoint.layer = Layer::Stream { max_message: 100, is_named: false };
    // This client uses no streams: the start of its message is read as an invalid length.
    let mut pair = Pair::new(server, client_options(Encryption::Plain));
    pair.client.send(ONLY_CHANNEL, &[0xff; 20]).unwrap();
    until("the client is disconnected", || {
        pair.poll();
        let _ = pair.server.next_event();
        matches!(pair.client.next_event(), Some(ClientEvent::Disconnected(_)))
    });
}

#[test]
fn w118_a_login_is_refused_if_only_one_side_has_a_stream() {
    let (with_server, with_client) = stream_options(100);
    let cases = [
        (with_server, client_options(Encryption::Encrypted), "this server requires a stream"),
        (server_options(), with_client, "this server has no stream"),
    ];
    for (server, client, reason) in cases {
        let mut server = PolledServer::bind(server).unwrap();
        let addr = server.local_addrs()[0];
        let mut client = PolledClient::connect(addr, client).unwrap();
        let mut event = None;
        until("the login is refused", || {
            server.poll();
            client.poll();
            event = client.next_event().map(client_event);
            event.is_some()
        });
        assert_eq!(event, Some(ClientEvent::LoginFailed(LoginError::Refused(reason.into()))));
    }
}

#[test]
fn w118_the_application_sees_the_game_without_what_names_the_stream() {
    let (server, client) = stream_options(100);
    let game = client.client.game.clone();
    let mut server = PolledServer::bind(server).unwrap();
    let addr = server.local_addrs()[0];
    let mut client = PolledClient::connect(addr, client).unwrap();
    let mut event = None;
    until("the player is connected", || {
        server.poll();
        client.poll();
        event = server.next_event().map(server_event);
        event.is_some()
    });
    assert!(matches!(event, Some(ServerEvent::Connected(new)) if new.game == game));
}
