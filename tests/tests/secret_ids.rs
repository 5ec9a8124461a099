//! The server ID is a secret between a server and its lobby: it is never shown (L13).

use rallypoint_harness::{
    GameServer, Lobby, Process, Signal, TcpPort, eventually, rallypoint, send_request, stderr, stdout,
};
use std::os::unix::fs::PermissionsExt;

const ID: [u8; 16] = *b"\xd3\x1a\x5e\x0b\xc4\x29\x7f\x61\x98\xae\x04\xf5\x3c\x87\xb2\x6d";

/// Asserts that the text has no representation of the secret.
fn assert_hidden(text: &str) {
    let hex: String = ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let uuid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    let plain = text.to_lowercase().replace([' ', '\n'], "");
    let list = format!("{:?}", &ID[..4]).replace(' ', "");
    let number = u128::from_be_bytes(ID).to_string();
    // Not even half of it.
    for secret in [&hex[..16], &hex[16..], &uuid, &number, list.trim_end_matches(']')] {
        assert!(!plain.contains(secret), "the secret is in {text}");
    }
}

fn has_secret(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|window| window == &ID[..8] || window == &ID[8..])
}

/// Exercises everything that can happen to a server.
fn exercise(lobby: &Lobby) {
    let server = GameServer::named("secretive").with_id(ID).key("protocol_id", [7; 16]);
    let (open, closed) = (TcpPort::open("127.0.0.1"), TcpPort::closed("127.0.0.1"));
    lobby.register(&server);
    lobby.wait_until_listed(&["secretive"]);
    lobby.register(&server.clone().tcp(closed.number()));
    lobby.register(&server.clone().tcp(open.number()));
    eventually("it is listed by TCP", || {
        lobby.server("secretive").is_some_and(|it| it.v4.unwrap().port() == open.number())
    });
    assert!(!has_secret(&lobby.list_reply()));
    assert!(!has_secret(&send_request(lobby.legacy(), &[&[128][..], &[7; 16]].concat())));
    lobby.send([127, 9, 9, 9], &server.registration());
    let whole = server.registration();
    for wrong in [&whole[..40], &whole[..60], &whole[..whole.len() - 1], &[&whole[..], &[0; 5_000]].concat()] {
        lobby.send([127, 0, 0, 1], wrong);
    }
    lobby.register(&server.clone().key("x-query", "session:1"));
    lobby.unregister(&server);
    lobby.unregister(&server);
    lobby.register(&server);
    lobby.settle();
}

#[test]
fn l13_the_log_never_contains_it() {
    for format in ["text", "json"] {
        let lobby = Lobby::with(&["log.level=trace", &format!("log.format={format}"), "checks.timeout=100ms"]);
        exercise(&lobby);
        let output = lobby.stop();
        assert!(stderr(&output).contains("secretive"), "the log mentions the server");
        assert_hidden(&stderr(&output));
        assert_hidden(&stdout(&output));
    }
}

#[test]
fn l13_the_saved_list_is_readable_by_the_lobby_only() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("secretive").with_id(ID));
    lobby.wait_until_listed(&["secretive"]);
    lobby.stop();
    for file in ["servers.save", "public-id.key"] {
        let mode = std::fs::metadata(lobby.data(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may not read {file}");
    }
}

#[test]
fn l13_announce_does_not_print_it() {
    let lobby = Lobby::start();
    let home = tempfile::tempdir().unwrap();
    let hex: String = ID.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(home.path().join("id"), hex).unwrap();
    let to = lobby.v4().to_string();
    let args =
        ["announce", "--name", "secretive", "--port", "8190", "--transport", "udp", "--id-file", "id", "--lobby", &to];
    let process = Process::spawn(rallypoint(home.path()).args(args));
    eventually("it is listed", || process.stdout().contains("listed by"));
    // It really uses this ID: another registration with it replaces the entry.
    lobby.register(&GameServer::named("the same server").with_id(ID).port(8_191));
    lobby.wait_until_listed(&["the same server"]);
    process.signal(Signal::INT);
    let output = process.wait();
    assert_hidden(&stdout(&output));
    assert_hidden(&stderr(&output));
}
