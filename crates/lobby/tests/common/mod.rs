//! Shared by the tests of this directory: a lobby on loopback, and clients for it.
#![allow(dead_code, reason = "each test uses some of it")]

pub mod game_server;

use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
use rallypoint_lobby_proto::doors::{self, LEGACY};
use rallypoint_wire::lobby::{
    ListId, ListRequest, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister, blocks,
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    ops::Deref,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

pub const LOBBY: ListId = ListId::GANG_GARRISON_2;

/// Time after which a test fails. Every operation takes less, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A lobby, and the runtime that serves it.
pub struct Lobby {
    pub service: LobbyService,
    pub runtime: Runtime,
}

impl Deref for Lobby {
    type Target = LobbyService;

    fn deref(&self) -> &LobbyService {
        &self.service
    }
}

/// A lobby on loopback over IPv4, at any free port, without the legacy lobby and without a data directory.
pub fn options() -> LobbyOptions {
    LobbyOptions { doors: DoorAddrs::lobby(vec![any_v4()]), ..LobbyOptions::default() }
}

/// The doors of [`options`], and the legacy door at these addresses.
pub fn doors(legacy: Vec<SocketAddr>) -> DoorAddrs {
    let mut doors = options().doors;
    doors[&LEGACY] = legacy;
    doors
}

pub fn any_v4() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn any_v6() -> SocketAddr {
    "[::1]:0".parse().unwrap()
}

impl Lobby {
    pub fn start(options: LobbyOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let service = LobbyService::start(options, runtime.handle()).unwrap();
        Self { service, runtime }
    }

    pub fn addr(&self) -> SocketAddr {
        self.local_addrs()[&doors::LOBBY][0]
    }

    /// Sends a datagram to the lobby from a new port, as several real servers do.
    pub fn send(&self, datagram: &[u8]) {
        send(self.addr(), datagram);
    }

    /// Sends many datagrams from one port, no faster than the lobby receives them, so that none is lost.
    pub fn send_all(&self, datagrams: impl IntoIterator<Item = Vec<u8>>) {
        let client = UdpSocket::bind(any_v4()).unwrap();
        let received = || self.socket_stats()[0].received;
        let mut sent = received();
        for datagram in datagrams {
            client.send_to(&datagram, self.addr()).unwrap();
            sent += 1;
            if sent.is_multiple_of(64) {
                eventually("the lobby keeps up", || received() == sent);
            }
        }
    }

    /// Requests the list.
    pub fn list(&self) -> Vec<u8> {
        fetch(self.addr(), &request(LOBBY))
    }

    /// The names in the list, sorted.
    pub fn names(&self) -> Vec<String> {
        names(&self.list())
    }

    /// Waits until the list consists of these names, which have to be sorted.
    pub fn wait_until_listed(&self, names: &[&str]) {
        eventually(&format!("the list is {names:?}"), || self.names() == names);
    }

    pub fn shutdown(self) {
        self.runtime.block_on(self.service.shutdown());
    }
}

/// A registration of a UDP server. Its ID and port are derived from its name.
pub fn server(name: &str) -> Vec<u8> {
    registration(name, port_of(name), Transport::Udp, &[])
}

pub fn registration(name: &str, port: u16, transport: Transport, keys: &[(&str, &[u8])]) -> Vec<u8> {
    let mut table = TableBuf::new();
    table.push(b"name", name.as_bytes()).unwrap();
    for (key, value) in keys {
        table.push(key.as_bytes(), value).unwrap();
    }
    let port = port.try_into().unwrap();
    let occupancy = Occupancy { slots: 24, players: 7, ..Occupancy::default() };
    let registration = Registration::new(id_of(name), LOBBY, transport, port, occupancy, table.as_table()).unwrap();
    let mut datagram = Vec::new();
    registration.emit(&mut datagram);
    datagram
}

pub fn unregistration(name: &str) -> Vec<u8> {
    let mut datagram = Vec::new();
    Unregister { server_id: id_of(name) }.emit(&mut datagram);
    datagram
}

fn id_of(name: &str) -> ServerId {
    let mut id = [0; 16];
    name.bytes().zip(&mut id).for_each(|(byte, id)| *id = byte);
    ServerId::from_bytes(id)
}

fn port_of(name: &str) -> u16 {
    8_000 + name.bytes().fold(0, |port: u16, byte| (port * 7 + u16::from(byte)) % 4_096)
}

pub fn send(to: SocketAddr, datagram: &[u8]) {
    let any = if to.is_ipv4() { any_v4() } else { any_v6() };
    UdpSocket::bind(any).unwrap().send_to(datagram, to).unwrap();
}

pub fn request(list_id: ListId) -> Vec<u8> {
    let mut request = Vec::new();
    ListRequest { list_id }.emit(&mut request);
    request
}

pub fn connect(to: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(to).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.set_write_timeout(Some(TIMEOUT)).unwrap();
    client
}

/// Sends a request and reads until the lobby closes the connection. Panics if the lobby resets it.
pub fn fetch(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut client = connect(to);
    client.write_all(request).unwrap();
    read_all(&mut client)
}

pub fn read_all(client: &mut TcpStream) -> Vec<u8> {
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).unwrap();
    reply
}

pub fn names(reply: &[u8]) -> Vec<String> {
    let name = |block: rallypoint_wire::lobby::ListBlock<'_>| {
        String::from_utf8(block.table.get(b"name").unwrap().to_vec()).unwrap()
    };
    let mut names: Vec<_> = blocks(reply).map(|block| name(block.unwrap())).collect();
    names.sort();
    names
}

/// Waits until a condition is true. Panics after [`TIMEOUT`].
pub fn eventually(condition: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < TIMEOUT, "timed out waiting for: {condition}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
