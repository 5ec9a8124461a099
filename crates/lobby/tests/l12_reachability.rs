//! Servers are listed once a check has reached them.

use crate::common;

use common::{Lobby, TIMEOUT, eventually, options, registration};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::{Event, RegistrationOutcome, UnlistReason};
use rallypoint_wire::{
    bloodmasters::{ClientsBuf, Echo, Info, Reply, Rules, queries},
    lobby::Transport,
    session::{ClientDatagram, ServerDatagram},
};
use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::mpsc,
    time::Duration,
};

/// Options with short times for checks.
fn check_options() -> LobbyOptions {
    let mut options = options();
    options.registry.checks.timeout = Duration::from_millis(1_500);
    options.registry.checks.retry = Duration::from_secs(1);
    options.registry.checks.keep = Duration::from_secs(1);
    options
}

fn lobby() -> Lobby {
    Lobby::start(check_options())
}

fn wait_for_outcome(lobby: &Lobby, outcome: RegistrationOutcome) {
    eventually(outcome.code(), || lobby.stats().outcome(outcome) > 0);
}

#[test]
fn l12_a_tcp_server_is_listed_when_its_port_is_open() {
    let lobby = lobby();
    let server = TcpListener::bind(common::any_v4()).unwrap();
    let port = server.local_addr().unwrap().port();
    lobby.send(&registration("open", port, Transport::Tcp, &[]));
    lobby.wait_until_listed(&["open"]);
    let list = lobby.lists().list(&common::LOBBY);
    assert!(list.servers().next().unwrap().latency().is_some());
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::Listed), 0, "the check lists it, not the datagram");
    lobby.shutdown();
}

#[test]
fn l12_a_tcp_server_that_cannot_be_reached_is_not_listed() {
    let lobby = lobby();
    // The port is closed again.
    let port = TcpListener::bind(common::any_v4()).unwrap().local_addr().unwrap().port();
    let datagram = registration("closed", port, Transport::Tcp, &[]);
    lobby.send(&datagram);
    wait_for_outcome(&lobby, RegistrationOutcome::Checking);
    eventually("the check failed", || lobby.stats().checks.unreachable == 1);
    assert_eq!(lobby.list(), [0; 4]);
    // The owner opens the port.
    let _server = TcpListener::bind(("127.0.0.1", port)).unwrap();
    eventually("the server is listed", || {
        lobby.send(&datagram);
        lobby.names() == ["closed"]
    });
    lobby.shutdown();
}

fn unlist_reason(event: &Event) -> Option<UnlistReason> {
    match event {
        Event::Unlisted(_, reason) => Some(*reason),
        _ => None,
    }
}

#[test]
fn l12_a_server_that_a_later_check_cannot_reach_is_unlisted() {
    let mut options = check_options();
    // An outdated check is repeated when the registry examines the lease, so the lease has to be short.
    options.registry.lease = Duration::from_secs(1);
    let lobby = Lobby::start(options);
    let mut events = lobby.subscribe();
    let server = TcpListener::bind(common::any_v4()).unwrap();
    let datagram = registration("brief", server.local_addr().unwrap().port(), Transport::Tcp, &[]);
    lobby.send(&datagram);
    lobby.wait_until_listed(&["brief"]);
    drop(server);
    let mut unlisted = None;
    eventually("the server is unlisted although it continues to register", || {
        lobby.send(&datagram);
        while let Ok(batch) = events.try_recv() {
            unlisted = unlisted.or(batch.iter().find_map(unlist_reason));
        }
        unlisted.is_some()
    });
    assert_eq!(unlisted, Some(UnlistReason::Unreachable));
    lobby.shutdown();
}

/// Replies to datagrams until it is dropped.
struct Responder {
    addr: SocketAddr,
    /// The datagrams received.
    received: mpsc::Receiver<Vec<u8>>,
}

impl Responder {
    fn start(reply: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(common::any_v4()).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let addr = socket.local_addr().unwrap();
        let (sender, received) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                for datagram in reply(&buffer[..length]) {
                    socket.send_to(&datagram, from).unwrap();
                }
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { addr, received }
    }
}

fn bloodmasters_reply(echo: Echo) -> Vec<u8> {
    let info = Info { title: b"Mayan night", ..Info::default() };
    let clients = ClientsBuf::new();
    let mut reply = Vec::new();
    Reply::new(echo, info, Rules::default(), clients.as_clients(), b"test").unwrap().emit(&mut reply);
    reply
}

#[test]
fn l12_a_server_with_x_query_bloodmasters_is_listed_when_it_replies() {
    let lobby = lobby();
    // The first query is lost. The second gets a reply with a wrong echo, an invalid datagram, and then the correct reply.
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let server = Responder::start(move |datagram| {
        let query = queries(datagram).next().expect("a query");
        if is_first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return Vec::new();
        }
        let wrong = Echo(query.echo.0.map(|byte| byte ^ 1));
        vec![bloodmasters_reply(wrong), b"nonsense".to_vec(), bloodmasters_reply(query.echo)]
    });
    let port = server.addr.port();
    lobby.send(&registration("blood", port, Transport::Udp, &[("x-query", b"bloodmasters")]));
    lobby.wait_until_listed(&["blood"]);
    let echoes: Vec<_> =
        server.received.try_iter().map(|datagram| queries(&datagram).next().map(|query| query.echo)).collect();
    assert!(echoes.len() >= 2, "the query is repeated after the first was lost");
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::Listed), 0);
    lobby.shutdown();
}

#[test]
fn l12_a_reply_with_a_wrong_echo_is_ignored() {
    let lobby = lobby();
    let server = Responder::start(|datagram| {
        let query = queries(datagram).next().expect("a query");
        vec![bloodmasters_reply(Echo(query.echo.0.map(|byte| byte ^ 1)))]
    });
    let query = format!("bloodmasters:{}", server.addr.port());
    lobby.send(&registration("false", 8_190, Transport::Udp, &[("x-query", query.as_bytes())]));
    eventually("the check failed", || lobby.stats().checks.unreachable == 1);
    assert_eq!(lobby.list(), [0; 4]);
    let queries: Vec<_> = server.received.try_iter().collect();
    assert!(!queries.is_empty() && queries.iter().all(|datagram| datagram.len() == 7), "b10: never an empty datagram");
    lobby.shutdown();
}

#[test]
fn l12_a_server_with_x_query_session_is_listed_when_it_replies() {
    let lobby = lobby();
    let server = Responder::start(|datagram| {
        assert_eq!(ClientDatagram::parse(datagram), Ok(ClientDatagram::Query));
        let mut info = Vec::new();
        ServerDatagram::parse(&[0x80; 13]).unwrap().emit(&mut info);
        vec![b"nonsense".to_vec(), info]
    });
    let query = format!("session:{}", server.addr.port());
    lobby.send(&registration("session", 8_190, Transport::Udp, &[("x-query", query.as_bytes())]));
    lobby.wait_until_listed(&["session"]);
    let received: Vec<_> = server.received.try_iter().collect();
    assert_eq!(received, [[0x80]]);
    lobby.shutdown();
}
