//! The async API.

use crate::common;

use common::{all_encryptions, client_options, key, server_options};
use rallypoint_session::{
    BindError, Client, ClientOptions, ConnectError, DisconnectReason, Encryption, LinkConditions, LoginError,
    NewPlayer, ONLY_CHANNEL, PublicKey, SendError, Server, ServerEvent, ServerOptions, SessionConfigError, SetupError,
};
use std::{sync::Arc, time::Duration};

async fn pair(server: ServerOptions, client: ClientOptions) -> (Server, Client) {
    let server = Server::bind(server).await.unwrap();
    let client = Client::connect(server.local_addrs()[0], client).await.unwrap();
    (server, client)
}

#[tokio::test]
async fn events_report_players_and_messages() {
    for encryption in all_encryptions() {
        let (server, client) = pair(server_options(), client_options(encryption)).await;
        client.send(ONLY_CHANNEL, b"hello").await.unwrap();
        let mut buffer = Vec::new();
        let ServerEvent::Connected(NewPlayer { player, username, .. }) = server.next_event(&mut buffer).await.unwrap()
        else {
            panic!("no player connected")
        };
        assert_eq!((&*username, server.players()), ("alice", vec![player]));
        let message = ServerEvent::Message { player, channel: ONLY_CHANNEL, bytes: b"hello" };
        assert_eq!(server.next_event(&mut buffer).await, Ok(message));
        server.send(player, ONLY_CHANNEL, b"welcome").await.unwrap();
        assert_eq!(client.recv(&mut buffer).await.unwrap(), (ONLY_CHANNEL, &b"welcome"[..]));
        assert!(server.stats(player).is_some() && client.stats().is_some());
        client.close().await.unwrap();
        loop {
            if let ServerEvent::Disconnected(disconnected, reason) = server.next_event(&mut buffer).await.unwrap() {
                assert_eq!((disconnected, reason), (player, DisconnectReason::ClosedByPeer(String::new())));
                break;
            }
        }
        assert_eq!(server.try_send(player, ONLY_CHANNEL, b"late"), Err(SendError::UnknownPlayer));
        assert!(!server.disconnect(player, "late"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_player_can_have_a_task_of_its_own() {
    let server = Arc::new(Server::bind(server_options()).await.unwrap());
    let addr = server.local_addrs()[0];
    let accepting = server.clone();
    tokio::spawn(async move {
        loop {
            let server = accepting.clone();
            let joined = accepting.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = Vec::new();
                while let Some((channel, bytes)) = server.recv(joined.player, &mut buffer).await.unwrap() {
                    server.send(joined.player, channel, bytes).await.unwrap();
                }
            });
        }
    });
    let exchange = |number: u8| async move {
        let client = Client::connect(addr, client_options(Encryption::Encrypted)).await.unwrap();
        let mut buffer = Vec::new();
        for count in 0..100 {
            client.send(ONLY_CHANNEL, &[number, count]).await.unwrap();
            assert_eq!(client.recv(&mut buffer).await.unwrap().1, [number, count]);
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
    let player = server.accept().await.unwrap().player;
    let mut sent = 0u32;
    while server.try_send(player, ONLY_CHANNEL, &sent.to_be_bytes()).is_ok() {
        sent += 1;
    }
    assert_eq!(server.try_send(player, ONLY_CHANNEL, b"full"), Err(SendError::WouldBlock));
    let total = 20_000u32;
    let sending = async {
        for number in sent..total {
            server.send(player, ONLY_CHANNEL, &number.to_be_bytes()).await.unwrap();
        }
    };
    let reading = async {
        let mut message = Vec::new();
        for number in 0..total {
            assert_eq!(client.recv(&mut message).await.unwrap().1, number.to_be_bytes());
        }
    };
    tokio::join!(sending, reading);
}

#[tokio::test]
async fn w52_waiting_for_room_ends_after_the_send_timeout() {
    let timeout = Duration::from_millis(100);
    let mut server = server_options();
    server.send_timeout = timeout;
    let mut client = client_options(Encryption::Plain);
    client.send_timeout = timeout;
    let (server, client) = pair(server, client).await;
    let player = server.accept().await.unwrap().player;
    // Nothing arrives any more, so nothing is acknowledged.
    client.set_link_conditions(Some(LinkConditions { loss: 1.0, ..LinkConditions::default() }));
    while server.try_send(player, ONLY_CHANNEL, b"full").is_ok() {}
    while client.try_send(ONLY_CHANNEL, b"full").is_ok() {}
    assert_eq!(server.send(player, ONLY_CHANNEL, b"more").await, Err(SendError::TimedOut));
    assert_eq!(client.send(ONLY_CHANNEL, b"more").await, Err(SendError::TimedOut));
    let mut options = server_options();
    options.send_timeout = Duration::ZERO;
    let error = Server::bind(options).await.unwrap_err();
    assert_eq!(error.to_string(), "send_timeout is 0ns: use 1ms to 3600s");
}

#[tokio::test]
async fn waiting_for_room_ends_when_the_player_is_disconnected() {
    let (server, client) = pair(server_options(), client_options(Encryption::Plain)).await;
    let player = server.accept().await.unwrap().player;
    while server.try_send(player, ONLY_CHANNEL, b"full").is_ok() {}
    client.set_link_conditions(Some(LinkConditions { loss: 1.0, ..LinkConditions::default() }));
    server.disconnect(player, "too slow");
    assert_eq!(server.send(player, ONLY_CHANNEL, b"more").await, Err(SendError::Closed));
    let mut message = Vec::new();
    assert_eq!(server.recv(player, &mut message).await, Ok(None));
}

#[tokio::test]
async fn a_shutdown_disconnects_all_players_with_its_reason() {
    let (server, client) = pair(server_options(), client_options(Encryption::Encrypted)).await;
    let player = server.accept().await.unwrap().player;
    server.send(player, ONLY_CHANNEL, b"last message").await.unwrap();
    let mut buffer = Vec::new();
    let (message, ()) = tokio::join!(client.recv(&mut buffer), server.shutdown("maintenance"));
    assert_eq!(message.unwrap().1, b"last message");
    assert_eq!(client.recv(&mut buffer).await, Err(DisconnectReason::ClosedByPeer("maintenance".into())));
    assert_eq!(client.recv(&mut buffer).await, Err(DisconnectReason::Closed), "it stays closed");
    assert_eq!(client.send(ONLY_CHANNEL, b"late").await, Err(SendError::Closed));
}

#[tokio::test]
async fn a_failed_connect_reports_the_reason() {
    let server = Server::bind(server_options()).await.unwrap();
    let addr = server.local_addrs()[0];
    let mut options = client_options(Encryption::Plain);
    options.client.game = "chess".into();
    let error = Client::connect(addr, options).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Login(LoginError::Refused(_))), "{error}");

    let mut options = client_options(Encryption::Pinned(PublicKey::new([1; 32])));
    options.client.login_timeout = Duration::from_millis(500);
    let error = Client::connect(addr, options).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Login(_)), "a wrong key: {error}");

    let mut options = client_options(Encryption::Plain);
    options.client.username = "x".repeat(128);
    let error = Client::connect(addr, options).await.unwrap_err();
    assert!(error.to_string().starts_with("username must have 1 to 127 bytes"), "{error}");

    let error = Client::connect("no such name.invalid:1", client_options(Encryption::Plain)).await;
    assert!(matches!(error, Err(ConnectError::Resolve(_))));
    let error = "12".parse::<PublicKey>().unwrap_err();
    assert_eq!(error.to_string(), "a key has 64 hex digits");
    assert!(key().public().to_string().parse::<PublicKey>().is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_start_reports_the_reason() {
    let first = Server::bind(server_options()).await.unwrap();
    let mut taken = server_options();
    taken.listen = first.local_addrs();
    let error = Server::bind(taken).await.unwrap_err();
    assert!(
        matches!(error, SetupError::Bind(BindError::InUse { .. }))
            && error.to_string().contains("is used by another program"),
        "{error}"
    );
    let two_of_one_family = server_options().listen("127.0.0.1:0".parse().unwrap());
    assert!(matches!(Server::bind(two_of_one_family).await, Err(SetupError::ListenAddrs)));
    let not_local = ServerOptions::new("test").listen("192.0.2.77:0".parse().unwrap());
    assert!(matches!(Server::bind(not_local).await, Err(SetupError::Bind(BindError::AddressNotAvailable { .. }))));
    let mut too_many = server_options();
    too_many.endpoint.max_players = 256;
    let error = Server::bind(too_many).await.unwrap_err();
    assert_eq!(error.to_string(), "max_players is 256: use 1 to 255");
    assert!(matches!(
        Server::bind(server_options().stream(0)).await,
        Err(SetupError::Config(SessionConfigError::StreamLength { length: 0 }))
    ));
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
    let mut options = server_options();
    options.listen = addr;
    let server = loop {
        match Server::bind(options.clone()).await {
            Ok(server) => break server,
            // The task of the first server is about to stop.
            Err(error) => assert!(matches!(error, SetupError::Bind(BindError::InUse { .. })), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    client.send(ONLY_CHANNEL, b"are you there?").await.unwrap();
    let player = server.accept().await.unwrap().player;
    server.send(player, ONLY_CHANNEL, b"hello again").await.unwrap();
    assert_eq!(client.recv(&mut Vec::new()).await.unwrap().1, b"hello again");
}
