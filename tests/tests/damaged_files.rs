//! A damaged file is renamed with a warning, and the lobby starts empty.

use rallypoint_harness::{GameServer, Lobby};
use std::fs;

/// A lobby whose saved list was damaged before a restart.
fn lobby_after(damage: impl Fn(&mut Vec<u8>)) -> Lobby {
    let mut lobby = Lobby::start();
    lobby.register(&GameServer::named("from before"));
    lobby.wait_until_listed(&["from before"]);
    assert_eq!(lobby.stop().status.code(), Some(0));
    let mut bytes = fs::read(lobby.data("servers.save")).unwrap();
    damage(&mut bytes);
    fs::write(lobby.data("servers.save"), &bytes).unwrap();
    lobby.restart();
    lobby
}

fn assert_renamed(lobby: &mut Lobby) {
    assert_eq!(lobby.names(), [""; 0]);
    lobby.wait_until_logged("unusable file renamed");
    assert!(lobby.log().contains("WARN"), "{}", lobby.log());
    assert!(lobby.data("servers.save.damaged-1").exists());
    // Afterwards everything works.
    lobby.register(&GameServer::named("new"));
    lobby.wait_until_listed(&["new"]);
    lobby.stop();
    lobby.restart();
    assert_eq!(lobby.names(), ["new"]);
    assert!(!lobby.log().contains("WARN"), "{}", lobby.log());
}

#[test]
fn a_truncated_list() {
    assert_renamed(&mut lobby_after(|bytes| bytes.truncate(bytes.len() / 2)));
}

#[test]
fn a_list_with_a_changed_byte() {
    assert_renamed(&mut lobby_after(|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }));
}

#[test]
fn a_file_of_another_format() {
    assert_renamed(&mut lobby_after(|bytes| *bytes = b"\0garbage".repeat(1_000)));
}

#[test]
fn an_empty_file() {
    assert_renamed(&mut lobby_after(Vec::clear));
}
