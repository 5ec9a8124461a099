//! TCP connections to one of several addresses, with a time limit on every wait.

use crate::{ProbeError, ScanConfig};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

/// A connection on which no read or write takes longer than the timeout.
#[derive(Debug)]
pub(crate) struct TimedStream {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    pub timeout: Duration,
}

/// Head start of one address before the next is tried in parallel (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the address that accepts first. They are tried one after the other, alternating between the families, without
/// waiting for one that takes long.
pub(crate) async fn connect(addrs: &[SocketAddr], config: &ScanConfig) -> Result<TimedStream, ProbeError> {
    let limit = config.timeout;
    let source = config.source;
    let mut untried = alternate_families(addrs).into_iter();
    let mut attempts = JoinSet::new();
    let mut worst = ProbeError::NotFound;
    let first = async {
        loop {
            if let Some(addr) = untried.next() {
                attempts.spawn(async move { (addr, open(addr, source).await) });
            } else if attempts.is_empty() {
                return None;
            }
            tokio::select! {
                Some(Ok((peer, result))) = attempts.join_next() => match result {
                    Ok(stream) => return Some(TimedStream { stream, peer, timeout: limit }),
                    Err(error) => {
                        let error = ProbeError::from_tcp(&error, limit);
                        if error.weight() >= worst.weight() || worst == ProbeError::NotFound {
                            worst = error;
                        }
                    }
                },
                () = sleep(HEAD_START), if untried.len() > 0 => {}
            }
        }
    };
    match timeout(limit, first).await {
        Ok(Some(stream)) => Ok(stream),
        Ok(None) => Err(worst),
        Err(_) => Err(ProbeError::TimedOut(limit)),
    }
}

/// Opens a TCP connection to the address that accepts first, within the timeout of the configuration.
///
/// # Errors
/// The most informative error of all addresses.
pub async fn connect_tcp(addrs: &[SocketAddr], config: &ScanConfig) -> Result<TcpStream, ProbeError> {
    connect(addrs, config).await.map(|connection| connection.stream)
}

pub(crate) async fn open(addr: SocketAddr, source: Option<SocketAddr>) -> io::Result<TcpStream> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(mut source) = source {
        // The port is for datagrams.
        source.set_port(0);
        socket.bind(source)?;
    }
    socket.connect(addr).await
}

/// Addresses of both families in alternation, each family in its original order.
fn alternate_families(addrs: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addrs.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<SocketAddr>, Vec<_>) = addrs.iter().partition(|addr| addr.is_ipv4() == first_is_v4);
    let mut first = first.into_iter();
    let mut second = second.into_iter();
    let mut alternating = Vec::with_capacity(addrs.len());
    while alternating.len() < addrs.len() {
        alternating.extend(first.next());
        alternating.extend(second.next());
    }
    alternating
}

impl TimedStream {
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), ProbeError> {
        within(self.timeout, self.stream.write_all(bytes)).await
    }

    /// Number of bytes read; 0 at the end.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ProbeError> {
        within(self.timeout, self.stream.read(buffer)).await
    }
}

async fn within<T>(limit: Duration, operation: impl Future<Output = io::Result<T>>) -> Result<T, ProbeError> {
    match timeout(limit, operation).await {
        Ok(result) => result.map_err(|error| ProbeError::from_tcp(&error, limit)),
        Err(_) => Err(ProbeError::TimedOut(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate() {
        let addrs: Vec<SocketAddr> =
            ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].iter().map(|addr| addr.parse().unwrap()).collect();
        let order: Vec<_> = alternate_families(&addrs).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]);
        assert!(alternate_families(&[]).is_empty());
    }
}
