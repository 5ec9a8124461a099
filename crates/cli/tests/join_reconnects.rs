//! `rallypoint join` survives a restart of the server and a change of address, and sanitizes messages of a hostile server.

use rallypoint_harness::{Room, Router, Signal, join, stderr, wait_for};
use rallypoint_session::{Layer, NewPlayer, ONLY_CHANNEL, ServerEvent, ServerOptions};

#[test]
fn s32_a_restart_of_the_server_is_detected() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let alice = room.join(home.path(), "alice", &["--team", "red", "--key", &room.key]);
    let addr = room.addr.to_string();
    room.host.signal(Signal::KILL);
    room.host.wait();
    let room = Room::start_at(home.path(), &addr, &[]);
    alice.write_line("anybody?");
    alice.wait_for_line("-- connection lost (the server was restarted); reconnecting");
    alice.wait_for_line("-- reconnected");
    room.host.wait_for_line("-- alice joined team red");
    alice.write_line("hello again");
    alice.wait_for_line("alice: hello again");
}

#[test]
fn s31_a_change_of_address_during_a_message_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let router = Router::new(room.addr);
    let alice = join(home.path(), router.addr, "alice", &[]);
    alice.wait_for_line("-- you are alice");
    alice.write_line("before");
    alice.wait_for_line("alice: before");
    router.rebind();
    alice.write_line("after");
    alice.wait_for_line("alice: after");
    room.host.wait_for_line("alice: after");
}

#[test]
fn messages_of_a_hostile_server_are_sanitized() {
    let home = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::new("rallypoint-room").listen("127.0.0.1:0".parse().unwrap());
    options.endpoint.layer = Layer::Stream { max_message: 8_192, is_named: false };
    let mut server = options.bind_polled().unwrap();
    let guest = join(home.path(), server.local_addrs()[0], "alice", &[]);
    let player = wait_for("a client connects", || {
        server.poll();
        match server.next_event() {
            Some(ServerEvent::Connected(NewPlayer { player, .. })) => Some(player),
            _ => None,
        }
    });
    server.send(player, ONLY_CHANNEL, b"\x1b]0;owned\x07 \xff\n-- you have won").unwrap();
    assert!(server.disconnect(player, "\x1b[2Jgone"));
    wait_for("the guest has left", || {
        server.poll();
        matches!(server.next_event(), Some(ServerEvent::Disconnected(..))).then_some(())
    });
    let shown = guest.wait_for_line("owned");
    assert!(!shown.contains(|c: char| c.is_control()) && shown.contains("you have won"), "{shown:?}");
    let exit = guest.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(1));
    assert!(complaint.contains("\u{fffd}[2Jgone"), "{complaint:?}");
}
