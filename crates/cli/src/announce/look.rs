//! Asking a lobby whether a server is in its list.

use rallypoint_wire::lobby::{ListReader, ListRequest, LobbyId, Transport};
use std::{io, net::SocketAddr, num::NonZeroU16, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long the lobby has for its whole answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// No list is longer than this: a million servers with what they usually say.
const LONGEST: usize = 1 << 30;

/// What a server can be known by in a list: its ID is secret.
#[derive(Clone, Debug)]
pub struct Looks {
    pub lobby_id: LobbyId,
    pub transport: Transport,
    pub port: NonZeroU16,
    pub name: Vec<u8>,
}

/// Under which addresses the server is listed; none, if it is not.
pub async fn look(lobby: SocketAddr, server: &Looks) -> io::Result<Vec<SocketAddr>> {
    timeout(PATIENCE, ask(lobby, server)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(lobby: SocketAddr, server: &Looks) -> io::Result<Vec<SocketAddr>> {
    let mut stream = TcpStream::connect(lobby).await?;
    let mut request = Vec::new();
    ListRequest { lobby_id: server.lobby_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let (mut reader, mut buffer, mut length) = (ListReader::new(), vec![0; 64 * 1024], 0);
    let mut found = Vec::new();
    loop {
        let read = stream.read(&mut buffer).await?;
        length += read;
        if read == 0 || length > LONGEST {
            reader.finish().map_err(|_| io::Error::other("its answer is not a list"))?;
            return Ok(found);
        }
        reader.push(&buffer[..read]);
        while let Some(block) = reader.next_block() {
            let Ok(block) = block else { continue };
            let is_it = block.transport == server.transport && block.table.get(b"name") == Some(&server.name[..]);
            if is_it && block.endpoints().any(|addr| addr.port() == server.port.get()) {
                found.extend(block.endpoints());
            }
        }
    }
}

/// Whether something answers at a TCP port of this machine: if not, no lobby can reach it either.
pub async fn answers_here(port: NonZeroU16) -> bool {
    for ip in ["127.0.0.1", "::1"] {
        if timeout(Duration::from_secs(1), TcpStream::connect((ip, port.get()))).await.is_ok_and(|tried| tried.is_ok())
        {
            return true;
        }
    }
    false
}
