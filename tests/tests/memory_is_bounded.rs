//! The memory of a lobby stays within its bound, whatever registers and replies: twice `caps.memory` and 100 MB (W42).

use rallypoint_harness::{
    GameServer, Lobby, MockServer, QueryProtocol, connect, connect_with_minimal_buffers, eventually, http_get,
    list_request,
};
use rallypoint_query_proto::{Player, ServerInfo};
use rallypoint_wire::lobby::LobbyId;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    ops::Range,
    thread,
};

/// The cap in bytes, and the bound that follows from it.
const CAP: usize = 32 << 20;
const BOUND: usize = 2 * CAP + 100_000_000;

/// The least that a full lobby counts.
const FULL: usize = CAP / 4 * 3;

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

fn lobby() -> Lobby {
    let settings = [
        &format!("caps.memory={CAP}"),
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

/// Fills a lobby with such tables, changes all of them, and reads them in every way meanwhile. Besides, this many clients of each
/// kind send a request and never read.
fn assert_is_bounded_with(server: &GameServer, unread: usize) {
    let lobby = lobby();
    let mut clients = UnreadClients::default();
    let mut datagram = server.registration();
    // More than fit: an entry takes about 1,200 bytes and twice its data.
    let count = CAP / 4 * 5 / (1_200 + 2 * datagram.len());
    let burst = BURST / datagram.len();
    let rounds = 3u16;
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
                read_list(&lobby, LobbyId::from_bytes([0; 16]));
            }
            // Each of them holds another version.
            let registered = usize::from(players) * count + number;
            clients.connect(&lobby, unread * registered / (usize::from(rounds) * count));
        }
        read(&lobby);
        if players == 0 && repeats > 0 && registry_bytes(&lobby) <= FULL {
            repeats -= 1;
        } else {
            players += 1;
        }
    }
    let counted = registry_bytes(&lobby);
    assert!(counted > FULL, "the lobby is not full: {counted} bytes");
    let used = lobby.process().peak_memory();
    assert!(used <= BOUND, "{used} bytes, of which the lobby should use at most {BOUND}");
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
    let lobby = lobby();
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
            let list = (lobby.v4(), list_request(LobbyId::GANG_GARRISON_2));
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
            scope.spawn(|| read_list(lobby, LobbyId::GANG_GARRISON_2));
        }
        for path in ["/", "/?q=a", "/api/v1/servers", "/api/v1/servers?q=a"] {
            for _ in 0..2 {
                scope.spawn(move || http_get(lobby.http(), path));
            }
        }
    });
}

fn read_list(lobby: &Lobby, id: LobbyId) {
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
    assert_is_bounded_with(&with_texts(650), 0);
}

#[test]
fn w42_memory_is_bounded_with_the_longest_texts() {
    assert_is_bounded_with(&with_texts(3_900), 0);
}

#[test]
fn w42_memory_is_bounded_with_hundreds_of_clients_that_never_read() {
    assert_is_bounded_with(&with_texts(650), 120);
}

#[test]
fn w42_memory_is_bounded_with_small_registrations() {
    assert_is_bounded_with(&GameServer::named("x"), 0);
}

#[test]
fn w42_memory_is_bounded_with_replies_of_255_players() {
    assert_is_bounded_with_replies(QueryProtocol::Bloodmasters, "bloodmasters");
}

#[test]
fn w42_memory_is_bounded_with_session_replies_of_255_players() {
    assert_is_bounded_with_replies(QueryProtocol::Session, "session");
}
