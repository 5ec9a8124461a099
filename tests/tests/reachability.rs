//! A server is listed after a successful reachability check (L12): a connection, or the query that it names (E1).

use rallypoint_harness::{GameServer, Lobby, MockServer, TcpPort, eventually, has_ipv6, skip};
use rallypoint_wire::{
    bloodmasters::{ClientsBuf, Echo, Info, Query, Reply, Rules, queries},
    session::ServerDatagram,
};

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
fn l12_checks_can_be_turned_off_and_networks_exempted() {
    let lobby = Lobby::with(&["checks.exempt=127.5.0.0/16", SEQUENTIAL]);
    let ports = ["127.5.0.1", "127.6.0.1"].map(TcpPort::closed);
    let open = TcpPort::open("127.6.0.1");
    lobby.register(&GameServer::named("exempt").tcp(ports[0].number()).from_ip("127.5.0.1"));
    lobby.register(&GameServer::named("refused").tcp(ports[1].number()).from_ip("127.6.0.1"));
    lobby.register(&GameServer::named("open").tcp(open.number()).from_ip("127.6.0.1"));
    lobby.wait_until_listed(&["exempt", "open"]);
    let lobby = Lobby::with(&["checks.enabled=false"]);
    lobby.register(&GameServer::named("unchecked").tcp(ports[1].number()).from_ip("127.6.0.1"));
    lobby.wait_until_listed(&["unchecked"]);
}

#[test]
fn l12_a_server_that_becomes_unreachable_leaves_the_list() {
    let lobby = Lobby::with(&["checks.keep=1s", "lobby.lease=2s"]);
    let port = TcpPort::open("127.0.0.1");
    let server = GameServer::named("brief").tcp(port.number());
    lobby.register(&server);
    lobby.wait_until_listed(&["brief"]);
    drop(port);
    eventually("it is removed although it continues to register", || {
        lobby.register(&server);
        lobby.names().is_empty()
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
fn l12_each_family_is_checked_separately() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::with(&[SEQUENTIAL]);
    let (v4, v6) = (TcpPort::open("127.0.0.1"), TcpPort::closed("::1"));
    let server = GameServer::named("half open");
    lobby.register(&server.clone().tcp(v6.number()).from_ip("::1"));
    lobby.register(&server.tcp(v4.number()));
    lobby.wait_until_listed(&["half open"]);
    let later = TcpPort::open("::1");
    lobby.register(&GameServer::named("later").tcp(later.number()).from_ip("::1"));
    lobby.wait_until_listed(&["half open", "later"]);
    assert_eq!(lobby.server("half open").unwrap().v6, None);
}

#[test]
fn l12_the_check_goes_to_the_address_the_registration_came_from() {
    let lobby = Lobby::with(&[SEQUENTIAL]);
    let port = TcpPort::open("127.5.5.5");
    let number = port.number();
    // The port of the other address is closed.
    lobby.register(&GameServer::named("elsewhere").tcp(number).from_ip("127.6.6.6"));
    lobby.register(&GameServer::named("there").tcp(number).from_ip("127.5.5.5"));
    lobby.wait_until_listed(&["there"]);
    assert_eq!(lobby.server("there").unwrap().v4, Some(([127, 5, 5, 5], number).into()));
}

#[test]
fn l12_a_udp_server_without_x_query_is_listed_at_once() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("udp"));
    lobby.settle();
    assert_eq!(lobby.names(), ["udp"]);
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

#[test]
fn e1_a_session_server_is_queried_at_the_port_it_names() {
    let lobby = Lobby::start();
    let info = |_, _: &[u8]| {
        let mut info = Vec::new();
        ServerDatagram::parse(&[0x80; 13]).unwrap().emit(&mut info);
        vec![info]
    };
    let server = MockServer::with_handler("127.0.0.1:0", info);
    let x_query = format!("session:{}", server.port());
    lobby.register(&GameServer::named("session").port(8_190).key("x-query", x_query));
    lobby.wait_until_listed(&["session"]);
    // After it is listed, it is queried again for its information.
    assert_eq!(server.received()[0], [0x80]);
}

#[test]
fn b7_a_reply_with_another_echo_is_ignored() {
    let lobby = Lobby::with(&["checks.timeout=300ms", SEQUENTIAL]);
    let liar = MockServer::with_handler("127.0.0.1:0", |_, datagram| {
        vec![bloodmasters_reply(Echo(query(datagram).echo.0.map(|byte| byte ^ 1)))]
    });
    let honest = MockServer::with_handler("127.0.0.1:0", |_, datagram| vec![bloodmasters_reply(query(datagram).echo)]);
    lobby.register(&GameServer::named("liar").port(liar.port()).key("x-query", "bloodmasters"));
    lobby.register(&GameServer::named("honest").port(honest.port()).key("x-query", "bloodmasters"));
    lobby.wait_until_listed(&["honest"]);
    assert_eq!(liar.received().len(), 1);
}

#[test]
fn l12_checks_per_address_are_limited() {
    let lobby = Lobby::with(&["checks.per_address=5"]);
    // Spoofed registrations claim many servers at one address.
    let targets: Vec<_> = (0..20).map(|_| MockServer::with_handler("127.0.0.1:0", |_, _| Vec::new())).collect();
    for target in &targets {
        lobby.register(&GameServer::named("spoofed").port(target.port()).key("x-query", "session"));
    }
    lobby.register(&GameServer::named("another address").from_ip("127.5.5.5"));
    lobby.settle();
    let checked = || targets.iter().filter(|target| !target.received().is_empty()).count();
    eventually("the limit of checks is used", || checked() == 5);
    assert_eq!(lobby.names(), ["another address"]);
}
