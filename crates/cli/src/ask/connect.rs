//! Connections to one of several addresses, with a limit on every wait.

use crate::ask::{Asking, Trouble};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

/// A connection on which nothing takes longer than it may.
#[derive(Debug)]
pub struct Stream {
    stream: TcpStream,
    peer: SocketAddr,
    patience: Duration,
}

/// How long one address has before the next is tried beside it (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to whichever address answers first. They are tried one after the other, families in turns, without waiting for
/// one that takes long.
pub async fn connect(addrs: &[SocketAddr], asking: &Asking) -> Result<Stream, Trouble> {
    let patience = asking.timeout;
    let source = asking.source;
    let mut waiting = in_turns(addrs).into_iter();
    let mut trying = JoinSet::new();
    let mut trouble = Trouble::NotFound;
    let any = async {
        loop {
            if let Some(addr) = waiting.next() {
                trying.spawn(async move { (addr, open(addr, source).await) });
            } else if trying.is_empty() {
                return None;
            }
            tokio::select! {
                Some(Ok((peer, result))) = trying.join_next() => match result {
                    Ok(stream) => return Some(Stream { stream, peer, patience }),
                    Err(error) => {
                        let found = Trouble::of_io(&error, patience);
                        if found.weight() >= trouble.weight() || trouble == Trouble::NotFound {
                            trouble = found;
                        }
                    }
                },
                () = sleep(HEAD_START), if waiting.len() > 0 => {}
            }
        }
    };
    match timeout(patience, any).await {
        Ok(Some(stream)) => Ok(stream),
        Ok(None) => Err(trouble),
        Err(_) => Err(Trouble::TimedOut(patience)),
    }
}

async fn open(addr: SocketAddr, source: Option<SocketAddr>) -> io::Result<TcpStream> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(mut source) = source {
        // The port is for datagrams.
        source.set_port(0);
        socket.bind(source)?;
    }
    socket.connect(addr).await
}

/// One of each family in turns, in the order of each.
fn in_turns(addrs: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addrs.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<SocketAddr>, Vec<_>) = addrs.iter().partition(|addr| addr.is_ipv4() == first_is_v4);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::with_capacity(addrs.len());
    while turns.len() < addrs.len() {
        turns.extend(first.next());
        turns.extend(second.next());
    }
    turns
}

impl Stream {
    /// Who answered.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        limit(self.patience, self.stream.write_all(bytes)).await
    }

    /// How many bytes came; 0 at the end.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Trouble> {
        limit(self.patience, self.stream.read(buffer)).await
    }
}

async fn limit<T>(patience: Duration, work: impl Future<Output = io::Result<T>>) -> Result<T, Trouble> {
    match timeout(patience, work).await {
        Ok(result) => result.map_err(|error| Trouble::of_io(&error, patience)),
        Err(_) => Err(Trouble::TimedOut(patience)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let addrs: Vec<SocketAddr> =
            ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].iter().map(|addr| addr.parse().unwrap()).collect();
        let turns: Vec<_> = in_turns(&addrs).iter().map(ToString::to_string).collect();
        assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]);
        assert!(in_turns(&[]).is_empty());
    }
}
