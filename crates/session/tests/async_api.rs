//! The async API.

use crate::common;

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
async fn events_report_players_and_messages() {
    for encryption in all_encryptions() {
        let (server, client) = pair(server_options(), client_options(encryption)).await;
        client.send(b"hello").await.unwrap();
        let mut message = Vec::new();
        let ServerEvent::Connected(NewPlayer { player, username, .. }) = server.next_event(&mut message).await else {
            panic!("no player connected")
        };
        assert_eq!((&*username, server.players()), ("alice", vec![player]));
        assert_eq!(server.next_event(&mut message).await, ServerEvent::Message(player));
        assert_eq!(message, b"hello");
        server.send(player, b"welcome").await.unwrap();
        assert_eq!(client.recv().await.unwrap(), b"welcome");
        assert!(server.stats(player).is_some() && client.stats().is_some());
        client.close().await.unwrap();
        loop {
            if let ServerEvent::Disconnected(disconnected, reason) = server.next_event(&mut message).await {
                assert_eq!((disconnected, reason), (player, DisconnectReason::ClosedByPeer(String::new())));
                break;
            }
        }
        assert_eq!(server.try_send(player, b"late"), Err(SendError::UnknownPlayer));
        assert!(!server.disconnect(player, "late"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_player_can_have_a_task_of_its_own() {
    let server = Arc::new(SessionServer::bind(server_options()).await.unwrap());
    let addr = server.local_addrs()[0];
    let accepting = server.clone();
    tokio::spawn(async move {
        loop {
            let server = accepting.clone();
            let joined = accepting.accept().await;
            tokio::spawn(async move {
                let mut message = Vec::new();
                while server.recv(joined.player, &mut message).await {
                    server.send(joined.player, &message).await.unwrap();
                }
            });
        }
    });
    let exchange = |number: u8| async move {
        let client = SessionClient::connect(addr, client_options(Encryption::Encrypted)).await.unwrap();
        for count in 0..100 {
            client.send(&[number, count]).await.unwrap();
            assert_eq!(client.recv().await.unwrap(), [number, count]);
        }
        client.close().await.unwrap();
    };
    let clients: Vec<_> = (0..8).map(|number| tokio::spawn(exchange(number))).collect();
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
    let total = 20_000u32;
    let sending = async {
        for number in sent..total {
            server.send(player, &number.to_be_bytes()).await.unwrap();
        }
    };
    let reading = async {
        let mut message = Vec::new();
        for number in 0..total {
            client.recv_into(&mut message).await.unwrap();
            assert_eq!(message, number.to_be_bytes());
        }
    };
    tokio::join!(sending, reading);
}

#[tokio::test]
async fn w52_waiting_for_room_ends_after_the_send_timeout() {
    let timeout = Duration::from_millis(100);
    let server = ServerOptions { send_timeout: timeout, ..server_options() };
    let client = ClientOptions { send_timeout: timeout, ..client_options(Encryption::Plain) };
    let (server, client) = pair(server, client).await;
    let player = server.accept().await.player;
    // Nothing arrives any more, so nothing is acknowledged.
    client.set_link_conditions(Some(LinkConditions { loss: 1.0, ..LinkConditions::default() }));
    while server.try_send(player, b"full").is_ok() {}
    while client.try_send(b"full").is_ok() {}
    assert_eq!(server.send(player, b"more").await, Err(SendError::TimedOut));
    assert_eq!(client.send(b"more").await, Err(SendError::TimedOut));
    let options = ServerOptions { send_timeout: Duration::ZERO, ..server_options() };
    let error = SessionServer::bind(options).await.unwrap_err();
    assert_eq!(error.to_string(), "send_timeout is 0ns: use 1ms to 3600s");
}

#[tokio::test]
async fn waiting_for_room_ends_when_the_player_is_disconnected() {
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
async fn a_shutdown_disconnects_all_players_with_its_reason() {
    let (server, client) = pair(server_options(), client_options(Encryption::Encrypted)).await;
    let player = server.accept().await.player;
    server.send(player, b"last message").await.unwrap();
    let (message, ()) = tokio::join!(client.recv(), server.shutdown("maintenance"));
    assert_eq!(message.unwrap(), b"last message");
    assert_eq!(client.recv().await, Err(DisconnectReason::ClosedByPeer("maintenance".into())));
    assert_eq!(client.recv().await, Err(DisconnectReason::Closed), "it stays closed");
    assert_eq!(client.send(b"late").await, Err(SendError::Closed));
}

#[tokio::test]
async fn a_failed_connect_reports_the_reason() {
    let server = SessionServer::bind(server_options()).await.unwrap();
    let addr = server.local_addrs()[0];
    let mut options = client_options(Encryption::Plain);
    options.client.game = "chess".into();
    let error = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Login(LoginError::Refused(_))), "{error}");

    let mut options = client_options(Encryption::Pinned(PublicKey::new([1; 32])));
    options.client.login_timeout = Duration::from_millis(500);
    let error = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Login(_)), "a wrong key: {error}");

    let mut options = client_options(Encryption::Plain);
    options.client.username = "x".repeat(128);
    let error = SessionClient::connect(addr, options).await.unwrap_err();
    assert!(error.to_string().starts_with("username must have 1 to 127 bytes"), "{error}");

    let error = SessionClient::connect("no such name.invalid:1", client_options(Encryption::Plain)).await;
    assert!(matches!(error, Err(ConnectError::Resolve(_))));
    let error = "12".parse::<PublicKey>().unwrap_err();
    assert_eq!(error.to_string(), "a key has 64 hex digits");
    assert!(key().public().to_string().parse::<PublicKey>().is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_start_reports_the_reason() {
    let first = SessionServer::bind(server_options()).await.unwrap();
    let taken = ServerOptions { listen: first.local_addrs(), ..server_options() };
    let error = SessionServer::bind(taken).await.unwrap_err();
    assert!(
        matches!(error, SetupError::Bind(BindError::InUse { .. }))
            && error.to_string().contains("is used by another program"),
        "{error}"
    );
    let two_of_one_family = ServerOptions { listen: vec!["127.0.0.1:0".parse().unwrap(); 2], ..server_options() };
    assert!(matches!(SessionServer::bind(two_of_one_family).await, Err(SetupError::ListenAddrs)));
    let not_local = ServerOptions { listen: vec!["192.0.2.77:0".parse().unwrap()], ..server_options() };
    assert!(matches!(
        SessionServer::bind(not_local).await,
        Err(SetupError::Bind(BindError::AddressNotAvailable { .. }))
    ));
    let mut too_many = server_options();
    too_many.endpoint.max_players = 256;
    let error = SessionServer::bind(too_many).await.unwrap_err();
    assert_eq!(error.to_string(), "max_players is 256: use 1 to 255");
    let stream = ServerOptions { stream: Some(0), ..server_options() };
    assert!(matches!(SessionServer::bind(stream).await, Err(SetupError::StreamLength { length: 0 })));
}

#[tokio::test]
async fn s32_a_client_reconnects_after_a_restart_of_the_server() {
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
            // The task of the first server is about to stop.
            Err(error) => assert!(matches!(error, SetupError::Bind(BindError::InUse { .. })), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    client.send(b"are you there?").await.unwrap();
    let player = server.accept().await.player;
    server.send(player, b"hello again").await.unwrap();
    assert_eq!(client.recv().await.unwrap(), b"hello again");
}
