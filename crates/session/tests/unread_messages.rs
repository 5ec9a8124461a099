//! Messages that were acknowledged are read also after the end of a session, which is reported after them (W51).

use crate::common;

use common::*;
use rallypoint_session::{
    Client, ClientEvent, ClientOptions, DisconnectReason, Encryption, ONLY_CHANNEL, PlayerId, PolledServer, Server,
    ServerEvent, ServerOptions,
};
use std::time::Duration;

fn options(stream: Option<usize>) -> (ServerOptions, ClientOptions) {
    let (server, client) = (server_options(), client_options(Encryption::Encrypted));
    match stream {
        Some(max_message) => (server.stream(max_message), client.stream(max_message)),
        None => (server, client),
    }
}

/// Reads everything that a server has, until the end of a session.
fn read_to_end(server: &mut PolledServer) -> (Vec<Vec<u8>>, Option<(PlayerId, DisconnectReason)>) {
    let mut received = Vec::new();
    while let Some(event) = server.next_event() {
        match event {
            ServerEvent::Message { bytes, .. } => received.push(bytes.to_vec()),
            ServerEvent::Disconnected(player, reason) => return (received, Some((player, reason))),
            _ => {}
        }
    }
    (received, None)
}

fn expected() -> Vec<Vec<u8>> {
    (0..100u8).map(|number| vec![number; 30]).collect()
}

#[test]
fn w51_a_busy_polled_server_gets_every_message_of_a_client_that_closed() {
    for stream in [None, Some(1_000)] {
        let (server, client) = options(stream);
        let mut pair = Pair::new(server, client);
        for message in expected() {
            pair.client.send(ONLY_CHANNEL, &message).unwrap();
        }
        pair.client.close();
        // The server answers, and its game does not read.
        until("the session has ended", || {
            pair.poll();
            pair.client.is_closed() && pair.server.players().is_empty()
        });
        assert!(pair.client.is_delivered());
        let end = DisconnectReason::ClosedByPeer(String::new());
        assert_eq!(read_to_end(&mut pair.server), (expected(), Some((pair.player, end))));
        assert_eq!(pair.server.next_event(), None);
    }
}

#[test]
fn w51_a_busy_polled_client_gets_every_message_of_a_server_that_disconnected_it() {
    for stream in [None, Some(1_000)] {
        let (server, client) = options(stream);
        let mut pair = Pair::new(server, client);
        for message in expected() {
            pair.server.send(pair.player, ONLY_CHANNEL, &message).unwrap();
        }
        assert!(pair.server.disconnect(pair.player, "maintenance"));
        until("the session has ended", || {
            pair.poll();
            pair.client.is_closed()
        });
        let mut received = Vec::new();
        loop {
            match pair.client.next_event() {
                Some(ClientEvent::Message { bytes, .. }) => received.push(bytes.to_vec()),
                Some(ClientEvent::Disconnected(reason)) => {
                    break assert_eq!(reason, DisconnectReason::ClosedByPeer("maintenance".into()));
                }
                event => assert!(event.is_some(), "no end after {} messages", received.len()),
            }
        }
        assert_eq!(received, expected());
    }
}

#[test]
fn w51_a_player_in_a_reused_slot_has_a_stream_of_its_own() {
    let (mut server, client) = options(Some(1_000));
    server.endpoint.max_players = 1;
    let mut pair = Pair::new(server, client.clone());
    pair.client.send(ONLY_CHANNEL, b"from the first").unwrap();
    pair.client.close();
    until("the session has ended", || {
        pair.poll();
        pair.client.is_closed() && pair.server.players().is_empty()
    });
    let addr = pair.server.local_addrs()[0];
    pair.client = rallypoint_session::PolledClient::connect(addr, client).unwrap();
    until("the second client is connected", || {
        pair.poll();
        pair.client.next_event() == Some(ClientEvent::Connected)
    });
    pair.client.send(ONLY_CHANNEL, b"from the second").unwrap();
    until("its message is acknowledged", || {
        pair.poll();
        pair.client.flush();
        pair.client.is_delivered()
    });
    let mut log = Vec::new();
    while let Some(event) = pair.server.next_event() {
        match event {
            ServerEvent::Message { player, bytes, .. } => {
                log.push((player == pair.player, String::from_utf8(bytes.to_vec()).unwrap()));
            }
            ServerEvent::Disconnected(player, _) => log.push((player == pair.player, "end".into())),
            _ => {}
        }
    }
    log.sort_by_key(|(is_first, _)| !is_first);
    let log: Vec<_> = log.iter().map(|(is_first, text)| (*is_first, &**text)).collect();
    assert_eq!(log, [(true, "from the first"), (true, "end"), (false, "from the second")]);
}

#[tokio::test]
async fn w51_a_busy_async_server_gets_every_message_of_a_client_that_closed() {
    for (stream, by_player) in [(None, false), (None, true), (Some(1_000), false), (Some(1_000), true)] {
        let (server, client) = options(stream);
        let server = Server::bind(server).await.unwrap();
        let client = Client::connect(server.local_addrs()[0], client).await.unwrap();
        let player = server.accept().await.unwrap().player;
        for message in expected() {
            client.send(ONLY_CHANNEL, &message).await.unwrap();
        }
        client.close().await.expect("everything is acknowledged");
        let has_ended = async {
            while !server.players().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), has_ended).await.expect("the session ends");
        let mut message = Vec::new();
        let mut received = Vec::new();
        if by_player {
            while let Some((_, bytes)) = server.recv(player, &mut message).await.unwrap() {
                received.push(bytes.to_vec());
            }
        } else {
            loop {
                match server.next_event(&mut message).await.unwrap() {
                    ServerEvent::Message { player: from, bytes, .. } if from == player => received.push(bytes.to_vec()),
                    ServerEvent::Disconnected(..) => break,
                    _ => {}
                }
            }
        }
        assert_eq!(received, expected());
    }
}

#[tokio::test]
async fn w51_a_busy_async_client_gets_every_message_of_a_server_that_shut_down() {
    let (server, client) = options(None);
    let server = Server::bind(server).await.unwrap();
    let client = Client::connect(server.local_addrs()[0], client).await.unwrap();
    let player = server.accept().await.unwrap().player;
    for message in expected() {
        server.send(player, ONLY_CHANNEL, &message).await.unwrap();
    }
    server.shutdown("maintenance").await;
    let has_ended = async {
        while !client.is_closed() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), has_ended).await.expect("the session ends");
    let mut buffer = Vec::new();
    for message in expected() {
        assert_eq!(client.recv(&mut buffer).await, Ok((ONLY_CHANNEL, &*message)));
    }
    assert_eq!(client.recv(&mut buffer).await, Err(DisconnectReason::ClosedByPeer("maintenance".into())));
}
