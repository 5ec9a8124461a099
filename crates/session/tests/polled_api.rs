//! The polled API: everything happens in `poll`.

use crate::common;

use common::{Pair, all_encryptions, client_event, client_options, server_options, until};
use rallypoint_session::{
    ClientEvent, DisconnectReason, Encryption, LoginError, ONLY_CHANNEL, PolledClient, PolledServer, ServerEvent,
};
use std::time::Duration;

#[test]
fn messages_arrive_in_order_in_both_directions() {
    for encryption in all_encryptions() {
        let is_encrypted = encryption != Encryption::Plain;
        let mut pair = Pair::new(server_options(), client_options(encryption));
        for number in 0..200u8 {
            pair.client.send(ONLY_CHANNEL, &[number; 100]).unwrap();
            pair.server.send(pair.player, ONLY_CHANNEL, &[number; 50]).unwrap();
        }
        for number in 0..200u8 {
            assert_eq!(pair.server_recv(), [number; 100]);
            assert_eq!(pair.client_recv(), [number; 50]);
        }
        let connection = pair.server.connection(pair.player).unwrap();
        assert_eq!(
            (connection.is_encrypted(), connection.peer().port()),
            (is_encrypted, pair.client.local_addr().port())
        );
        assert_eq!(pair.client.stats().unwrap().messages_received, 200);
        let stats = pair.server.stats(pair.player).unwrap();
        assert_eq!(stats.messages_received, 201, "including the empty one that proves the login (S15)");
        assert_eq!(pair.server.endpoint_stats().players, 1);
    }
}

#[test]
fn one_server_accepts_players_over_ipv4_and_ipv6() {
    let mut options = server_options();
    options.listen = vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()];
    let mut server = PolledServer::bind(options).unwrap();
    let addrs = server.local_addrs();
    let mut clients: Vec<_> =
        addrs.iter().map(|addr| PolledClient::connect(*addr, client_options(Encryption::Encrypted)).unwrap()).collect();
    until("both clients are connected", || {
        server.poll();
        clients.iter_mut().for_each(PolledClient::poll);
        server.players().len() == 2
    });
    let peers: Vec<_> = server.players().into_iter().map(|player| server.connection(player).unwrap().peer()).collect();
    assert!(peers[0].is_ipv4() != peers[1].is_ipv4(), "{peers:?}");
    while server.next_event().is_some() {}
}

#[test]
fn a_player_with_many_messages_does_not_delay_the_others() {
    let mut server = PolledServer::bind(server_options()).unwrap();
    let addr = server.local_addrs()[0];
    let mut clients = [(); 2].map(|()| PolledClient::connect(addr, client_options(Encryption::Plain)).unwrap());
    until("both clients are connected", || {
        server.poll();
        clients.iter_mut().for_each(PolledClient::poll);
        server.players().len() == 2 && clients.iter().all(PolledClient::is_connected)
    });
    for _ in 0..50 {
        clients[0].send(ONLY_CHANNEL, b"much").unwrap();
    }
    clients[1].send(ONLY_CHANNEL, b"little").unwrap();
    until("all messages have arrived", || {
        clients.iter_mut().for_each(PolledClient::poll);
        server.poll();
        server.players().into_iter().map(|player| server.stats(player).unwrap().messages_received).sum::<u64>()
            == 51 + 2
    });
    let mut order = Vec::new();
    while let Some(event) = server.next_event() {
        if let ServerEvent::Message { bytes, .. } = event {
            order.push(bytes.to_vec());
        }
    }
    assert_eq!(order.len(), 51);
    assert!(order[..2].contains(&b"little".to_vec()), "the players take turns");
}

#[test]
fn a_client_receives_the_reason_of_a_disconnect() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Encrypted));
    pair.server.send(pair.player, ONLY_CHANNEL, b"last message").unwrap();
    assert!(pair.server.disconnect(pair.player, "the map is over"));
    assert_eq!(pair.client_recv(), b"last message");
    let mut events = Vec::new();
    until("the client is closed", || {
        pair.poll();
        events.extend(pair.client.next_event().map(client_event));
        pair.client.is_closed() && pair.client.next_event().is_none()
    });
    let reason = DisconnectReason::ClosedByPeer("the map is over".into());
    assert_eq!(events, [ClientEvent::Closing, ClientEvent::Disconnected(reason)]);
    assert!(!pair.server.disconnect(pair.player, "again"));
}

#[test]
fn the_server_is_notified_when_a_client_closes() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    pair.client.send(ONLY_CHANNEL, b"bye").unwrap();
    pair.client.close();
    assert_eq!(pair.server_recv(), b"bye");
    let mut disconnected = None;
    until("the server is notified", || {
        pair.poll();
        if let Some(ServerEvent::Disconnected(player, reason)) = pair.server.next_event() {
            disconnected = Some((player, reason));
        }
        disconnected.is_some()
    });
    assert_eq!(disconnected, Some((pair.player, DisconnectReason::ClosedByPeer(String::new()))));
    assert!(pair.client.is_closed());
}

#[test]
fn a_refused_client_learns_the_reason() {
    let mut server = PolledServer::bind(server_options()).unwrap();
    let mut options = client_options(Encryption::Plain);
    options.client.game = "chess".into();
    let mut client = PolledClient::connect(server.local_addrs()[0], options).unwrap();
    let mut event = None;
    until("the login is refused", || {
        server.poll();
        client.poll();
        event = client.next_event().map(client_event);
        event.is_some()
    });
    assert!(matches!(event, Some(ClientEvent::LoginFailed(LoginError::Refused(_)))), "{event:?}");
}

#[test]
fn waiting_ends_when_a_datagram_arrives() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    pair.client.send(ONLY_CHANNEL, b"wake up").unwrap();
    pair.client.flush();
    until("the message has arrived", || {
        // If the wait did not end early, the test would time out.
        pair.server.wait(Duration::from_secs(60));
        pair.server.poll();
        matches!(pair.server.next_event(), Some(ServerEvent::Message { player, .. }) if player == pair.player)
    });
}
