//! A store that has lost a part of its metadata is set up again, unless it belongs to nodes with another secret or version.

use rallypoint_cluster::{OpenedStore, Reply, Request, StoreClient, StoreConnection, Write};
use rallypoint_harness::RedisServer;
use rallypoint_lobby_proto::{PublicId, UnlistReason};

const EPOCH: [u8; 16] = [7; 16];
const META: &str = "{rp:test}:meta";

async fn connect(server: &RedisServer) -> (StoreClient, StoreConnection) {
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let connection = client.connect().await.unwrap();
    (client, connection)
}

async fn open(client: &StoreClient, connection: &mut StoreConnection, epoch: u8, secret: u8) -> OpenedStore {
    let request = Request::Open { epoch: [epoch; 16], secret_check: [secret; 16] };
    match client.execute(connection, &request).await {
        Ok(Reply::Opened(opened)) => opened,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_field_that_is_lost_or_not_valid_begins_a_new_epoch() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection) = connect(&server).await;
    for field in ["format", "secret", "epoch", "seq"] {
        for value in [None, Some(""), Some("garbage"), Some("007")] {
            // Another secret is not one that is lost.
            if field == "secret" && value.is_some() {
                continue;
            }
            let _ = server.command(&["FLUSHALL"]);
            open(&client, &mut connection, 7, 1).await;
            let _ = server.command(&["HSET", "{rp:test}:entry", "old", "old"]);
            let _ = match value {
                None => server.command(&["HDEL", META, field]),
                Some(value) => server.command(&["HSET", META, field, value]),
            };
            let remove =
                Write::Remove { id: PublicId::from_bytes([1; 16]), reason: UnlistReason::Replaced, deadline: 0 };
            let write = Request::Write { epoch: EPOCH, writes: vec![([0; 16], remove)] };
            let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 0 };
            if field == "epoch" || field == "seq" {
                assert_eq!(
                    client.execute(&mut connection, &write).await,
                    Ok(Reply::Written(None)),
                    "{field} {value:?}"
                );
            }
            // A format or secret that is not valid is found when the store is opened.
            if value.is_none() || field != "format" {
                assert_eq!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(None)), "{field} {value:?}");
            }
            let opened = open(&client, &mut connection, 8, 1).await;
            assert_eq!((opened.epoch, opened.seq, opened.format), ([8; 16], 0, 1), "{field} {value:?}");
            assert_eq!(server.command(&["EXISTS", "{rp:test}:entry"]), "0");
            let tick = Request::Tick { epoch: [8; 16], token: [0; 16], node: 1, report: None, after: 0 };
            assert!(matches!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(Some(_)))));
        }
    }
}

/// The log goes on: only its last record depends on it.
#[tokio::test]
async fn a_token_that_is_lost_is_written_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection) = connect(&server).await;
    open(&client, &mut connection, 7, 1).await;
    let _ = server.command(&["HSET", META, "token", "last", "seq", "3"]);
    let opened = open(&client, &mut connection, 8, 1).await;
    assert_eq!((opened.epoch, opened.seq, &*opened.token), (EPOCH, 3, &b"last"[..]));
    let _ = server.command(&["HDEL", META, "token"]);
    let opened = open(&client, &mut connection, 8, 1).await;
    assert_eq!((opened.epoch, opened.seq, &*opened.token), (EPOCH, 3, &b""[..]));
    assert_eq!(server.command(&["HEXISTS", META, "token"]), "1");
    assert_eq!(client.status().await.lost_fields, [""; 0]);
}

#[tokio::test]
async fn the_store_of_nodes_with_another_secret_or_version_is_left_as_it_is() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection) = connect(&server).await;
    for lost in ["format", "epoch", "seq", "none"] {
        let _ = server.command(&["FLUSHALL"]);
        open(&client, &mut connection, 7, 1).await;
        let _ = server.command(&["HDEL", META, lost]);
        let before = server.command(&["HGETALL", META]);
        assert_eq!(open(&client, &mut connection, 8, 2).await.secret_check, [1; 16], "without {lost}");
        assert_eq!(server.command(&["HGETALL", META]), before);
    }
    for lost in ["secret", "epoch", "seq", "none"] {
        let _ = server.command(&["FLUSHALL"]);
        open(&client, &mut connection, 7, 1).await;
        let _ = server.command(&["HSET", META, "format", "9"]);
        let _ = server.command(&["HDEL", META, lost]);
        let before = server.command(&["HGETALL", META]);
        assert_eq!(open(&client, &mut connection, 8, 1).await.format, 9, "without {lost}");
        assert_eq!(server.command(&["HGETALL", META]), before);
    }
}
