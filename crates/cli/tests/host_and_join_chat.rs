//! `rallypoint host` is a room in which people who `rallypoint join` it talk with each other.

mod common;
mod room_support;

use common::{rallypoint, run, stderr};
use room_support::{Room, Talk, join};
use std::{fs, os::unix::fs::PermissionsExt};

#[test]
fn two_people_talk() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &["--welcome", "Be kind"]);
    let mut alice = join(home.path(), room.addr, "alice", &[]);
    assert!(alice.hears("-- connected to").contains("(encrypted); /quit leaves"));
    assert_eq!(alice.line(), "Be kind");
    alice.hears("-- you are alice");
    let mut bob = room.guest(home.path(), "bob", &["--plain", "--team", "blue"]);
    alice.hears("-- bob has joined");
    alice.hears("-- bob is in team blue now");
    alice.types("hello");
    assert_eq!(bob.hears("hello"), "alice: hello");
    assert_eq!(alice.hears("hello"), "alice: hello");
    bob.types("/me waves");
    assert_eq!(alice.hears("waves"), "* bob waves");
    bob.types("/who");
    let who = bob.hears("here:");
    assert!(who.starts_with("-- 2 here: alice") && who.contains("bob (blue"), "{who}");
    alice.types("/stats");
    alice.hears("-- round trip ");
    room.host.hears("* bob waves");
    bob.types("/quit");
    assert_eq!(bob.ends().0, Some(0));
    alice.hears("-- bob has left");
}

#[test]
fn who_comes_back_at_once_has_the_same_name() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    for _ in 0..3 {
        let mut alice = room.guest(home.path(), "alice", &[]);
        alice.types("/quit");
        assert_eq!(alice.ends().0, Some(0));
    }
}

#[test]
fn one_address_does_not_fill_the_room() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &["--max-per-address", "2"]);
    let _guests = ["alice", "bob"].map(|name| room.guest(home.path(), name, &[]));
    let (code, complaint) = join(home.path(), room.addr, "carol", &[]).ends();
    assert!(code == Some(1) && complaint.contains("too many from your address"), "{complaint}");
}

#[test]
fn the_key_stays_and_is_for_its_owner_only() {
    let home = tempfile::tempdir().unwrap();
    let first = Room::open(home.path(), &[]);
    let file = home.path().join(".local/share/rallypoint/session.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let second = Room::open(home.path(), &[]);
    assert_eq!(first.key, second.key);
    assert_ne!(fs::read_to_string(&file).unwrap().trim(), first.key, "the secret one is not the public one");
    let guest = join(home.path(), first.addr, "alice", &["--key", &first.key]);
    guest.hears("(encrypted, and it is the server with that key)");
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Room::open(elsewhere.path(), &[]);
    let (code, complaint) = join(home.path(), other.addr, "alice", &["--key", &first.key]).ends();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("key"), "{complaint}");
}

#[test]
fn what_cannot_be_is_told() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), &["join", "127.0.0.1", "--key", "12"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a key is 64 hex digits"), "{}", stderr(&output));
    assert_eq!(run(home.path(), &["join", "bloodmasters://127.0.0.1"]).status.code(), Some(2));
    assert_eq!(run(home.path(), &["host", "--max-players", "256"]).status.code(), Some(2));
    let room = Room::open(home.path(), &["--encrypted-only"]);
    let (code, complaint) = join(home.path(), room.addr, "alice", &["--plain"]).ends();
    assert!(code == Some(1) && complaint.contains("the server refuses"), "{complaint}");
    let output = run(home.path(), &["host", "--listen", &room.addr.to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is used by another program"), "{}", stderr(&output));
    let missing = home.path().join("missing/key");
    let output = run(home.path(), &["host", "--listen", "127.0.0.1:0", "--key-file", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let sentence = format!("rallypoint: cannot keep the key in {}: No such file or directory", missing.display());
    assert!(stderr(&output).starts_with(&sentence), "{}", stderr(&output));
    assert!(!home.path().join("missing").exists());
    let nowhere = Talk::start(rallypoint(home.path()).args(["join", "no-such-name.invalid"]));
    assert_eq!(nowhere.ends().0, Some(1));
}
