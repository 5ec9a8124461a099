//! Finds a server in the list of a lobby.

use rallypoint_wire::{
    lobby::{ListId, ListReader, ListRequest, Transport},
    text,
};
use std::{io, net::SocketAddr, num::NonZeroU16, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Time limit for the whole reply of the lobby.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a list in bytes: enough for a million servers of the usual size.
const MAX_LIST: usize = 1 << 30;

/// Recognises a server in a list. Its ID is secret and not part of the list, so name, transport and port have to do.
#[derive(Clone, Debug)]
pub struct EntryMatcher {
    pub list_id: ListId,
    pub transport: Transport,
    pub port: NonZeroU16,
    pub name: Vec<u8>,
    /// Addresses under which the server was listed before.
    pub known_at: Vec<SocketAddr>,
}

/// The entry of a server in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The addresses under which the server is listed; empty if it is not listed.
    pub endpoints: Vec<SocketAddr>,
    /// The name of another server that is listed at an address and port at which this one was listed.
    pub rival: Option<String>,
}

/// Finds the server in the list of a lobby.
pub async fn find_entry(lobby: SocketAddr, server: &EntryMatcher) -> io::Result<Lookup> {
    timeout(TIMEOUT, fetch_and_match(lobby, server)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn fetch_and_match(lobby: SocketAddr, server: &EntryMatcher) -> io::Result<Lookup> {
    let mut stream = TcpStream::connect(lobby).await?;
    let mut request = Vec::new();
    ListRequest { list_id: server.list_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let mut reader = ListReader::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut length = 0;
    let mut is_http = false;
    let mut found = Lookup::default();
    loop {
        let read = stream.read(&mut buffer).await?;
        is_http |= length == 0 && buffer[..read].starts_with(b"HTTP/");
        length += read;
        if read == 0 || length > MAX_LIST {
            reader.finish().map_err(|_| match is_http {
                true => io::Error::other("a web server is at that port, not a lobby"),
                false => io::Error::other("the reply is not a server list"),
            })?;
            return Ok(found);
        }
        reader.push(&buffer[..read]);
        while let Some(block) = reader.next_block() {
            let Ok(block) = block else { continue };
            let has_name = block.table.get(b"name") == Some(&server.name[..]);
            let has_port = block.endpoints().any(|addr| addr.port() == server.port.get());
            if block.transport != server.transport || !has_port {
                continue;
            }
            if has_name {
                found.endpoints.extend(block.endpoints());
            } else if block.endpoints().any(|addr| server.known_at.contains(&addr)) {
                found.rival = block.table.get(b"name").map(|name| text::display(name).into_owned());
            }
        }
    }
}

/// Whether a TCP port of this machine accepts connections on the loopback interface. If not, no lobby can connect either.
pub async fn is_port_open_locally(port: NonZeroU16) -> bool {
    for ip in ["127.0.0.1", "::1"] {
        let connect = TcpStream::connect((ip, port.get()));
        if timeout(Duration::from_secs(1), connect).await.is_ok_and(|connected| connected.is_ok()) {
            return true;
        }
    }
    false
}
