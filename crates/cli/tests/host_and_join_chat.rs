//! Clients of `rallypoint join` chat with each other in a room of `rallypoint host`.

use rallypoint_harness::{Process, Room, join, rallypoint, run, stderr};
use std::{fs, os::unix::fs::PermissionsExt};

#[test]
fn two_guests_chat() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &["--welcome", "Be kind"]);
    let alice = join(home.path(), room.addr, "alice", &[]);
    assert!(alice.wait_for_line("-- connected to").contains("(encrypted); /quit leaves"));
    assert_eq!(alice.next_line(), "Be kind");
    alice.wait_for_line("-- you are alice");
    let bob = room.join(home.path(), "bob", &["--plain", "--team", "blue"]);
    alice.wait_for_line("-- bob joined");
    alice.wait_for_line("-- bob joined team blue");
    alice.write_line("hello");
    assert_eq!(bob.wait_for_line("hello"), "alice: hello");
    assert_eq!(alice.wait_for_line("hello"), "alice: hello");
    bob.write_line("/me waves");
    assert_eq!(alice.wait_for_line("waves"), "* bob waves");
    bob.write_line("/who");
    let who = bob.wait_for_line("in the room:");
    assert!(who.starts_with("-- 2 in the room: alice") && who.contains("bob (blue"), "{who}");
    alice.write_line("/stats");
    alice.wait_for_line("-- round trip ");
    room.host.wait_for_line("* bob waves");
    bob.write_line("/quit");
    assert_eq!(bob.wait().status.code(), Some(0));
    alice.wait_for_line("-- bob left");
}

#[test]
fn a_guest_that_rejoins_at_once_keeps_its_name() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    for _ in 0..3 {
        let alice = room.join(home.path(), "alice", &[]);
        alice.write_line("/quit");
        assert_eq!(alice.wait().status.code(), Some(0));
    }
}

#[test]
fn one_address_cannot_fill_the_room() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &["--max-per-address", "2"]);
    let _guests = ["alice", "bob"].map(|name| room.join(home.path(), name, &[]));
    let exit = join(home.path(), room.addr, "carol", &[]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains("too many from your address"), "{complaint}");
}

#[test]
fn the_key_persists_and_only_its_owner_can_read_it() {
    let home = tempfile::tempdir().unwrap();
    let first = Room::start(home.path(), &[]);
    let file = home.path().join(".local/share/rallypoint/session.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let second = Room::start(home.path(), &[]);
    assert_eq!(first.key, second.key);
    assert_ne!(fs::read_to_string(&file).unwrap().trim(), first.key, "the secret key is not the public key");
    let guest = join(home.path(), first.addr, "alice", &["--key", &first.key]);
    guest.wait_for_line("(encrypted, server key verified)");
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Room::start(elsewhere.path(), &[]);
    let exit = join(home.path(), other.addr, "alice", &["--key", &first.key]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(1));
    assert!(complaint.contains("key"), "{complaint}");
}

#[test]
fn w67_the_key_of_a_server_is_remembered_and_a_change_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    join(home.path(), room.addr, "alice", &["--key", &room.key]).wait_for_line("server key verified");
    let known = home.path().join(".local/share/rallypoint/known_servers");
    assert_eq!(fs::read_to_string(&known).unwrap(), format!("{} {}\n", room.addr, room.key));
    // Without --key, the server has to have the key that it had before.
    join(home.path(), room.addr, "bob", &[]).wait_for_line("server key verified");
    let other = "ab".repeat(32);
    fs::write(&known, format!("{} {other}\n", room.addr)).unwrap();
    let exit = join(home.path(), room.addr, "carol", &[]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains(&format!("had the key {other} before")), "{complaint}");
    let dave = join(home.path(), room.addr, "dave", &["--key", &room.key]);
    dave.wait_for_line("server key verified");
    dave.write_line("/quit");
    let warning = stderr(&dave.wait());
    assert!(warning.contains("has changed: it was") && warning.contains(&room.key), "{warning}");
}

#[test]
fn errors_name_the_cause() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["join", "127.0.0.1", "--key", "12"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a key has 64 hex digits"), "{}", stderr(&output));
    assert_eq!(run(home.path(), ["join", "bloodmasters://127.0.0.1"]).status.code(), Some(2));
    assert_eq!(run(home.path(), ["host", "--max-players", "256"]).status.code(), Some(2));
    let room = Room::start(home.path(), &["--encrypted-only"]);
    let exit = join(home.path(), room.addr, "alice", &["--plain"]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains("the server refused the login"), "{complaint}");
    let output = run(home.path(), ["host", "--listen", &room.addr.to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is used by another program"), "{}", stderr(&output));
    let missing = home.path().join("missing/key");
    let output = run(home.path(), ["host", "--listen", "127.0.0.1:0", "--key-file", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let sentence = format!("rallypoint: cannot write the key in {}: No such file or directory", missing.display());
    assert!(stderr(&output).starts_with(&sentence), "{}", stderr(&output));
    assert!(!home.path().join("missing").exists());
    let nowhere = Process::spawn_interactive(rallypoint(home.path()).args(["join", "no-such-name.invalid"]));
    assert_eq!(nowhere.wait().status.code(), Some(1));
}
