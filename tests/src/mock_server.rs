//! Ports of game servers: open, closed, and answering queries.

use rallypoint_machine::Machine;
pub use rallypoint_query_proto::Protocol as QueryProtocol;
use rallypoint_query_proto::{Extension, Player, Responder, ResponderConfig, ServerInfo, Team};
use socket2::{Domain, Socket, Type};
use std::{
    collections::HashSet,
    mem,
    net::{SocketAddr, UdpSocket},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

/// A bound TCP port: it refuses connections until it listens.
#[derive(Debug)]
pub struct TcpPort(Socket);

impl TcpPort {
    /// A free port that refuses connections.
    ///
    /// # Panics
    /// If `ip` is not an address of this machine.
    #[must_use]
    pub fn closed(ip: &str) -> Self {
        let addr = SocketAddr::new(ip.parse().expect("an IP address"), 0);
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None).expect("a socket");
        socket.bind(&addr.into()).expect("an address of this machine");
        Self(socket)
    }

    /// A free port that accepts connections.
    #[must_use]
    pub fn open(ip: &str) -> Self {
        let port = Self::closed(ip);
        port.listen();
        port
    }

    /// Accepts connections from now on.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn listen(&self) {
        self.0.listen(128).expect("a bound socket can listen");
    }

    /// The port number.
    ///
    /// # Panics
    /// Never: a bound socket has one.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.0.local_addr().ok().and_then(|addr| addr.as_socket()).expect("a bound socket has an address").port()
    }
}

/// Address of a UDP port that was free a moment ago. Another program may take it, but hardly within one test.
///
/// # Panics
/// If there is no free port.
#[must_use]
pub fn closed_udp_port() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("a bound socket has an address").to_string()
}

/// Timeout for queries of which some stay unanswered: enough for an answer on a busy machine, and short for the test.
pub const SHORT_TIMEOUT: &str = "1500ms";

/// A datagram and its sender.
type Received = (SocketAddr, Vec<u8>);

/// A game server that answers queries over UDP until the test ends.
#[derive(Debug)]
pub struct MockServer {
    /// Address it answers at.
    pub addr: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl MockServer {
    /// Answers on a free port of 127.0.0.1 with [`sample_info`].
    #[must_use]
    pub fn new(protocol: QueryProtocol) -> Self {
        Self::with_info("127.0.0.1:0", protocol, &sample_info())
    }

    /// Answers at `addr` with `info`.
    #[must_use]
    pub fn with_info(addr: &str, protocol: QueryProtocol, info: &ServerInfo) -> Self {
        Self::with_handler(addr, answer_with(protocol, info))
    }

    /// Ignores the first datagram and answers all later ones.
    #[must_use]
    pub fn ignoring_the_first(protocol: QueryProtocol, info: &ServerInfo) -> Self {
        let mut answer = answer_with(protocol, info);
        let mut has_received = false;
        Self::with_handler("127.0.0.1:0", move |from, datagram| {
            if mem::replace(&mut has_received, true) { answer(from, datagram) } else { Vec::new() }
        })
    }

    /// Receives and never answers.
    #[must_use]
    pub fn silent() -> Self {
        Self::with_handler("127.0.0.1:0", |_, _| Vec::new())
    }

    /// Answers with a datagram of no known protocol.
    #[must_use]
    pub fn malformed() -> Self {
        Self::with_handler("127.0.0.1:0", |_, _| vec![b"\xf0nonsense".to_vec()])
    }

    /// Answers each datagram at `addr` with the datagrams that `answer` returns.
    ///
    /// # Panics
    /// If `addr` cannot be bound.
    pub fn with_handler(
        addr: &str,
        mut answer: impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(addr).expect("a free port of this machine");
        let addr = socket.local_addr().expect("a bound socket has an address");
        let server = Self { addr, received: Arc::default() };
        let received = server.received.clone();
        thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                lock(&received).push((from, buffer[..length].to_vec()));
                for datagram in answer(from, &buffer[..length]) {
                    // The client may have closed its socket.
                    let _ = socket.send_to(&datagram, from);
                }
            }
        });
        server
    }

    /// The port it answers at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Its address as text.
    #[must_use]
    pub fn text(&self) -> String {
        self.addr.to_string()
    }

    /// All datagrams received so far.
    #[must_use]
    pub fn received(&self) -> Vec<Vec<u8>> {
        lock(&self.received).iter().map(|(_, datagram)| datagram.clone()).collect()
    }

    /// Number of addresses that sent a datagram of this kind. A lobby has a socket for each probe, so that this is the number of probes,
    /// however often each of them repeats its datagrams.
    pub fn probes(&self, is_of_kind: impl Fn(&[u8]) -> bool) -> usize {
        let received = lock(&self.received);
        let of_kind = received.iter().filter(|(_, datagram)| is_of_kind(datagram));
        of_kind.map(|(from, _)| from).collect::<HashSet<_>>().len()
    }

    /// Asserts that it was probed, and received no empty datagram: one makes real servers stop answering (B10).
    ///
    /// # Panics
    /// If that is not so.
    #[track_caller]
    pub fn assert_received_no_empty_datagram(&self) {
        let received = lock(&self.received);
        let has_empty = received.iter().any(|(_, datagram)| datagram.is_empty());
        assert!(!received.is_empty() && !has_empty, "{received:?}");
    }
}

/// Server information with a value in every field that the command line shows.
#[must_use]
pub fn sample_info() -> ServerInfo {
    let some = |text: &str| Some(text.to_owned());
    let player = |name: &str, team, ping| Player {
        name: name.into(),
        team: Some(team),
        rank: Some(team),
        ping_ms: Some(ping),
        ..Player::default()
    };
    ServerInfo {
        name: some("Bacon Town"),
        description: some("Friendly people"),
        game: some("gg2"),
        game_name: some("Gang Garrison 2"),
        map: some("ctf_truefort"),
        version: some("292"),
        website: some("http://example.org/"),
        extensions: [(QueryProtocol::Session, Extension::from([("version", 292.into())]))].into(),
        players: Some(2),
        max_players: Some(24),
        tags: vec!["beginners".into()],
        teams: vec![
            Team { id: 1, name: "RED".into(), ranked: true, color: [204, 51, 51] },
            Team { id: 2, name: "BLU".into(), ranked: true, color: [51, 102, 204] },
        ],
        player_list: Some(vec![player("Ada", 1, 35), player("Grace", 2, 60)]),
        ..ServerInfo::default()
    }
}

fn answer_with(
    protocol: QueryProtocol,
    info: &ServerInfo,
) -> impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + use<> {
    let config = ResponderConfig { protocols: vec![protocol], ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, info).expect("information that fits into an answer");
    move |from, datagram| {
        let now = Instant::now();
        responder.handle_datagram(now, from, datagram);
        let mut answers = Vec::new();
        let mut bytes = Vec::new();
        while let Some(sent) = responder.poll_transmit(now, &mut bytes) {
            answers.push(bytes[bytes.len() - sent.len..].to_vec());
        }
        answers
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
