//! Channels in async programs: the same API as in game loops, with calls that wait.

use crate::common;

use common::{client_options, server_options};
use rallypoint_session::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, Client, ClientEvent, ClientOptions, ConnectError, Connection,
    DisconnectReason, Encryption, LoginError, PlayerId, SendError, Server, ServerEvent,
};
use std::sync::Arc;

const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
const MAP: ChannelIndex = ChannelIndex::new(1).unwrap();

fn table() -> ChannelTable {
    let channels = [
        Channel { receipts: true, queue: 10_000, ..Channel::new(ChannelMode::ReliableOrdered, 1_000) },
        Channel::new(ChannelMode::ReliableUnordered, 1_000_000),
    ];
    ChannelTable::new(channels).unwrap()
}

fn options() -> ClientOptions {
    client_options(Encryption::Encrypted).channels(table())
}

async fn connect() -> (Server, Client, PlayerId) {
    let server = server_options().channels(table()).bind().await.unwrap();
    let client = options().connect(server.local_addrs()[0]).await.unwrap();
    let player = server.accept().await.unwrap().player;
    (server, client, player)
}

#[tokio::test]
async fn messages_and_receipts_travel_both_ways() {
    let (server, client, player) = connect().await;
    let mut message = Vec::new();
    let sent = client.send(CHAT, b"hello").await.unwrap();
    assert_eq!(server.recv(player, &mut message).await, Ok(Some((CHAT, &b"hello"[..]))));
    assert_eq!(client.next_event(&mut message).await, Some(ClientEvent::Receipt(sent)));

    let map = vec![7; 1_000_000];
    server.send(player, MAP, &map).await.unwrap();
    assert!(client.recv(&mut message).await == Ok((MAP, &map)));
    assert_eq!(server.is_encrypted(player), Some(true));
    assert_eq!(server.players(), [player]);
    client.close().await.unwrap();
    assert_eq!(server.recv(player, &mut message).await, Ok(None));
}

#[tokio::test]
async fn send_waits_for_room_and_try_send_does_not() {
    let (server, client, player) = connect().await;
    let is_full = (0..100).map(|_| client.try_send(CHAT, &[0; 1_000])).find_map(Result::err);
    assert_eq!(is_full, Some(SendError::WouldBlock));
    let server = Arc::new(server);
    let reader = tokio::spawn(async move {
        let mut message = Vec::new();
        let mut count = 0;
        while let Some((_, bytes)) = server.recv(player, &mut message).await.unwrap() {
            count += usize::from(bytes == [1; 1_000]);
        }
        count
    });
    for _ in 0..50 {
        client.send(CHAT, &[1; 1_000]).await.unwrap();
    }
    client.close().await.unwrap();
    assert_eq!(reader.await.unwrap(), 50);
}

#[tokio::test]
async fn a_server_decides_on_players_and_shuts_down_with_a_reason() {
    let server = Arc::new(server_options().channels(table()).decides_logins().bind().await.unwrap());
    let addr = server.local_addrs()[0];
    let decisions = {
        let server = server.clone();
        tokio::spawn(async move {
            let mut message = Vec::new();
            for accepts in [false, true] {
                let request = loop {
                    if let ServerEvent::LoginRequest(request) = server.next_event(&mut message).await.unwrap() {
                        break request;
                    }
                };
                if accepts {
                    assert!(server.accept_login(request.new.player));
                } else {
                    server.disconnect(request.new.player, "not today");
                }
            }
        })
    };
    let refused = Client::connect(addr, options()).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Login(LoginError::Refused(why)) if why == "not today"));
    let client = Client::connect(addr, options()).await.unwrap();
    decisions.await.unwrap();
    server.broadcast_with(server.players(), CHAT, &b"last words"[..], |_, sent| assert!(sent.is_ok()));
    let shutdown = Arc::try_unwrap(server).unwrap().shutdown("good night");
    let mut message = Vec::new();
    let (received, ()) = tokio::join!(client.recv(&mut message), shutdown);
    assert_eq!(received.unwrap().1, b"last words");
    let end = client.recv(&mut message).await.unwrap_err();
    assert!(end.to_string().contains("good night"), "{end}");
}

#[tokio::test]
async fn the_state_of_connections_is_read_as_in_a_game_loop() {
    let (server, client, player) = connect().await;
    assert!(client.is_delivered());
    client.send(CHAT, b"hello").await.unwrap();
    assert!(!client.is_delivered());
    let mut message = Vec::new();
    assert!(server.recv(player, &mut message).await.unwrap().is_some());
    while !client.is_delivered() {
        client.next_event(&mut message).await;
    }
    assert_eq!(client.with_connection(Connection::cipher), server.with_connection(player, Connection::cipher));
    assert_eq!(client.is_encrypted(), Some(true));
    assert_eq!(
        server.with_connection(player, Connection::peer).map(|addr| addr.port()),
        Some(client.local_addr().port())
    );
    server.disconnect_all("the round is over");
    assert_eq!(client.recv(&mut message).await, Err(DisconnectReason::ClosedByPeer("the round is over".into())));
    assert_eq!(client.with_connection(Connection::is_encrypted), None);
    server.shutdown("good night").await;
}
