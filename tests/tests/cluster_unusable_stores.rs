//! A store that a node cannot use: it exits at its start with one sentence that says what to do, after a few seconds at most.

use crate::cluster_stores::EncryptedStore;
use rallypoint_harness::{CLUSTER_SECRET, RedisServer, eventually, rallypoint, stderr};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

/// The sentence with which a node exits.
#[track_caller]
pub fn refusal(url: &str) -> String {
    refusal_with(url, &[])
}

/// The refusal to start with this store and these variables of the environment.
#[track_caller]
fn refusal_with(url: &str, variables: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.envs(variables.iter().copied());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", url]);
    let output = command.env("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{url}: {text}");
    assert_eq!(text.lines().count(), 1, "{url}: {text}");
    assert!(!text.contains("hunter"), "{url}: {text}");
    text
}

/// A server that is not Redis. It ends with the test.
fn server(mut handle: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().flatten().for_each(&mut handle));
    url
}

/// Replies to what it receives, and closes the connection.
fn replying(reply: &'static [u8]) -> String {
    server(move |mut stream| {
        let _ = stream.read(&mut [0; 1_000]);
        let _ = stream.write_all(reply);
    })
}

#[test]
fn a_server_that_is_not_redis() {
    let mut silent = Vec::new();
    for (url, expected) in [
        (replying(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), "is not Redis or Valkey"),
        (replying(b"\x00\x01\x02\xff\xfe garbage"), "is not Redis or Valkey"),
        (replying(b"220 mail.example.org ESMTP\r\n"), "is not Redis or Valkey"),
        (replying(b""), "closed the connection"),
        (server(move |stream| silent.push(stream)), "does not answer in time"),
    ] {
        let text = refusal(&url);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// An earlier version lacks commands.
#[test]
fn a_store_that_is_too_old() {
    let url = server(|mut stream| {
        thread::spawn(move || {
            let mut received = [0; 10_000];
            while let Ok(length @ 1..) = stream.read(&mut received) {
                let text = String::from_utf8_lossy(&received[..length]).into_owned();
                // One reply for each command, which is an array.
                for command in text.split("\r\n*").filter(|command| command.contains('$')) {
                    let info = "redis_version:6.2.14\r\nrole:master\r\n";
                    let reply = match command.contains("INFO") && !command.contains("SETINFO") {
                        true => format!("${}\r\n{info}\r\n", info.len()),
                        false => "+OK\r\n".into(),
                    };
                    let _ = stream.write_all(reply.as_bytes());
                }
            }
        });
    });
    let text = refusal(&url);
    assert!(text.contains("has version 6: Redis or Valkey 7 or later is required"), "{text}");
}

#[test]
fn a_wrong_user_or_password() {
    let Some(store) = RedisServer::start(&["--requirepass", "hunter2"]) else { return };
    for user in ["", ":hunter3@", "nobody:hunter2@"] {
        let text = refusal(&store.url().replace("://", &format!("://{user}")));
        assert!(text.contains("user or password: check them in its address"), "{text}");
    }
    let Some(store) = RedisServer::start(&[]) else { return };
    for rights in [&["~other:*", "+@all"][..], &["~*", "+@read"], &["~*", "+@read", "+@scripting", "+@connection"]] {
        let user = ["ACL", "SETUSER", "limited", "reset", "on", ">hunter2"];
        assert_eq!(store.command(&[&user[..], rights].concat()), "OK");
        let text = refusal(&store.url().replace("://", "://limited:hunter2@"));
        assert!(text.contains("lacks a right"), "{rights:?}: {text}");
    }
}

#[test]
fn a_host_that_does_not_exist_and_a_port_without_a_server() {
    let text = refusal("redis://store.invalid");
    assert!(text.contains("cannot reach the store at redis://store.invalid"), "{text}");
    let text = refusal("redis://127.0.0.1:1");
    assert!(text.contains("cannot reach the store"), "{text}");
    let text = refusal("redis+sentinel://127.0.0.1:1/main");
    assert!(text.contains("cannot reach"), "{text}");
    let text = refusal("redis://127.0.0.1:1,127.0.0.1:2");
    assert!(text.contains("cannot reach"), "{text}");
}

/// The other kind of address, for a store with and without TLS.
#[test]
fn an_encrypted_and_an_unencrypted_port() {
    let Some(encrypted) = EncryptedStore::start() else { return };
    let Some(plain) = RedisServer::start(&[]) else { return };
    let text = refusal(&encrypted.server.url());
    assert!(text.contains("requires TLS: write rediss://"), "{text}");
    let text = refusal(&plain.url().replace("redis", "rediss"));
    assert!(text.contains("does not use TLS: write redis://"), "{text}");
}

/// As Redis does with TLS unless it is configured otherwise.
#[test]
fn a_store_that_requires_certificates_of_its_clients() {
    let Some(store) = EncryptedStore::start_with("yes") else { return };
    let url = format!("rediss://127.0.0.1:{}", store.server.port());
    let text = refusal_with(&url, &[("SSL_CERT_FILE", &store.certificate)]);
    assert!(text.contains("requires a certificate of its clients"), "{text}");
}

/// A script of another program occupies the store, for longer than it lets others wait.
#[test]
fn a_store_that_is_busy_with_a_script() {
    let Some(store) = RedisServer::start(&["--busy-reply-threshold", "1"]) else { return };
    thread::scope(|scope| {
        scope.spawn(|| store.command(&["EVAL", "while true do end", "0"]));
        eventually("the script is running", || store.command(&["PING"]).contains("BUSY"));
        let text = refusal(&store.url());
        let _ = store.command(&["SCRIPT", "KILL"]);
        assert!(text.contains("is occupied by a script of another program"), "{text}");
    });
}

/// A number of a database that the store does not have, and the parts of another kind of store.
#[test]
fn another_kind_of_store_than_the_address_says() {
    let Some(store) = RedisServer::start(&[]) else { return };
    for (url, expected) in [
        (format!("{}/99", store.url()), "no database with that number"),
        (format!("{0},127.0.0.1:{1}", store.url(), store.port()), "are not a Redis Cluster"),
        (format!("redis+sentinel://127.0.0.1:{}/main", store.port()), "is not Sentinel"),
    ] {
        let text = refusal(&url);
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let sentinel = RedisServer::start_sentinel(&store);
    let text = refusal(&sentinel.url());
    assert!(text.contains("if it is Sentinel, write redis+sentinel://"), "{text}");
    let text = refusal(&format!("redis+sentinel://127.0.0.1:{}/other", sentinel.port()));
    assert!(text.contains("do not know that service"), "{text}");
}
