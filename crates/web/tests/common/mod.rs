//! A lobby with its web server, at free ports, and a client that speaks just enough HTTP.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod browser;
pub mod responder;
pub mod schema;

use rallypoint_lobby::{LobbyOptions, LobbyService};
use rallypoint_web::{WebOptions, WebService, WebSources};
use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

/// How long a test waits for what must happen. It ends at once when it happens, so this is generous.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const LOBBY: LobbyId = LobbyId::GANG_GARRISON_2;

/// A lobby and its web server.
pub struct Site {
    pub lobby: LobbyService,
    pub web: WebService,
    pub runtime: tokio::runtime::Runtime,
    socket: UdpSocket,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Site {
    pub fn start() -> Self {
        Self::with(WebOptions::default())
    }

    pub fn with(options: WebOptions) -> Self {
        Self::of(options, |_| {})
    }

    pub fn of(options: WebOptions, set: impl FnOnce(&mut WebSources)) -> Self {
        Self::at(LobbyOptions::default(), options, set)
    }

    /// One that keeps its list on the disk.
    pub fn saving(options: WebOptions, dir: &std::path::Path, set: impl FnOnce(&mut WebSources)) -> Self {
        Self::at(LobbyOptions { data_dir: Some(dir.into()), ..LobbyOptions::default() }, options, set)
    }

    /// One that probes servers.
    pub fn probing() -> Self {
        Self::at(LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() }, WebOptions::default(), |_| {})
    }

    pub fn at(lobby: LobbyOptions, options: WebOptions, set: impl FnOnce(&mut WebSources)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let any = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let (lobby, web) = runtime.block_on(async {
            let lobby = LobbyOptions { listen: any.clone(), legacy: Vec::new(), ..lobby };
            let lobby = LobbyService::start(lobby, &tokio::runtime::Handle::current()).unwrap();
            let mut parts = WebSources::new(lobby.clone());
            set(&mut parts);
            (lobby, WebService::start(WebOptions { listen: any, ..options }, parts).unwrap())
        });
        Self { lobby, web, runtime, socket: UdpSocket::bind("127.0.0.1:0").unwrap() }
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
        self.socket.send_to(datagram, self.lobby.local_addrs().lobby[0]).unwrap();
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        ask(self.addr(), method, path, headers)
    }

    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Waits until an answer is as it should be.
    pub fn wait_for(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{path} is as it should be"), || Some(self.json(path)).filter(&is_so))
    }

    /// Registers some servers and waits until all are there.
    pub fn fill(&self, servers: &[Server<'_>]) -> Value {
        for server in servers {
            self.register(server);
        }
        self.wait_for("/api/v1/servers", |list| list["total"] == servers.len())
    }
}

/// A server that registers.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub number: u8,
    pub lobby: LobbyId,
    pub name: &'a [u8],
    pub occupancy: Occupancy,
    pub more: &'a [(&'a [u8], &'a [u8])],
}

impl<'a> Server<'a> {
    pub fn new(number: u8, name: &'a str) -> Self {
        let occupancy = Occupancy { players: 0, bots: 0, slots: 10, password: false };
        Self { number, lobby: LOBBY, name: name.as_bytes(), occupancy, more: &[] }
    }

    pub fn players(self, players: u16) -> Self {
        Self { occupancy: Occupancy { players, ..self.occupancy }, ..self }
    }

    pub fn datagram(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        table.push(b"name", self.name).unwrap();
        for (key, value) in self.more {
            table.push(key, value).unwrap();
        }
        let id = ServerId::from_bytes([self.number; 16]);
        let port = (8_000 + u16::from(self.number)).try_into().unwrap();
        let registration =
            Registration::new(id, self.lobby, Transport::Udp, port, self.occupancy, table.as_table()).unwrap();
        let mut datagram = Vec::new();
        registration.emit(&mut datagram);
        datagram
    }
}

impl Answer {
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

/// One request on a connection of its own.
pub fn ask(addr: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut tcp = connect(addr);
    write!(tcp, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(tcp, "{name}: {value}\r\n").unwrap();
    }
    tcp.write_all(b"\r\n").unwrap();
    read_answer(&mut BufReader::new(tcp), method == "HEAD").expect("an answer")
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let tcp = TcpStream::connect(addr).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp
}

/// An answer, unless the connection is closed before it.
pub fn read_answer(tcp: &mut impl BufRead, is_head: bool) -> Option<Answer> {
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
    let mut answer = Answer { status, headers, body: Vec::new() };
    let is_stream = answer.header("transfer-encoding") == Some("chunked");
    if !is_head && !is_stream && status != 204 && status != 304 {
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = vec![0; length];
        tcp.read_exact(&mut answer.body).unwrap();
    }
    Some(answer)
}

/// Waits until something is there.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// One who listens to events.
pub struct Listener {
    lines: BufReader<TcpStream>,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: Value,
}

impl Listener {
    pub fn new(addr: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut tcp = connect(addr);
        write!(tcp, "GET {path} HTTP/1.1\r\nhost: localhost\r\n").unwrap();
        for (name, value) in headers {
            write!(tcp, "{name}: {value}\r\n").unwrap();
        }
        tcp.write_all(b"\r\n").unwrap();
        let mut lines = BufReader::new(tcp);
        let answer = read_answer(&mut lines, false).expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")), "{answer:?}");
        Self { lines }
    }

    /// The next event; `None` at the end of the stream. Lines of the transfer coding look like no field of an event.
    pub fn next(&mut self) -> Option<Event> {
        let (mut id, mut name) = (String::new(), String::new());
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
