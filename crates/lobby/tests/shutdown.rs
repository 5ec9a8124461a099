//! A shutdown completes replies, frees the ports and ends all threads.

use crate::common;

use common::{LOBBY, Lobby, connect, options, request, server};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
};

#[test]
fn a_shutdown_frees_the_ports_and_a_second_one_is_harmless() {
    let lobby = Lobby::start(options());
    let addr = lobby.addr();
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    let idle = connect(addr);
    lobby.runtime.block_on(async {
        lobby.service.shutdown().await;
        lobby.service.ended().await;
        lobby.service.shutdown().await;
        assert!(lobby.recent_outcomes(addr.ip()).await.is_empty());
        assert!(lobby.set_config(rallypoint_lobby_proto::Config::default()).await.is_ok());
    });
    assert!(TcpStream::connect(addr).is_err());
    let Lobby { service, runtime } = lobby;
    assert_eq!(service.lists().list(&LOBBY).count(), 1, "published lists can still be read");
    drop((service, idle));
    drop(runtime);
    UdpSocket::bind(addr).unwrap();
    TcpListener::bind(addr).unwrap();
}

#[test]
fn a_shutdown_completes_replies_in_progress() {
    let mut options = options();
    options.registry.caps.per_address = 10_000;
    let lobby = Lobby::start(options);
    let server = |number: u16| {
        let transport = rallypoint_wire::lobby::Transport::Udp;
        common::registration(&format!("server {number}"), 1_000 + number, transport, &[("filler", &[b'x'; 4_000])])
    };
    lobby.send_all((0..2_000).map(server));
    common::eventually("all servers are listed", || lobby.lists().list(&LOBBY).count() == 2_000);
    let mut reader = connect(lobby.addr());
    reader.write_all(&request(LOBBY)).unwrap();
    let mut first = [0; 4];
    reader.read_exact(&mut first).unwrap();
    let rest = std::thread::spawn(move || common::read_all(&mut reader));
    lobby.runtime.block_on(lobby.service.shutdown());
    let reply = [&first[..], &rest.join().unwrap()].concat();
    assert_eq!(common::names(&reply).len(), 2_000);
}

#[test]
fn dropping_a_lobby_frees_its_port() {
    let lobby = Lobby::start(options());
    let addr = lobby.addr();
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    drop(lobby.service);
    common::eventually("the port is free", || UdpSocket::bind(addr).is_ok());
    drop(lobby.runtime);
}
