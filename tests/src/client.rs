//! A player's side: asking for the list, and reading it.

use crate::wait::LIMIT;
use rallypoint_wire::lobby::{ListBlock, ListRequest, LobbyId, Occupancy, Transport, blocks};
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
};

/// The list protocol (001), with which every request begins.
pub const LISTS: [u8; 16] = 0x297d_0df4_430c_bf61_640a_6408_97ea_ef57_u128.to_be_bytes();

/// A server as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// How players reach it.
    pub transport: Transport,
    /// Where, by IPv4.
    pub v4: Option<SocketAddr>,
    /// Where, by IPv6.
    pub v6: Option<SocketAddr>,
    /// How full it is.
    pub occupancy: Occupancy,
    /// All keys with their values, in their order.
    pub keys: Vec<(String, Vec<u8>)>,
}

impl Listed {
    /// All servers of a reply, by name.
    ///
    /// # Panics
    /// If it is not a reply.
    #[must_use]
    pub fn all(reply: &[u8]) -> Vec<Self> {
        let mut all: Vec<_> = blocks(reply).map(|block| Self::of(&block.expect("a reply that makes sense"))).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The value of a key.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<&[u8]> {
        self.keys.iter().find(|(known, _)| known == key).map(|(_, value)| &value[..])
    }

    fn of(block: &ListBlock<'_>) -> Self {
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

/// The 32 bytes that ask for a lobby.
#[must_use]
pub fn request(lobby: LobbyId) -> Vec<u8> {
    let mut request = Vec::new();
    ListRequest { lobby_id: lobby }.emit(&mut request);
    request
}

/// A connection to the list service.
///
/// # Panics
/// If nobody listens.
#[must_use]
pub fn connect(to: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(to).expect("the list service takes connections"))
}

/// A connection from a certain address.
pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(patient(socket.into()))
}

/// A connection with hardly any room for what is not read yet: most of a long reply stays with the lobby.
pub fn connect_with_little_room(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.set_recv_buffer_size(32 * 1024)?;
    socket.connect(&to.into())?;
    Ok(patient(socket.into()))
}

/// A connection from a certain address with as little room as there can be, at both ends.
pub fn connect_stingily(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.set_recv_buffer_size(0)?;
    // The room that the other end begins with is a number of segments.
    socket.set_tcp_mss(536)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(patient(socket.into()))
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    stream.set_write_timeout(Some(LIMIT)).expect("a timeout");
    stream
}

/// Sends a request and gives what comes back. The other side has to close as L14 wants it: a reset is a failure.
#[must_use]
pub fn ask(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(to);
    stream.write_all(request).expect("the request can be sent");
    read_to_end(&mut stream)
}

/// All that comes until the end of the stream.
///
/// # Panics
/// If the stream is cut instead.
#[must_use]
pub fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("the connection is closed gracefully");
    reply
}
