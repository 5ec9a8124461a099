//! `rallypoint join` survives a restart of the server and a new address, and shows what a hostile server says harmlessly.

mod common;
mod room_support;

use common::until;
use rallypoint_net::{PolledServer, ServerEvent, ServerOptions};
use rallypoint_session::EndpointConfig;
use room_support::{Room, join};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

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

/// Carries datagrams of one guest to and fro, and one day from another port. What then comes to the old one is lost.
struct Router {
    addr: SocketAddr,
    is_moved: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
}

impl Router {
    fn start(room: SocketAddr) -> Self {
        let socket = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let (front, outside, is_moved) = (socket(), [socket(), socket()], Arc::new(AtomicBool::new(false)));
        let (addr, guest) = (front.local_addr().unwrap(), Arc::new(OnceLock::new()));
        for after in [false, true] {
            let (front, back) = (front.clone(), outside[usize::from(after)].clone());
            let (guest, is_moved) = (guest.clone(), is_moved.clone());
            carry(back, move |datagram, _| {
                if let Some(guest) = guest.get().filter(|_| is_moved.load(SeqCst) == after) {
                    let _ = front.send_to(datagram, guest);
                }
            });
        }
        let (moved, is_cut) = (is_moved.clone(), Arc::new(AtomicBool::new(false)));
        let cut = is_cut.clone();
        carry(front, move |datagram, from| {
            guest.get_or_init(|| from);
            if !cut.load(SeqCst) {
                let _ = outside[usize::from(moved.load(SeqCst))].send_to(datagram, room);
            }
        });
        Self { addr, is_moved, is_cut }
    }
}

/// Hands on everything that comes to a socket, until the test ends.
fn carry(socket: Arc<UdpSocket>, mut pass: impl FnMut(&[u8], SocketAddr) + Send + 'static) {
    std::thread::spawn(move || {
        let mut buffer = [0; 600];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            pass(&buffer[..length], from);
        }
    });
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
fn a_pipe_whose_line_did_not_arrive_ends_with_a_sentence_and_1() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let router = Router::start(room.addr);
    let mut bot = join(home.path(), router.addr, "bot", &[]);
    bot.hears("-- you are bot");
    router.is_cut.store(true, SeqCst);
    bot.types("the build is red");
    bot.closes_input();
    let (code, complaint) = bot.ends();
    assert_eq!(code, Some(1));
    let sentence = "rallypoint: the server did not acknowledge everything: the last messages may not have arrived\n";
    assert_eq!(complaint, sentence);
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
