//! Servers are listed once the lobby could reach them.

mod common;

use common::{LIMIT, Lobby, eventually, options, registration};
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

fn checking() -> LobbyOptions {
    let mut options = options();
    options.registry.checks.timeout = Duration::from_millis(1_500);
    options.registry.checks.retry = Duration::from_secs(1);
    options.registry.checks.keep = Duration::from_secs(1);
    options
}

fn lobby() -> Lobby {
    Lobby::start(checking())
}

fn is_counted(lobby: &Lobby, outcome: RegistrationOutcome) {
    eventually(outcome.code(), || lobby.stats().outcome(outcome) > 0);
}

#[test]
fn l12_a_tcp_server_is_listed_when_its_port_is_open() {
    let lobby = lobby();
    let server = TcpListener::bind(common::any_v4()).unwrap();
    let port = server.local_addr().unwrap().port();
    lobby.send(&registration("open", port, Transport::Tcp, &[]));
    lobby.until_listed(&["open"]);
    let list = lobby.lists().lobby(&common::LOBBY);
    assert!(list.servers().next().unwrap().latency().is_some());
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::Listed), 0, "the datagram itself did not list it");
    lobby.shutdown();
}

#[test]
fn l12_a_tcp_server_that_cannot_be_reached_is_not_listed() {
    let lobby = lobby();
    // Nobody listens there now.
    let port = TcpListener::bind(common::any_v4()).unwrap().local_addr().unwrap().port();
    let datagram = registration("closed", port, Transport::Tcp, &[]);
    lobby.send(&datagram);
    is_counted(&lobby, RegistrationOutcome::Checking);
    eventually("the check failed", || lobby.stats().checks.unreachable == 1);
    assert_eq!(lobby.list(), [0; 4]);
    // Its owner opens the port.
    let _server = TcpListener::bind(("127.0.0.1", port)).unwrap();
    eventually("it is listed", || {
        lobby.send(&datagram);
        lobby.names() == ["closed"]
    });
    lobby.shutdown();
}

#[test]
fn l12_a_server_that_is_gone_is_unlisted_by_a_later_check() {
    let mut options = checking();
    // Verdicts are renewed when the lobby looks after the lease.
    options.registry.lease = Duration::from_secs(1);
    let lobby = Lobby::start(options);
    let mut events = lobby.subscribe();
    let server = TcpListener::bind(common::any_v4()).unwrap();
    let datagram = registration("brief", server.local_addr().unwrap().port(), Transport::Tcp, &[]);
    lobby.send(&datagram);
    lobby.until_listed(&["brief"]);
    drop(server);
    let mut gone = None;
    eventually("it is unlisted although it goes on registering", || {
        lobby.send(&datagram);
        if let Ok(Event::Unlisted(_, why)) = events.try_recv() {
            gone = Some(why);
        }
        gone.is_some()
    });
    assert_eq!(gone, Some(UnlistReason::Unreachable));
    lobby.shutdown();
}

/// Answers datagrams until it is dropped.
struct Responder {
    addr: SocketAddr,
    asked: mpsc::Receiver<Vec<u8>>,
}

impl Responder {
    fn start(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(common::any_v4()).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let addr = socket.local_addr().unwrap();
        let (told, asked) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                for datagram in answer(&buffer[..length]) {
                    socket.send_to(&datagram, from).unwrap();
                }
                if told.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { addr, asked }
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
fn l12_a_bloodmasters_query_decides() {
    let lobby = lobby();
    // The first query is lost; the second gets a wrong answer, nonsense, and then the right one.
    let lost = std::sync::atomic::AtomicBool::new(true);
    let server = Responder::start(move |datagram| {
        let query = queries(datagram).next().expect("a query");
        if lost.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return Vec::new();
        }
        let wrong = Echo(query.echo.0.map(|byte| byte ^ 1));
        vec![bloodmasters_reply(wrong), b"nonsense".to_vec(), bloodmasters_reply(query.echo)]
    });
    let port = server.addr.port();
    lobby.send(&registration("blood", port, Transport::Udp, &[("x-query", b"bloodmasters")]));
    lobby.until_listed(&["blood"]);
    let echoes: Vec<_> =
        server.asked.try_iter().map(|datagram| queries(&datagram).next().map(|query| query.echo)).collect();
    assert!(echoes.len() >= 2, "asked again after the first was lost");
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::Listed), 0);
    lobby.shutdown();
}

#[test]
fn l12_a_wrong_echo_is_no_answer() {
    let lobby = lobby();
    let server = Responder::start(|datagram| {
        let query = queries(datagram).next().expect("a query");
        vec![bloodmasters_reply(Echo(query.echo.0.map(|byte| byte ^ 1)))]
    });
    let query = format!("bloodmasters:{}", server.addr.port());
    lobby.send(&registration("false", 8_190, Transport::Udp, &[("x-query", query.as_bytes())]));
    eventually("the check failed", || lobby.stats().checks.unreachable == 1);
    assert_eq!(lobby.list(), [0; 4]);
    let echoes: Vec<_> = server.asked.try_iter().collect();
    assert!(!echoes.is_empty() && echoes.iter().all(|datagram| datagram.len() == 7), "b10: never an empty datagram");
    lobby.shutdown();
}

#[test]
fn l12_a_session_query_decides() {
    let lobby = lobby();
    let server = Responder::start(|datagram| {
        assert_eq!(ClientDatagram::parse(datagram), Ok(ClientDatagram::Query));
        let mut info = Vec::new();
        ServerDatagram::parse(&[0x80; 13]).unwrap().emit(&mut info);
        vec![b"nonsense".to_vec(), info]
    });
    let query = format!("session:{}", server.addr.port());
    lobby.send(&registration("session", 8_190, Transport::Udp, &[("x-query", query.as_bytes())]));
    lobby.until_listed(&["session"]);
    let asked: Vec<_> = server.asked.try_iter().collect();
    assert_eq!(asked, [[0x80]]);
    lobby.shutdown();
}
