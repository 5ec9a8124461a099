//! Channels in async programs: the same API as in game loops, with calls that wait.

use crate::common;

use common::{client_options, server_options};
use rallypoint_session::{
    AsyncChannelClient, AsyncChannelServer, Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable,
    ClientEvent, ConnectError, Connection, DisconnectReason, Encryption, LoginError, PlayerId, SendError,
    ServerChannels, ServerEvent,
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

async fn connect() -> (AsyncChannelServer, AsyncChannelClient, PlayerId) {
    let server = AsyncChannelServer::bind(server_options(), table()).await.unwrap();
    let options = client_options(Encryption::Encrypted);
    let client = AsyncChannelClient::connect(server.local_addrs()[0], options, table()).await.unwrap();
    let player = server.accept().await.player;
    (server, client, player)
}

#[tokio::test]
async fn messages_and_receipts_travel_both_ways() {
    let (server, client, player) = connect().await;
    let mut message = ChannelMessage::default();
    let sent = client.send(CHAT, b"hello").await.unwrap();
    assert!(server.recv(player, &mut message).await);
    assert_eq!((message.channel, &*message.bytes), (CHAT, &b"hello"[..]));
    assert_eq!(client.next_event(&mut message).await, Some(ClientEvent::Receipt(sent)));

    let map = vec![7; 1_000_000];
    server.send(player, MAP, &map).await.unwrap();
    client.recv(&mut message).await.unwrap();
    assert!(message.channel == MAP && message.bytes == map);
    assert_eq!(server.is_encrypted(player), Some(true));
    assert_eq!(server.players(), [player]);
    client.close().await.unwrap();
    assert!(!server.recv(player, &mut message).await);
}

#[tokio::test]
async fn send_waits_for_room_and_try_send_does_not() {
    let (server, client, player) = connect().await;
    let is_full = (0..100).map(|_| client.try_send(CHAT, &[0; 1_000])).find_map(Result::err);
    assert_eq!(is_full, Some(SendError::WouldBlock));
    let server = Arc::new(server);
    let reader = tokio::spawn(async move {
        let mut message = ChannelMessage::default();
        let mut count = 0;
        while server.recv(player, &mut message).await {
            count += usize::from(message.bytes == [1; 1_000]);
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
    let channels = ServerChannels { decides_logins: true, ..table().into() };
    let server = Arc::new(AsyncChannelServer::bind(server_options(), channels).await.unwrap());
    let addr = server.local_addrs()[0];
    let decisions = {
        let server = server.clone();
        tokio::spawn(async move {
            let mut message = ChannelMessage::default();
            for accepts in [false, true] {
                let request = loop {
                    if let ServerEvent::LoginRequest(request) = server.next_event(&mut message).await {
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
    let options = || client_options(Encryption::Encrypted);
    let refused = AsyncChannelClient::connect(addr, options(), table()).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Login(LoginError::Refused(why)) if why == "not today"));
    let client = AsyncChannelClient::connect(addr, options(), table()).await.unwrap();
    decisions.await.unwrap();
    server.broadcast_with(server.players(), CHAT, &b"last words"[..], |_, sent| assert!(sent.is_ok()));
    let shutdown = Arc::try_unwrap(server).unwrap().shutdown("good night");
    let mut message = ChannelMessage::default();
    let (received, ()) = tokio::join!(client.recv(&mut message), shutdown);
    received.unwrap();
    assert_eq!(message.bytes, b"last words");
    let end = client.recv(&mut message).await.unwrap_err();
    assert!(end.to_string().contains("good night"), "{end}");
}

#[tokio::test]
async fn the_state_of_connections_is_read_as_in_a_game_loop() {
    let (server, client, player) = connect().await;
    assert!(client.is_delivered());
    client.send(CHAT, b"hello").await.unwrap();
    assert!(!client.is_delivered());
    let mut message = ChannelMessage::default();
    assert!(server.recv(player, &mut message).await);
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
