//! Connections without a request do not keep other clients from getting the list.

use crate::common;

use common::{LOBBY, Lobby, connect, eventually, options, read_all, request, server};
use std::{io::Write, net::TcpStream};

#[test]
fn l14_idle_connections_are_evicted_for_clients_with_requests() {
    let mut options = options();
    options.list.connections = 200;
    // Long enough that connections are evicted, and not timed out.
    options.list.request_timeout = common::TIMEOUT * 10;
    let lobby = Lobby::start(options);
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    let idle: Vec<TcpStream> = (0..500).map(|_| connect(lobby.addr())).collect();
    eventually("all connections are accepted", || lobby.list_stats().accepted >= 500);
    for _ in 0..50 {
        assert_eq!(lobby.names(), ["one"]);
    }
    let stats = lobby.list_stats();
    assert!(stats.open <= 200, "{stats:?}");
    assert_eq!(stats.refused_address, 0);
    assert!(stats.evicted >= 300);
    assert_eq!(stats.broken, 0, "evicted connections do not count as closed by the client");
    drop(idle);
    eventually("all connections have ended", || lobby.list_stats().open == 0);
    lobby.shutdown();
}

#[test]
fn l14_connections_per_address_are_limited() {
    let mut options = options();
    options.list.per_address = 3;
    options.list.loopback_exempt = false;
    let lobby = Lobby::start(options);
    let mut clients: Vec<TcpStream> = (0..3).map(|_| connect(lobby.addr())).collect();
    eventually("all connections are open", || lobby.list_stats().open == 3);
    // The lobby closes the connection: with a FIN, or with a reset if the request had arrived by then.
    let mut refused = connect(lobby.addr());
    let _ = refused.write_all(&request(LOBBY));
    assert!(!matches!(std::io::Read::read(&mut refused, &mut [0; 4]), Ok(1..)));
    eventually("the connection is refused", || lobby.list_stats().refused_address == 1);
    let mut first = clients.remove(0);
    first.write_all(&request(LOBBY)).unwrap();
    assert_eq!(read_all(&mut first), [0; 4]);
    drop(first);
    eventually("its connection has ended", || lobby.list_stats().open == 2);
    assert_eq!(lobby.list(), [0; 4]);
    lobby.shutdown();
}
