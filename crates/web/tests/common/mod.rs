//! A lobby with its web server on free ports, and a minimal HTTP client.
#![allow(dead_code, reason = "each test file uses only some of these helpers")]

pub mod browser;
pub mod game_server;
pub mod schema;

use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
use rallypoint_web::{WebOptions, WebService, WebSources};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

/// Maximum time to wait for an expected event. Waiting ends with the event, so that this can be generous.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub const LOBBY: ListId = ListId::GANG_GARRISON_2;

/// A running lobby and its web server.
pub struct Site {
    pub lobby: LobbyService,
    pub web: WebService,
    pub runtime: tokio::runtime::Runtime,
    socket: UdpSocket,
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Site {
    pub fn start() -> Self {
        Self::with_options(WebOptions::default())
    }

    pub fn with_options(options: WebOptions) -> Self {
        Self::with_sources(options, |_| {})
    }

    pub fn with_sources(options: WebOptions, configure: impl FnOnce(&mut WebSources)) -> Self {
        Self::with_lobby(LobbyOptions::default(), options, configure)
    }

    /// A site whose lobby saves its list in this directory.
    pub fn with_data_dir(options: WebOptions, dir: &std::path::Path, configure: impl FnOnce(&mut WebSources)) -> Self {
        Self::with_lobby(LobbyOptions { data_dir: Some(dir.into()), ..LobbyOptions::default() }, options, configure)
    }

    /// A site whose lobby probes servers.
    pub fn with_probing() -> Self {
        Self::with_lobby(LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() }, WebOptions::default(), |_| {})
    }

    pub fn with_lobby(lobby: LobbyOptions, options: WebOptions, configure: impl FnOnce(&mut WebSources)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let any = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let (lobby, web) = runtime.block_on(async {
            let lobby = LobbyOptions { doors: DoorAddrs::lobby(any.clone()), ..lobby };
            let lobby = LobbyService::start(lobby, &tokio::runtime::Handle::current()).unwrap();
            let mut sources = WebSources::new(lobby.clone());
            configure(&mut sources);
            (lobby, WebService::start(WebOptions { listen: any, ..options }, sources).unwrap())
        });
        Self { lobby, web, runtime, socket: UdpSocket::bind("127.0.0.1:0").unwrap() }
    }

    pub fn lobby_addr(&self) -> SocketAddr {
        self.lobby.local_addrs()[&rallypoint_lobby_proto::doors::LOBBY][0]
    }

    pub fn addr(&self) -> SocketAddr {
        self.web.local_addrs()[0]
    }

    /// Registers a UDP server.
    pub fn register(&self, server: &Server<'_>) {
        self.send(&server.datagram());
    }

    pub fn unregister(&self, number: u8) {
        let mut datagram = Vec::new();
        Unregister { server_id: ServerId::from_bytes([number; 16]) }.emit(&mut datagram);
        self.send(&datagram);
    }

    pub fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.lobby_addr()).unwrap();
    }

    pub fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[])
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        request(self.addr(), method, path, headers)
    }

    pub fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {response:?}");
        response.json()
    }

    /// Waits until the JSON at this path satisfies a predicate.
    pub fn wait_for(&self, path: &str, predicate: impl Fn(&Value) -> bool) -> Value {
        wait_until(&format!("{path} satisfies the predicate"), || Some(self.json(path)).filter(&predicate))
    }

    /// Waits until a path is served with this status.
    pub fn wait_for_status(&self, path: &str, status: u16) {
        wait_until(&format!("{path} is {status}"), || (self.get(path).status == status).then_some(()));
    }

    /// Registers servers and waits until the API and the list reply consist of them. The API may be ahead: it follows the
    /// events of the registry, while list replies are published a moment later.
    pub fn register_all(&self, servers: &[Server<'_>]) -> Value {
        for server in servers {
            self.register(server);
        }
        let list = self.wait_for("/api/v1/servers", |list| list["total"] == servers.len());
        wait_until("the list reply has all servers", || {
            let lists = self.lobby.lists().snapshot();
            let listed: usize = lists.lists().map(|(_, list)| list.servers().count()).sum();
            (listed == servers.len()).then_some(())
        });
        list
    }
}

/// A game server to register, with its number as ID and 8000 plus its number as port.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub number: u8,
    pub list: ListId,
    pub name: &'a [u8],
    pub occupancy: Occupancy,
    pub keys: &'a [(&'a [u8], &'a [u8])],
}

/// Keys of a server whose JSON has more than 4 kB, about as much as the JSON of any server.
pub const LARGE: &[(&[u8], &[u8])] = &[
    (b"k1", &[b'x'; 250]),
    (b"k2", &[b'x'; 250]),
    (b"k3", &[b'x'; 250]),
    (b"k4", &[b'x'; 250]),
    (b"k5", &[b'x'; 250]),
    (b"k6", &[b'x'; 250]),
    (b"k7", &[b'x'; 250]),
    (b"k8", &[b'x'; 250]),
    (b"k9", &[b'x'; 250]),
    (b"ka", &[b'x'; 250]),
    (b"kb", &[b'x'; 250]),
    (b"kc", &[b'x'; 250]),
    (b"kd", &[b'x'; 250]),
    (b"ke", &[b'x'; 250]),
    (b"kf", &[b'x'; 250]),
];

impl<'a> Server<'a> {
    pub fn large(number: u8, name: &'a str) -> Self {
        Self { keys: LARGE, ..Self::new(number, name) }
    }

    pub fn new(number: u8, name: &'a str) -> Self {
        let occupancy = Occupancy { players: 0, bots: 0, slots: 10, password: false };
        Self { number, list: LOBBY, name: name.as_bytes(), occupancy, keys: &[] }
    }

    pub fn players(self, players: u16) -> Self {
        Self { occupancy: Occupancy { players, ..self.occupancy }, ..self }
    }

    pub fn datagram(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        table.push(b"name", self.name).unwrap();
        for (key, value) in self.keys {
            table.push(key, value).unwrap();
        }
        let id = ServerId::from_bytes([self.number; 16]);
        let port = (8_000 + u16::from(self.number)).try_into().unwrap();
        let registration =
            Registration::new(id, self.list, Transport::Udp, port, self.occupancy, table.as_table()).unwrap();
        let mut datagram = Vec::new();
        registration.emit(&mut datagram);
        datagram
    }
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request on a new connection and reads the response.
pub fn request(addr: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut tcp = connect(addr);
    write!(tcp, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(tcp, "{name}: {value}\r\n").unwrap();
    }
    tcp.write_all(b"\r\n").unwrap();
    read_response(&mut BufReader::new(tcp), method == "HEAD").expect("a response")
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let tcp = TcpStream::connect(addr).unwrap();
    tcp.set_read_timeout(Some(TIMEOUT)).unwrap();
    tcp
}

/// Reads a response; `None` if the connection is closed first. The body of a chunked response is left unread.
pub fn read_response(tcp: &mut impl BufRead, is_head: bool) -> Option<Response> {
    let mut line = String::new();
    tcp.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        tcp.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response { status, headers, body: Vec::new() };
    let is_stream = response.header("transfer-encoding") == Some("chunked");
    if !is_head && !is_stream && status != 204 && status != 304 {
        let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
        response.body = vec![0; length];
        tcp.read_exact(&mut response.body).unwrap();
    }
    Some(response)
}

/// Polls until there is a value; panics after [`TIMEOUT`].
pub fn wait_until<T>(condition: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "timed out waiting until {condition}");
        std::thread::yield_now();
    }
}

/// A client of the event stream.
pub struct EventStream {
    lines: BufReader<TcpStream>,
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: Value,
}

impl EventStream {
    pub fn new(addr: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut tcp = connect(addr);
        write!(tcp, "GET {path} HTTP/1.1\r\n").unwrap();
        let has_host = headers.iter().any(|(name, _)| *name == "host");
        for (name, value) in headers.iter().chain((!has_host).then_some(&("host", "localhost"))) {
            write!(tcp, "{name}: {value}\r\n").unwrap();
        }
        tcp.write_all(b"\r\n").unwrap();
        let mut lines = BufReader::new(tcp);
        let response = read_response(&mut lines, false).expect("a response");
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("text/event-stream")),
            "{response:?}"
        );
        Self { lines }
    }

    /// The next event; `None` at the end of the stream. Chunk sizes of the transfer coding are skipped, like any line that is
    /// not an event field.
    pub fn next(&mut self) -> Option<Event> {
        let mut id = String::new();
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = value.into(),
                Some(("event", value)) => name = value.into(),
                Some(("data", value)) => return Some(Event { id, name, data: serde_json::from_str(value).unwrap() }),
                _ if line == "0\r\n" => return None,
                _ => {}
            }
        }
    }
}
