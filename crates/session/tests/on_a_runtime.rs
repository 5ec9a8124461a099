//! The session protocol with async.

mod common;

use common::{all_encryptions, client_options, key, server_options};
use rallypoint_session::{
    BindError, ClientOptions, ConnectError, DisconnectReason, Encryption, LinkConditions, LoginError, NewPlayer,
    PublicKey, SendError, ServerEvent, ServerOptions, SessionClient, SessionServer, SetupError,
};
use std::{sync::Arc, time::Duration};

async fn pair(server: ServerOptions, client: ClientOptions) -> (SessionServer, SessionClient) {
    let server = SessionServer::bind(server).await.unwrap();
    let client = SessionClient::connect(server.local_addrs()[0], client).await.unwrap();
    (server, client)
}

#[tokio::test]
async fn events_tell_of_players_and_messages() {
    for encryption in all_encryptions() {
        let (server, client) = pair(server_options(), client_options(encryption)).await;
        client.send(b"hello").await.unwrap();
        let mut message = Vec::new();
        let ServerEvent::Connected(NewPlayer { player, username, .. }) = server.next_event(&mut message).await else {
            panic!("nobody")
        };
        assert_eq!((&*username, server.players()), ("alice", vec![player]));
        assert_eq!(server.next_event(&mut message).await, ServerEvent::Message(player));
        assert_eq!(message, b"hello");
        server.send(player, b"welcome").await.unwrap();
        assert_eq!(client.recv().await.unwrap(), b"welcome");
        assert!(server.stats(player).is_some() && client.stats().is_some());
        client.close().await.unwrap();
        loop {
            if let ServerEvent::Disconnected(who, reason) = server.next_event(&mut message).await {
                assert_eq!((who, reason), (player, DisconnectReason::ClosedByPeer(String::new())));
                break;
            }
        }
        assert_eq!(server.try_send(player, b"late"), Err(SendError::UnknownPlayer));
        assert!(!server.disconnect(player, "late"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_for_each_player() {
    let server = Arc::new(SessionServer::bind(server_options()).await.unwrap());
    let addr = server.local_addrs()[0];
    let accepting = server.clone();
    tokio::spawn(async move {
        loop {
            let (server, joined) = (accepting.clone(), accepting.accept().await);
            tokio::spawn(async move {
                let mut message = Vec::new();
                while server.recv(joined.player, &mut message).await {
                    server.send(joined.player, &message).await.unwrap();
                }
            });
        }
    });
    let talk = |number: u8| async move {
        let client = SessionClient::connect(addr, client_options(Encryption::Encrypted)).await.unwrap();
        for count in 0..100 {
            client.send(&[number, count]).await.unwrap();
            assert_eq!(client.recv().await.unwrap(), [number, count]);
        }
        client.close().await.unwrap();
    };
    let clients: Vec<_> = (0..8).map(|number| tokio::spawn(talk(number))).collect();
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn s26_sending_waits_while_the_window_is_full() {
    let (server, client) = pair(server_options(), client_options(Encryption::Plain)).await;
    let player = server.accept().await.player;
    let mut sent = 0u32;
    while server.try_send(player, &sent.to_be_bytes()).is_ok() {
        sent += 1;
    }
    assert_eq!(server.try_send(player, b"full"), Err(SendError::WouldBlock));
    let all = 20_000u32;
    let sending = async {
        for number in sent..all {
            server.send(player, &number.to_be_bytes()).await.unwrap();
        }
    };
    let reading = async {
        let mut message = Vec::new();
        for number in 0..all {
            client.recv_into(&mut message).await.unwrap();
            assert_eq!(message, number.to_be_bytes());
        }
    };
    tokio::join!(sending, reading);
}

#[tokio::test]
async fn a_wait_for_room_ends_when_the_player_goes() {
    let (server, client) = pair(server_options(), client_options(Encryption::Plain)).await;
    let player = server.accept().await.player;
    while server.try_send(player, b"full").is_ok() {}
    client.set_link_conditions(Some(LinkConditions { loss: 1.0, ..LinkConditions::default() }));
    server.disconnect(player, "too slow");
    assert_eq!(server.send(player, b"more").await, Err(SendError::Closed));
    let mut message = Vec::new();
    assert!(!server.recv(player, &mut message).await);
}

#[tokio::test]
async fn the_server_says_goodbye_to_all() {
    let (server, client) = pair(server_options(), client_options(Encryption::Encrypted)).await;
    let player = server.accept().await.player;
    server.send(player, b"last words").await.unwrap();
    let (words, ()) = tokio::join!(client.recv(), server.shutdown("maintenance"));
    assert_eq!(words.unwrap(), b"last words");
    assert_eq!(client.recv().await, Err(DisconnectReason::ClosedByPeer("maintenance".into())));
    assert_eq!(client.recv().await, Err(DisconnectReason::Closed), "it stays over");
    assert_eq!(client.send(b"hello?").await, Err(SendError::Closed));
}

#[tokio::test]
async fn whoever_does_not_get_in_learns_why() {
    let server = SessionServer::bind(server_options()).await.unwrap();
    let addr = server.local_addrs()[0];
    let mut options = client_options(Encryption::Plain);
    options.client.game = "chess".into();
    let refused = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Login(LoginError::Refused(_))), "{refused}");

    let mut options = client_options(Encryption::Pinned(PublicKey::new([1; 32])));
    options.client.login_timeout = Duration::from_millis(500);
    let refused = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Login(_)), "a wrong key: {refused}");

    let mut options = client_options(Encryption::Plain);
    options.client.username = "x".repeat(128);
    let refused = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(refused.to_string().starts_with("username must have 1 to 127 bytes"), "{refused}");

    let refused = SessionClient::connect("no such name.invalid:1", client_options(Encryption::Plain)).await;
    assert!(matches!(refused, Err(ConnectError::Resolve(_))));
    let wrong = "12".parse::<PublicKey>().unwrap_err();
    assert_eq!(wrong.to_string(), "a key has 64 hex digits");
    assert!(key().public().to_string().parse::<PublicKey>().is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let first = SessionServer::bind(server_options()).await.unwrap();
    let taken = ServerOptions { listen: first.local_addrs(), ..server_options() };
    let error = SessionServer::bind(taken).await.unwrap_err();
    assert!(
        matches!(error, SetupError::Bind(BindError::InUse { .. }))
            && error.to_string().contains("is used by another program"),
        "{error}"
    );
    let two = ServerOptions { listen: vec!["127.0.0.1:0".parse().unwrap(); 2], ..server_options() };
    assert!(matches!(SessionServer::bind(two).await, Err(SetupError::ListenAddrs)));
    let foreign = ServerOptions { listen: vec!["192.0.2.77:0".parse().unwrap()], ..server_options() };
    assert!(matches!(SessionServer::bind(foreign).await, Err(SetupError::Bind(BindError::AddressNotAvailable { .. }))));
    let mut many = server_options();
    many.endpoint.max_players = 256;
    let error = SessionServer::bind(many).await.unwrap_err();
    assert_eq!(error.to_string(), "max_players is 256: use 1 to 255");
    let stream = ServerOptions { stream: Some(0), ..server_options() };
    assert!(matches!(SessionServer::bind(stream).await, Err(SetupError::StreamLength { length: 0 })));
}

#[tokio::test]
async fn s32_a_restart_of_the_server_is_noticed_and_the_client_comes_back() {
    let (server, client) = {
        let mut options = client_options(Encryption::Encrypted);
        options.client.reconnect = true;
        pair(server_options(), options).await
    };
    let addr = server.local_addrs();
    drop(server);
    let options = ServerOptions { listen: addr, ..server_options() };
    let server = loop {
        match SessionServer::bind(options.clone()).await {
            Ok(server) => break server,
            // The task of the first one is about to end.
            Err(error) => assert!(matches!(error, SetupError::Bind(BindError::InUse { .. })), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    client.send(b"anybody?").await.unwrap();
    let player = server.accept().await.player;
    server.send(player, b"hello again").await.unwrap();
    assert_eq!(client.recv().await.unwrap(), b"hello again");
}
