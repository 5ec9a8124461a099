//! A server is listed after a successful reachability check (L12): a connection, or the query that it names (E1).

use rallypoint_harness::{GameServer, Lobby, MockServer, TcpPort, eventually};
use rallypoint_wire::bloodmasters::{ClientsBuf, Echo, Info, Query, Reply, Rules, queries};

/// One check at a time, so that the first registration has a result when the next one is listed.
const SEQUENTIAL: &str = "checks.in_flight=1";

fn bloodmasters_reply(echo: Echo) -> Vec<u8> {
    let mut reply = Vec::new();
    let (info, clients) = (Info { title: b"Mayan night", ..Info::default() }, ClientsBuf::new());
    Reply::new(echo, info, Rules::default(), clients.as_clients(), b"test").unwrap().emit(&mut reply);
    reply
}

fn query(datagram: &[u8]) -> Query {
    queries(datagram).next().expect("a query")
}

#[test]
fn l12_an_open_port_is_listed_and_a_closed_one_is_not_until_it_opens() {
    let lobby = Lobby::with(&["checks.retry=1s", SEQUENTIAL]);
    let (open, closed) = (TcpPort::open("127.0.0.1"), TcpPort::closed("127.0.0.1"));
    let late = GameServer::named("late").tcp(closed.number());
    lobby.register(&late);
    lobby.register(&GameServer::named("open").tcp(open.number()));
    lobby.wait_until_listed(&["open"]);
    // The port is opened, and the server continues to register.
    closed.listen();
    eventually("it is listed", || {
        lobby.register(&late);
        lobby.names() == ["late", "open"]
    });
}

#[test]
fn l12_a_server_that_stopped_during_a_restart_is_removed() {
    let mut lobby = Lobby::with(&["checks.keep=1s", "lobby.lease=2s"]);
    let port = TcpPort::open("127.0.0.1");
    let server = GameServer::named("stopped meanwhile").tcp(port.number());
    lobby.register(&server);
    lobby.wait_until_listed(&["stopped meanwhile"]);
    lobby.stop();
    drop(port);
    lobby.restart();
    assert_eq!(lobby.names(), ["stopped meanwhile"]);
    eventually("it is removed although it continues to register", || {
        lobby.register(&server);
        lobby.names().is_empty()
    });
}

#[test]
fn e1_a_bloodmasters_server_is_queried() {
    let lobby = Lobby::start();
    let server = MockServer::with_handler("127.0.0.1:0", |_, datagram| {
        vec![b"nonsense".to_vec(), bloodmasters_reply(query(datagram).echo)]
    });
    lobby.register(&GameServer::named("blood").port(server.port()).key("x-query", "bloodmasters"));
    lobby.wait_until_listed(&["blood"]);
    assert!(server.received().iter().all(|datagram| datagram.len() == 7), "b10: never an empty datagram");
}
