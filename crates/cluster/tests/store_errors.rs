//! A store that cannot be used is reported in one sentence that says what to do.

use rallypoint_cluster::{BanWrite, Reply, Request, StoreClient, StoreErrorKind, Write};
use rallypoint_harness::RedisServer;

async fn error(url: &str) -> (StoreErrorKind, String) {
    let client = StoreClient::new(&url.parse().unwrap(), "test").unwrap();
    let error = client.connect().await.expect_err("a connection");
    assert!(!error.message.contains("hunter2"), "{}", error.message);
    assert_eq!(error.message.lines().count(), 1);
    (error.kind, error.message)
}

#[tokio::test]
async fn no_store_at_the_address() {
    let (kind, message) = error("redis://127.0.0.1:1").await;
    assert_eq!(kind, StoreErrorKind::Unreachable);
    assert!(message.contains("cannot reach the store at redis://127.0.0.1:1"), "{message}");
}

#[tokio::test]
async fn a_password_and_a_user_are_required() {
    let Some(server) = RedisServer::start(&["--requirepass", "hunter2"]) else { return };
    let rights = ["on", ">hunter3", "~{rp:*}*", "+@all"];
    let _ = server.command(&[&["-a", "hunter2", "--no-auth-warning", "ACL", "SETUSER", "lobby"], &rights[..]].concat());
    let port = server.port();
    for url in [format!("redis://127.0.0.1:{port}"), format!("redis://:wrong@127.0.0.1:{port}")] {
        let (kind, message) = error(&url).await;
        assert_eq!(kind, StoreErrorKind::Rejected, "{message}");
        assert!(message.contains("password"), "{message}");
    }
    for url in [format!("redis://:hunter2@127.0.0.1:{port}"), format!("redis://lobby:hunter3@127.0.0.1:{port}")] {
        let client = StoreClient::new(&url.parse().unwrap(), "test").unwrap();
        let mut connection = client.connect().await.unwrap();
        client.execute(&mut connection, &Request::Open { epoch: [1; 16], secret_check: [1; 16] }).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_redis() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let answer = tokio::spawn(async move {
        // They stay open: closing one with unread data would be a reset, which is another error.
        let mut streams = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            streams.push(stream);
        }
    });
    let (_, message) = error(&url).await;
    assert!(message.contains("is not Redis or Valkey"), "{message}");
    answer.abort();
}

/// Older servers lack commands that nodes use.
#[tokio::test]
async fn a_store_that_is_too_old() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let answer = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4_096];
            while let Ok(length @ 1..) = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                for command in text.split('*').skip(1) {
                    let info = "redis_version:6.2.14\r\n";
                    let reply = format!("${}\r\n{info}\r\n", info.len());
                    let reply =
                        if command.contains("INFO\r\n") && !command.contains("SETINFO") { &reply } else { "+OK\r\n" };
                    let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, reply.as_bytes()).await;
                }
            }
        }
    });
    let (kind, message) = error(&url).await;
    assert_eq!(kind, StoreErrorKind::Rejected, "{message}");
    assert!(message.contains("has version 6: Redis or Valkey 7 or later is required"), "{message}");
    answer.abort();
}

/// The servers are right, but not the form of the address.
#[tokio::test]
async fn another_kind_of_store() {
    let Some(single) = RedisServer::start(&[]) else { return };
    let Some(part) = RedisServer::start(&["--cluster-enabled", "yes"]) else { return };
    let sentinel = RedisServer::start_sentinel(&single);
    let addr = |server: &RedisServer| format!("127.0.0.1:{}", server.port());
    let (single, sentinel) = (addr(&single), addr(&sentinel));
    for (url, expected) in [
        (part.url(), "name several of its servers"),
        (format!("redis://{single},{single}"), "are not a Redis Cluster"),
        (format!("redis://{sentinel}"), "write redis+sentinel://"),
        (format!("redis+sentinel://{single}/main"), "is not Sentinel"),
        (format!("redis+sentinel://{sentinel}/other"), "do not know that service"),
        (format!("redis://{single}/99"), "no database with that number"),
    ] {
        let (kind, message) = error(&url).await;
        assert_eq!(kind, StoreErrorKind::Rejected, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_store_that_refuses_changes() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let open = Request::Open { epoch: [1; 16], secret_check: [1; 16] };
    client.execute(&mut connection, &open).await.unwrap();
    let tick = Request::Tick { epoch: [1; 16], token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    for (commands, repair) in [
        (vec!["REPLICAOF", "127.0.0.1", "1"], vec!["REPLICAOF", "NO", "ONE"]),
        (vec!["CONFIG", "SET", "maxmemory", "1"], vec!["CONFIG", "SET", "maxmemory", "0"]),
    ] {
        let _ = server.command(&commands);
        let error = client.execute(&mut connection, &tick).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{}", error.message);
        let _ = server.command(&repair);
        client.execute(&mut connection, &tick).await.unwrap();
    }
}

/// A master that becomes a replica ends requests that wait. It can still be read: that it refuses changes is the reason of the outage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_the_log_goes_on_when_a_master_is_demoted() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let read = tokio::spawn(async move { client.execute(&mut connection, &Request::ReadLog { after: 0 }).await });
    rallypoint_harness::eventually("the request waits", || {
        server.command(&["INFO", "clients"]).contains("blocked_clients:1")
    });
    let _ = server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(read.await.unwrap(), Ok(Reply::Log { records: Vec::new(), is_malformed: false }));
}

#[test]
fn a_name_with_other_characters_is_refused() {
    for name in ["", "a b", "a}b", &"x".repeat(65)] {
        assert!(StoreClient::new(&"redis://localhost".parse().unwrap(), name).is_err(), "{name}");
    }
}

/// Whatever a program at the store's address announces, a node does not wait for more than it can keep.
#[tokio::test]
async fn a_reply_without_an_end() {
    for reply in [
        &b"$536870912\r\n"[..],
        b"*2000000000\r\n",
        b"+",
        b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sent, mut count) = tokio::sync::mpsc::unbounded_channel();
        let answer = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, reply).await;
                let part = b"*1\r\n".repeat(16_384);
                while tokio::io::AsyncWriteExt::write_all(&mut stream, &part).await.is_ok() {
                    let _ = sent.send(part.len());
                }
            }
        });
        for url in [format!("redis://{addr}"), format!("redis+sentinel://{addr}/main")] {
            let (kind, message) = error(&url).await;
            assert_eq!(kind, StoreErrorKind::TooLarge, "{message}");
        }
        answer.abort();
        let mut total = 0;
        while let Ok(length) = count.try_recv() {
            total += length;
        }
        assert!(total < 32 << 20, "{total} bytes were sent");
    }
}

/// An operator has deleted all scripts, or the store was replaced by one that has none.
#[tokio::test]
async fn scripts_that_were_deleted_are_loaded_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let epoch = [1; 16];
    let ban = |subject: &[u8]| {
        let (subject, value) = (subject.to_vec(), b"{}".to_vec());
        Write::Ban(BanWrite { subject, value, since: 1, end: 0, is_current: false })
    };
    for request in [
        Request::Open { epoch, secret_check: [1; 16] },
        Request::Tick { epoch, token: [0; 16], node: 1, report: None, after: 0 },
        Request::Write { epoch, writes: vec![([1; 16], ban(b"a")), ([2; 16], ban(b"b"))] },
        Request::Scan { cursor: 0 },
        Request::Bans,
    ] {
        assert_eq!(server.command(&["SCRIPT", "FLUSH"]), "OK");
        client.execute(&mut connection, &request).await.unwrap();
    }
    assert_eq!(server.command(&["HLEN", "{rp:test}:ban"]), "2");
}
