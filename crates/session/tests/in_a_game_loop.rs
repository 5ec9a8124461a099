//! The session protocol without async: everything happens in `poll`.

mod common;

use common::{Pair, all_encryptions, client_options, server_options, until};
use rallypoint_session::{
    ClientEvent, DisconnectReason, Encryption, LoginError, PolledClient, PolledServer, ServerEvent,
};
use std::time::Duration;

#[test]
fn messages_go_both_ways_in_order() {
    for encryption in all_encryptions() {
        let is_encrypted = encryption != Encryption::Plain;
        let mut pair = Pair::new(server_options(), client_options(encryption));
        for number in 0..200u8 {
            pair.client.send(&[number; 100]).unwrap();
            pair.server.send(pair.player, &[number; 50]).unwrap();
        }
        for number in 0..200u8 {
            assert_eq!(pair.server_hears(), [number; 100]);
            assert_eq!(pair.client_hears(), [number; 50]);
        }
        let connection = pair.server.connection(pair.player).unwrap();
        assert_eq!(
            (connection.is_encrypted(), connection.peer().port()),
            (is_encrypted, pair.client.local_addr().port())
        );
        assert_eq!(pair.client.stats().unwrap().messages_received, 200);
        let stats = pair.server.stats(pair.player).unwrap();
        assert_eq!(stats.messages_received, 201, "with the empty one that proves the login (S15)");
        assert_eq!(pair.server.endpoint_stats().players, 1);
    }
}

#[test]
fn over_ipv6_too() {
    let mut options = server_options();
    options.listen = vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()];
    let mut server = PolledServer::bind(options).unwrap();
    let addrs: Vec<_> = server.local_addrs().collect();
    let mut clients: Vec<_> =
        addrs.iter().map(|addr| PolledClient::connect(*addr, client_options(Encryption::Encrypted)).unwrap()).collect();
    let mut message = Vec::new();
    until("both are there", || {
        server.poll();
        clients.iter_mut().for_each(PolledClient::poll);
        server.players().count() == 2
    });
    let peers: Vec<_> = server.players().map(|player| server.connection(player).unwrap().peer()).collect();
    assert!(peers[0].is_ipv4() != peers[1].is_ipv4(), "{peers:?}");
    while server.next_event(&mut message).is_some() {}
}

#[test]
fn one_who_talks_much_does_not_keep_the_others_waiting() {
    let mut server = PolledServer::bind(server_options()).unwrap();
    let addr = server.local_addrs().next().unwrap();
    let mut clients = [(); 2].map(|()| PolledClient::connect(addr, client_options(Encryption::Plain)).unwrap());
    let mut message = Vec::new();
    until("both are there", || {
        server.poll();
        clients.iter_mut().for_each(PolledClient::poll);
        server.players().count() == 2 && clients.iter().all(PolledClient::is_connected)
    });
    (0..50).for_each(|_| clients[0].send(b"much").unwrap());
    clients[1].send(b"little").unwrap();
    until("all have arrived", || {
        clients.iter_mut().for_each(PolledClient::poll);
        server.poll();
        server.players().map(|player| server.stats(player).unwrap().messages_received).sum::<u64>() == 51 + 2
    });
    let mut order = Vec::new();
    while let Some(event) = server.next_event(&mut message) {
        if let ServerEvent::Message(_) = event {
            order.push(message.clone());
        }
    }
    assert_eq!(order.len(), 51);
    assert!(order[..2].contains(&b"little".to_vec()), "they take turns");
}

#[test]
fn a_goodbye_is_heard_with_its_reason() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Encrypted));
    pair.server.send(pair.player, b"last words").unwrap();
    assert!(pair.server.disconnect(pair.player, "the map is over"));
    assert_eq!(pair.client_hears(), b"last words");
    let mut events = Vec::new();
    until("the client is told", || {
        pair.turn();
        events.extend(pair.client.next_event(&mut pair.message));
        pair.client.is_closed() && pair.client.next_event(&mut pair.message).is_none()
    });
    let reason = DisconnectReason::ClosedByPeer("the map is over".into());
    assert_eq!(events, [ClientEvent::Closing, ClientEvent::Disconnected(reason)]);
    assert!(!pair.server.disconnect(pair.player, "again"));
}

#[test]
fn a_client_closes_and_the_server_is_told() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    pair.client.send(b"bye").unwrap();
    pair.client.close();
    assert_eq!(pair.server_hears(), b"bye");
    let mut left = None;
    until("the server is told", || {
        pair.turn();
        if let Some(ServerEvent::Disconnected(player, reason)) = pair.server.next_event(&mut pair.message) {
            left = Some((player, reason));
        }
        left.is_some()
    });
    assert_eq!(left, Some((pair.player, DisconnectReason::ClosedByPeer(String::new()))));
    assert!(pair.client.is_closed());
}

#[test]
fn whoever_is_refused_learns_why() {
    let mut server = PolledServer::bind(server_options()).unwrap();
    let mut options = client_options(Encryption::Plain);
    options.client.game = "chess".into();
    let mut client = PolledClient::connect(server.local_addrs().next().unwrap(), options).unwrap();
    let (mut message, mut told) = (Vec::new(), None);
    until("it is refused", || {
        server.poll();
        client.poll();
        told = client.next_event(&mut message);
        told.is_some()
    });
    assert!(matches!(told, Some(ClientEvent::LoginFailed(LoginError::Refused(_)))), "{told:?}");
}

#[test]
fn waiting_ends_when_something_arrives() {
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    pair.client.send(b"wake up").unwrap();
    pair.client.flush();
    until("it has arrived", || {
        // If it did not end early, the test would take longer than its patience.
        pair.server.wait(Duration::from_secs(60));
        pair.server.poll();
        pair.server.next_event(&mut pair.message) == Some(ServerEvent::Message(pair.player))
    });
}
