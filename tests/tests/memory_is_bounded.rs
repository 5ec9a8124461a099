//! The memory of a lobby stays within its bound, whatever registers and replies: twice `caps.memory` and 100 MB (W42).

use rallypoint_harness::{
    GameServer, Lobby, MockServer, QueryProtocol, connect, connect_with_minimal_buffers, eventually, http_get,
    list_request,
};
use rallypoint_netsim::is_full;
use rallypoint_query_proto::{Player, ServerInfo};
use rallypoint_wire::lobby::ListId;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    ops::Range,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

/// The cap in bytes, unless a test sets another.
const CAP: usize = 32 << 20;

/// Bytes of datagrams that certainly fit into the receive buffer.
const BURST: usize = 32 << 10;

/// Where the server ID, the port and the number of players are in a registration.
const SERVER_ID: Range<usize> = 16..32;
const PORT: Range<usize> = 49..51;
const PLAYERS: Range<usize> = 53..55;

/// The texts that pages show. A byte 0x80 takes three bytes as a text.
const TEXTS: [&str; 5] = ["name", "map", "game", "game_short", "game_ver"];

/// The longest responses of the web server, and the event stream.
const LONG_RESPONSES: [&str; 4] =
    ["/api/v1/servers", "/?sort=name", "/api/v1/servers?sort=map&limit=500", "/api/v1/events"];

/// The bound that follows from a cap.
const fn bound(cap: usize) -> usize {
    2 * cap + 100_000_000
}

fn lobby(cap: usize) -> Lobby {
    let settings = [
        &format!("caps.memory={cap}"),
        "limits.exempt=[\"127.0.0.0/8\"]",
        "lobby.lease=1h",
        "web.exempt=[\"127.0.0.1/32\"]",
        // A log of all changes would be larger than what is measured, in the memory of this test.
        "log.level=warn",
    ];
    Lobby::with(&settings)
}

/// A server with a table of about this many bytes: the texts that pages show.
fn with_texts(size: usize) -> GameServer {
    TEXTS.iter().fold(GameServer::named(""), |server, key| server.key(key, vec![0x80; size / TEXTS.len() - 12]))
}

/// What a lobby is filled with, and how it is used.
struct Load {
    cap: usize,
    server: GameServer,
    /// Number of times that all servers change.
    rounds: u16,
    /// Number of threads that read lists and pages all the time.
    readers: usize,
    /// Number of clients of each kind that send a request and never read.
    unread: usize,
}

impl Load {
    fn of(server: GameServer) -> Self {
        Self { cap: CAP, server, rounds: 3, readers: 0, unread: 0 }
    }

    /// Fills a lobby, changes all servers, and reads them in every way meanwhile.
    fn assert_is_bounded(&self) {
        let lobby = lobby(self.cap);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..self.readers {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        read(&lobby);
                    }
                });
            }
            self.change_all(&lobby);
            is_over.store(true, Relaxed);
        });
        let counted = registry_bytes(&lobby);
        assert!(counted > self.full(), "the lobby is not full: {counted} bytes");
        let used = lobby.process().peak_memory();
        assert!(used <= bound(self.cap), "{used} bytes, of which the lobby should use at most {}", bound(self.cap));
    }

    /// The least that a full lobby counts.
    fn full(&self) -> usize {
        self.cap / 4 * 3
    }

    fn change_all(&self, lobby: &Lobby) {
        let &Self { cap, rounds, unread, .. } = self;
        let mut clients = UnreadClients::default();
        let mut datagram = self.server.registration();
        // More than fit: an entry takes about 1,200 bytes and twice its data.
        let count = cap / 4 * 5 / (1_200 + 2 * datagram.len());
        let burst = BURST / datagram.len();
        // A busy machine loses datagrams: what is not listed yet registers again.
        let mut repeats = 20;
        let mut players = 0;
        while players < rounds {
            datagram[PLAYERS].copy_from_slice(&players.to_be_bytes());
            for number in 0..count {
                datagram[SERVER_ID].copy_from_slice(&(number as u128).to_be_bytes());
                datagram[PORT].copy_from_slice(&(1 + number as u16).to_be_bytes());
                // In 256 networks, so that none of them reaches its share.
                let [_, _, high, low] = (number as u32).to_be_bytes();
                lobby.send(Ipv4Addr::new(127, 16, low, 1 + high), &datagram);
                if number % burst == 0 {
                    // Some datagrams may be lost. The lobby receives those of a burst before it replies, or soon after.
                    read_list(lobby, ListId::from_bytes([0; 16]));
                }
                // Each of them holds another version.
                let registered = usize::from(players) * count + number;
                clients.connect(lobby, unread * registered / (usize::from(rounds) * count));
            }
            read(lobby);
            if players == 0 && repeats > 0 && registry_bytes(lobby) <= self.full() {
                repeats -= 1;
            } else {
                players += 1;
            }
        }
    }
}

/// Registers a thousand servers that reply to queries with 255 players.
fn assert_is_bounded_with_replies(protocol: QueryProtocol, x_query: &str) {
    /// These replies, at 50 kB each, would take more than this many bytes.
    const MAX_GROWTH: usize = 40_000_000;
    /// Addresses, each in a network of its own, and servers of each: as many queries as an address may cause at once.
    const ADDRESSES: u8 = 32;
    const SERVERS: u16 = 32;
    let player = Player { name: "\u{20ac}".repeat(10), ..Player::default() };
    let name = Some("many players".into());
    let info = ServerInfo { name, player_list: Some(vec![player; 255]), players: Some(255), ..ServerInfo::default() };
    let lobby = lobby(CAP);
    let empty = lobby.process().peak_memory();
    for network in 0..ADDRESSES {
        let ip = format!("127.17.{network}.1");
        let replies = MockServer::with_info(&format!("{ip}:0"), protocol, &info);
        let port = replies.port();
        for number in 0..SERVERS {
            let server = GameServer::named("many players").from_ip(&ip).port(1 + number);
            lobby.register(&server.key("x-query", format!("{x_query}:{port}")));
        }
        eventually("most of the servers are queried", || replies.received().len() >= usize::from(SERVERS) / 2);
    }
    read(&lobby);
    let growth = lobby.process().peak_memory() - empty;
    assert!(growth <= MAX_GROWTH, "{growth} bytes more, of which the replies should take at most {}", CAP / 8);
}

/// Clients that request lists, pages and events, and never read.
#[derive(Default)]
struct UnreadClients {
    open: Vec<TcpStream>,
    /// Number of clients of each kind.
    count: usize,
}

impl UnreadClients {
    /// Adds clients, each of a network of its own, until there are this many of each kind. Those that the lobby disconnects meanwhile
    /// are not replaced.
    fn connect(&mut self, lobby: &Lobby, count: usize) {
        while self.count < count {
            let list = (lobby.v4(), list_request(ListId::GANG_GARRISON_2));
            let get = |path| (lobby.http(), format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes());
            for (to, request) in [list].into_iter().chain(LONG_RESPONSES.map(get)) {
                let [.., high, low] = self.open.len().to_be_bytes();
                let mut client = connect_with_minimal_buffers(Ipv4Addr::new(127, 64 + high, low, 1).into(), to)
                    .expect("the lobby accepts connections");
                let _ = client.write_all(&request);
                self.open.push(client);
            }
            self.count += 1;
        }
    }
}

/// Reads the lists and pages, several of each at the same time.
fn read(lobby: &Lobby) {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| read_list(lobby, ListId::GANG_GARRISON_2));
        }
        for path in ["/", "/?q=a", "/api/v1/servers", "/api/v1/servers?q=a"] {
            for _ in 0..2 {
                scope.spawn(move || http_get(lobby.http(), path));
            }
        }
    });
}

fn read_list(lobby: &Lobby, id: ListId) {
    let mut stream = connect(lobby.v4());
    stream.write_all(&list_request(id)).unwrap();
    // A list that is outdated before it is read may be cut off.
    let _ = stream.read_to_end(&mut Vec::new());
}

/// The bytes that the lobby counts towards its cap.
fn registry_bytes(lobby: &Lobby) -> usize {
    let metrics = http_get(lobby.http(), "/metrics").1;
    let line = metrics.lines().find_map(|line| line.strip_prefix("rallypoint_registry_bytes "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a metric")
}

#[test]
fn w42_memory_is_bounded_with_texts_that_grow_when_they_are_shown() {
    Load::of(with_texts(650)).assert_is_bounded();
}

#[test]
fn w42_memory_is_bounded_with_the_longest_texts() {
    Load::of(with_texts(3_900)).assert_is_bounded();
}

#[test]
fn w42_memory_is_bounded_while_long_registrations_change_all_the_time() {
    // What readers hold is as much after four rounds as later.
    let rounds = if is_full() { 8 } else { 4 };
    Load { cap: 2 * CAP, rounds, readers: 2, ..Load::of(with_texts(3_900)) }.assert_is_bounded();
}

#[test]
fn w42_memory_is_bounded_with_hundreds_of_clients_that_never_read() {
    Load { unread: 120, ..Load::of(with_texts(650)) }.assert_is_bounded();
}

#[test]
fn w42_memory_is_bounded_with_small_registrations() {
    Load::of(GameServer::named("x")).assert_is_bounded();
}

#[test]
fn w42_memory_is_bounded_with_replies_of_255_players() {
    assert_is_bounded_with_replies(QueryProtocol::Bloodmasters, "bloodmasters");
}

#[test]
fn w42_memory_is_bounded_with_session_replies_of_255_players() {
    assert_is_bounded_with_replies(QueryProtocol::Session, "session");
}
