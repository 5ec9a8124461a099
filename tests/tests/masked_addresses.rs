//! The log shows complete addresses at debug level only.

use rallypoint_harness::{GameServer, Lobby, connect_from, stderr};

fn log(level: &str) -> String {
    let lobby = Lobby::with(&[&format!("log.level={level}"), "caps.per_address=1", "limits.exempt=off"]);
    let server = GameServer::named("secretive").from_ip("127.45.67.89");
    lobby.register(&server);
    lobby.wait_until_listed(&["secretive"]);
    lobby.register(&server.clone().restarted().port(8_191));
    lobby.send(server.source(), b"invalid");
    drop(connect_from(server.source(), lobby.v4()).unwrap());
    lobby.unregister(&server);
    lobby.wait_until_listed(&[]);
    stderr(&lobby.stop())
}

#[test]
fn info_shows_only_the_network() {
    let log = log("info");
    assert!(log.contains("127.45.67.x") && !log.contains("127.45.67.89"), "{log}");
}

#[test]
fn debug_shows_the_address() {
    let log = log("debug");
    let listed: Vec<_> = log.lines().filter(|line| line.contains("secretive") && line.contains(" listed")).collect();
    assert!(listed.len() == 1 && listed[0].contains("127.45.67.89"), "once, and in full: {log}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let lobby = Lobby::with(&["log.level=trace"]);
    let name = "evil\x1b[2J\r\nINFO faked line\u{202e}\x07";
    lobby.register(&GameServer::named(name));
    lobby.wait_until_listed(&[name]);
    let log = stderr(&lobby.stop());
    assert!(log.contains("evil"), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("INFO faked")), "{log}");
    assert!(!log.contains(['\x1b', '\x07', '\r', '\u{202e}']), "{log:?}");
}
