//! Whoever runs `rallypoint host` can speak, and send people away: those who are meant, and nobody else.

mod common;
mod room_support;

use room_support::{Room, join, router::Router};
use std::{net::Ipv4Addr, sync::atomic::Ordering::SeqCst};

#[test]
fn whoever_runs_it_can_speak_and_send_people_away() {
    let home = tempfile::tempdir().unwrap();
    let mut room = Room::open(home.path(), &[]);
    let alice = room.guest(home.path(), "alice", &[]);
    let bob = room.guest(home.path(), "bob", &[]);
    room.host.types("good evening");
    bob.hears("-- server: good evening");
    room.host.types("/kick bob too loud");
    let (code, complaint) = bob.ends();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("the server ended it: kicked: too loud"), "{complaint}");
    alice.hears("-- bob has left (kicked: too loud)");
    room.host.hears("-- bob is sent away; for 10 minutes nobody gets in from there");
    let (code, complaint) = join(home.path(), room.addr, "bob", &[]).ends();
    assert!(code == Some(1) && complaint.contains("sent away; come back in 10 min"), "{complaint}");
    room.host.types("/quit");
    let (code, complaint) = alice.ends();
    assert!(code == Some(1) && complaint.contains("the server is closing"), "{complaint}");
    assert_eq!(room.host.ends().0, Some(0));
}

#[test]
fn what_is_piped_in_by_who_was_sent_away_is_not_said() {
    let home = tempfile::tempdir().unwrap();
    let mut room = Room::open(home.path(), &[]);
    let dan = room.guest(home.path(), "dan", &[]);
    room.host.types("/kick dan");
    assert_eq!(dan.ends().0, Some(1));
    let mut dan = join(home.path(), room.addr, "dan", &[]);
    dan.types("hi");
    dan.closes_input();
    let (code, complaint) = dan.ends();
    assert_eq!((code, &*complaint), (Some(1), "rallypoint: the server ended it: sent away; come back in 10 min\n"));
}

#[test]
fn s31_a_forged_address_keeps_nobody_else_out() {
    let (own, claimed) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let home = tempfile::tempdir().unwrap();
    let mut room = Room::open(home.path(), &[]);
    let router = Router::forging(room.addr, own, claimed);
    let mut mallory = join(home.path(), router.addr, "mallory", &["--no-reconnect"]);
    mallory.hears("-- you are mallory");
    router.is_moved.store(true, SeqCst);
    mallory.types("something rude");
    room.host.hears("mallory: something rude");
    room.host.types("/kick mallory rude");
    room.host.hears("-- mallory is sent away");
    let victim = join(home.path(), Router::forging(room.addr, claimed, own).addr, "victim", &[]);
    victim.hears("-- you are victim");
    let (code, complaint) = join(home.path(), room.addr, "mallory", &[]).ends();
    assert!(code == Some(1) && complaint.contains("sent away; come back in 10 min"), "{complaint}");
}

#[test]
fn a_kick_of_nobody_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let mut room = Room::open(home.path(), &[]);
    room.host.types("/kick");
    assert_eq!(room.host.line(), "-- whom? /kick NAME REASON");
}
