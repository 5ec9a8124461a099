//! A player's client: requests the list and parses it.

use crate::wait::TIMEOUT;
use rallypoint_wire::lobby::{ListBlock, ListId, ListRequest, Occupancy, Transport, blocks};
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
};

/// The identifier of the list protocol (001), with which every request begins.
pub const LIST_PROTOCOL: [u8; 16] = 0x297d_0df4_430c_bf61_640a_6408_97ea_ef57_u128.to_be_bytes();

/// A server as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedServer {
    /// Server name.
    pub name: String,
    /// Protocol that players connect with.
    pub transport: Transport,
    /// IPv4 endpoint.
    pub v4: Option<SocketAddr>,
    /// IPv6 endpoint.
    pub v6: Option<SocketAddr>,
    /// Slots, players and bots.
    pub occupancy: Occupancy,
    /// All keys and values, in the order of the list.
    pub keys: Vec<(String, Vec<u8>)>,
}

impl ParsedServer {
    /// Parses all servers of a list reply, sorted by name.
    ///
    /// # Panics
    /// If the reply is malformed.
    #[must_use]
    pub fn parse_all(reply: &[u8]) -> Vec<Self> {
        let mut all: Vec<_> = blocks(reply).map(|block| Self::new(&block.expect("a well-formed reply"))).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The value of a key.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<&[u8]> {
        self.keys.iter().find(|(known, _)| known == key).map(|(_, value)| &value[..])
    }

    /// The IPv4 endpoint and then the IPv6 endpoint, as far as they are known.
    pub fn endpoints(&self) -> impl Iterator<Item = SocketAddr> {
        self.v4.into_iter().chain(self.v6)
    }

    fn new(block: &ListBlock<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            name: text(block.table.get(b"name").unwrap_or_default()),
            transport: block.transport,
            v4: block.v4.map(Into::into),
            v6: block.v6.map(Into::into),
            occupancy: block.occupancy,
            keys: block.table.iter().map(|entry| (text(entry.key), entry.value.to_vec())).collect(),
        }
    }
}

/// The servers of a lobby in a list service.
#[must_use]
pub fn list(service: SocketAddr, lobby: ListId) -> Vec<ParsedServer> {
    ParsedServer::parse_all(&send_request(service, &list_request(lobby)))
}

/// The 32 bytes that request the list of a lobby.
#[must_use]
pub fn list_request(lobby: ListId) -> Vec<u8> {
    let mut request = Vec::new();
    ListRequest { list_id: lobby }.emit(&mut request);
    request
}

/// Opens a TCP connection.
///
/// # Panics
/// If the connection is refused.
#[must_use]
pub fn connect(to: SocketAddr) -> TcpStream {
    with_timeouts(TcpStream::connect(to).expect("the service accepts connections"))
}

/// Opens a TCP connection from a given local address.
pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(with_timeouts(socket.into()))
}

/// Opens a TCP connection with a small receive buffer: most of a long reply stays with the lobby until it is read.
pub fn connect_with_small_buffer(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.set_recv_buffer_size(32 * 1024)?;
    socket.connect(&to.into())?;
    Ok(with_timeouts(socket.into()))
}

/// Opens a TCP connection from a given local address with the smallest possible buffers at both ends.
pub fn connect_with_minimal_buffers(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.set_recv_buffer_size(0)?;
    // The peer's initial send buffer is a multiple of the segment size.
    #[cfg(unix)]
    socket.set_tcp_mss(536)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(with_timeouts(socket.into()))
}

fn with_timeouts(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout can be set");
    stream
}

/// Sends a request over a new TCP connection and returns the reply. The service has to close the connection gracefully
/// (L14): a reset is a failure.
///
/// # Panics
/// If the connection is refused or reset.
#[must_use]
pub fn send_request(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(to);
    stream.write_all(request).expect("the service reads the request");
    read_to_end(&mut stream)
}

/// Reads a stream to its end.
///
/// # Panics
/// If the connection is reset instead.
#[must_use]
pub fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("the connection is closed gracefully");
    reply
}

/// The status and the body of a page.
///
/// # Panics
/// If the web server does not answer.
#[must_use]
pub fn http_get(server: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).expect("a web server");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a response");
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
