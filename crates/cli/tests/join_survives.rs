//! `rallypoint join` survives a restart of the server and a new address, and shows what a hostile server says harmlessly.

mod common;
mod room_support;

use common::until;
use rallypoint_session::{PolledServer, ServerEvent, ServerOptions};
use rallypoint_session_proto::EndpointConfig;
use room_support::{Room, join, router::Router};
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn s32_a_restart_of_the_server_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let mut alice = room.guest(home.path(), "alice", &["--team", "red", "--key", &room.key]);
    let addr = room.addr.to_string();
    room.host.signal("KILL");
    room.host.ends();
    let room = Room::open_at(home.path(), &addr, &[]);
    alice.types("anybody?");
    alice.hears("-- the connection is lost (the server was restarted); trying again");
    alice.hears("-- connected again");
    room.host.hears("-- alice is in team red now");
    alice.types("hello again");
    alice.hears("alice: hello again");
}

#[test]
fn s31_a_new_address_in_mid_sentence_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let router = Router::start(room.addr);
    let mut alice = join(home.path(), router.addr, "alice", &[]);
    alice.hears("-- you are alice");
    alice.types("before");
    alice.hears("alice: before");
    router.is_moved.store(true, SeqCst);
    alice.types("after");
    alice.hears("alice: after");
    room.host.hears("alice: after");
}

#[test]
fn what_a_hostile_server_says_is_shown_harmlessly() {
    let home = tempfile::tempdir().unwrap();
    let config = EndpointConfig::for_game("rallypoint-room");
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let mut server = PolledServer::bind(ServerOptions { listen, stream: Some(8_192), ..config.into() }).unwrap();
    let guest = join(home.path(), server.local_addrs().next().unwrap(), "alice", &[]);
    let mut message = Vec::new();
    let player = until("somebody comes", || {
        server.poll();
        match server.next(&mut message) {
            Some(ServerEvent::Joined { player, .. }) => Some(player),
            _ => None,
        }
    });
    server.send(player, b"\x1b]0;owned\x07 \xff\n-- you have won").unwrap();
    assert!(server.disconnect(player, "\x1b[2Jgone"));
    until("the guest has left", || {
        server.poll();
        let _ = server.next(&mut message);
        server.players().next().is_none().then_some(())
    });
    let shown = guest.hears("owned");
    assert!(!shown.contains(|c: char| c.is_control()) && shown.contains("you have won"), "{shown:?}");
    let (code, complaint) = guest.ends();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("\u{fffd}[2Jgone"), "{complaint:?}");
}
