//! The operator of a room sends messages and kicks guests; other guests are not affected.

use rallypoint_harness::{Room, Router, join, stderr};
use std::net::Ipv4Addr;

#[test]
fn the_operator_can_chat_and_kick() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let alice = room.join(home.path(), "alice", &[]);
    let bob = room.join(home.path(), "bob", &[]);
    room.host.write_line("good evening");
    bob.wait_for_line("-- server: good evening");
    room.host.write_line("/kick bob too loud");
    let exit = bob.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(1));
    assert!(complaint.contains("the server closed the connection: kicked: too loud"), "{complaint}");
    alice.wait_for_line("-- bob left (kicked: too loud)");
    room.host.wait_for_line("-- bob was kicked; their network is banned for 10 minutes");
    let exit = join(home.path(), room.addr, "bob", &[]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains("kicked; you can join again in 10 min"), "{complaint}");
    room.host.write_line("/quit");
    let exit = alice.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains("the server is closing"), "{complaint}");
    assert_eq!(room.host.wait().status.code(), Some(0));
}

#[test]
fn piped_lines_of_a_kicked_guest_are_not_sent() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let dan = room.join(home.path(), "dan", &[]);
    room.host.write_line("/kick dan");
    assert_eq!(dan.wait().status.code(), Some(1));
    let dan = join(home.path(), room.addr, "dan", &[]);
    dan.write_line("hi");
    dan.close_stdin();
    let exit = dan.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(
        (code, &*complaint),
        (Some(1), "rallypoint: the server closed the connection: kicked; you can join again in 10 min\n")
    );
}

#[test]
fn s31_a_kick_does_not_ban_a_claimed_address() {
    let (own, claimed) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let router = Router::spoofing(room.addr, own, claimed);
    let mallory = join(home.path(), router.addr, "mallory", &["--no-reconnect"]);
    mallory.wait_for_line("-- you are mallory");
    router.rebind();
    mallory.write_line("something rude");
    room.host.wait_for_line("mallory: something rude");
    room.host.write_line("/kick mallory rude");
    room.host.wait_for_line("-- mallory was kicked");
    let victim = join(home.path(), Router::spoofing(room.addr, claimed, own).addr, "victim", &[]);
    victim.wait_for_line("-- you are victim");
    let exit = join(home.path(), room.addr, "mallory", &[]).wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert!(code == Some(1) && complaint.contains("kicked; you can join again in 10 min"), "{complaint}");
}

#[test]
fn a_kick_without_a_name_shows_the_usage() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    room.host.write_line("/kick");
    assert_eq!(room.host.next_line(), "-- usage: /kick NAME REASON");
}
