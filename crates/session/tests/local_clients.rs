//! Clients in the process of their server, without sockets.

use crate::common;

use common::{server_options, until};
use rallypoint_session::{
    ClientEvent, ClientOptions, Encryption, ONLY_CHANNEL, PolledClient, Server, ServerEvent, ServerOptions,
};

fn options(name: &str) -> ClientOptions {
    ClientOptions::new(name, "test").encryption(Encryption::Plain)
}

#[test]
fn a_single_player_needs_no_socket() {
    let mut server = ServerOptions::new("test").local_only().stream(100_000).bind_polled().unwrap();
    assert!(server.local_addrs().is_empty());
    let mut client = server.connect_local(options("alice").stream(100_000)).unwrap();
    let map = vec![7; 100_000];
    let mut has_map = false;
    until("the player has the map", || {
        server.poll();
        while let Some(event) = server.next_event() {
            if let ServerEvent::Connected(new) = event {
                assert_eq!(new.username, "alice");
                server.send(new.player, ONLY_CHANNEL, &map).unwrap();
            }
        }
        server.flush();
        client.poll();
        while let Some(event) = client.next_event() {
            has_map |= matches!(event, ClientEvent::Message { bytes, .. } if bytes == map);
        }
        has_map
    });
}

#[test]
fn players_in_the_process_and_in_the_network_play_together() {
    let mut server = server_options().bind_polled().unwrap();
    let mut clients = [
        server.connect_local(options("alice")).unwrap(),
        server.connect_local(options("bob")).unwrap(),
        PolledClient::connect(server.local_addrs()[0], options("carol")).unwrap(),
    ];
    let mut received = 0;
    until("every line is received by the two others", || {
        server.poll();
        while let Some(event) = server.next_event() {
            if let ServerEvent::Message { player, channel, bytes } = event {
                let line = bytes.to_vec();
                assert_eq!(server.broadcast_except(player, channel, line), 2);
            }
        }
        server.flush();
        let is_complete = server.players().len() == 3;
        for client in &mut clients {
            if is_complete && client.stats().is_some_and(|stats| stats.messages_sent == 0) {
                client.send(ONLY_CHANNEL, b"hello").unwrap();
            }
            client.poll();
            while let Some(event) = client.next_event() {
                received += usize::from(matches!(event, ClientEvent::Message { bytes: b"hello", .. }));
            }
        }
        received == 6
    });
    // A client that is dropped has left.
    let [alice, ..] = clients;
    drop(alice);
    until("the server notices", || {
        server.poll();
        matches!(server.next_event(), Some(ServerEvent::Closing(_)))
    });
}

#[tokio::test]
async fn an_async_client_in_the_process_has_the_same_api() {
    let server = ServerOptions::new("test").local_only().bind().await.unwrap();
    let client = Server::connect_local(&server, options("alice")).await.unwrap();
    let player = server.accept().await.unwrap().player;
    let mut buffer = Vec::new();
    client.send(ONLY_CHANNEL, b"hello").await.unwrap();
    assert_eq!(server.recv(player, &mut buffer).await.unwrap(), Some((ONLY_CHANNEL, &b"hello"[..])));
    server.send(player, ONLY_CHANNEL, b"welcome").await.unwrap();
    assert_eq!(client.recv(&mut buffer).await.unwrap(), (ONLY_CHANNEL, &b"welcome"[..]));
    client.close().await.unwrap();
    assert_eq!(server.recv(player, &mut buffer).await.unwrap(), None);
}
