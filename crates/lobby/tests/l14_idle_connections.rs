//! Connections that ask for nothing do not keep others from their list.

mod common;

use common::{LOBBY, Lobby, connect, eventually, options, read_all, request, server};
use std::{io::Write, net::TcpStream};

#[test]
fn l14_idle_connections_do_not_stop_a_query() {
    let mut options = options();
    options.list.connections = 200;
    // Long enough that it is not the limit of time that makes room.
    options.list.request_timeout = common::LIMIT * 10;
    let lobby = Lobby::start(options);
    lobby.send(&server("one"));
    lobby.until_listed(&["one"]);
    let idle: Vec<TcpStream> = (0..500).map(|_| connect(lobby.addr())).collect();
    eventually("all were taken", || lobby.list_stats().accepted >= 500);
    for _ in 0..50 {
        assert_eq!(lobby.names(), ["one"]);
    }
    let stats = lobby.list_stats();
    assert!(stats.open <= 200, "{stats:?}");
    assert_eq!(stats.refused_address, 0);
    assert!(stats.evicted >= 300);
    assert_eq!(stats.broken, 0, "who has to go did not go by himself");
    drop(idle);
    eventually("all are gone", || lobby.list_stats().open == 0);
    lobby.shutdown();
}

#[test]
fn an_address_can_have_only_so_many() {
    let mut options = options();
    options.list.per_address = 3;
    options.list.loopback_exempt = false;
    let lobby = Lobby::start(options);
    let mut clients: Vec<TcpStream> = (0..3).map(|_| connect(lobby.addr())).collect();
    eventually("all were taken", || lobby.list_stats().open == 3);
    // The lobby closes it; whether that is an end or a reset depends on what it had sent by then.
    let mut refused = connect(lobby.addr());
    let _ = refused.write_all(&request(LOBBY));
    assert!(!matches!(std::io::Read::read(&mut refused, &mut [0; 4]), Ok(1..)));
    eventually("it was refused", || lobby.list_stats().refused_address == 1);
    let mut first = clients.remove(0);
    first.write_all(&request(LOBBY)).unwrap();
    assert_eq!(read_all(&mut first), [0; 4]);
    drop(first);
    eventually("its place is free", || lobby.list_stats().open == 2);
    assert_eq!(lobby.list(), [0; 4]);
    lobby.shutdown();
}
