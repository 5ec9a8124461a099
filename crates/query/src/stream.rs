//! One probe over a TCP connection of its own, for protocols that are not carried by datagrams.

use crate::tcp;
use rallypoint_query_proto::{Probe, ProbeResult, ProberStats, QueueError, StreamAction, StreamExchange};
use rallypoint_udp::{clock, entropy};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout_at,
};

/// Number of bytes read at a time.
const BUFFER_SIZE: usize = 16 << 10;

/// A probe over TCP or HTTP. Dropping it, or the future of [`run`](Self::run), closes the connection.
#[derive(Debug)]
pub(crate) struct StreamProbe {
    /// Empty once the exchange has ended.
    exchange: Option<StreamExchange>,
    server: SocketAddr,
    source: Option<SocketAddr>,
    stats: ProberStats,
}

impl StreamProbe {
    /// A probe that ends after this time at the latest.
    pub fn new(probe: Probe, limit: Duration, source: Option<SocketAddr>) -> Result<Self, StreamProbeError> {
        let exchange = StreamExchange::new(probe, limit, entropy::bytes().map_err(io::Error::from)?)?;
        Ok(Self { exchange: Some(exchange), server: probe.address, source, stats: ProberStats::default() })
    }

    /// Counters, also while the probe runs.
    pub fn stats(&self) -> ProberStats {
        self.exchange.as_ref().map_or(self.stats, StreamExchange::stats)
    }

    /// Runs the exchange; `None` if it has ended before. An error means that this machine could not connect.
    pub async fn run(&mut self) -> io::Result<Option<ProbeResult>> {
        let Some(exchange) = &mut self.exchange else { return Ok(None) };
        let mut connection = None;
        let mut out = Vec::new();
        let mut buffer = Vec::new();
        loop {
            let now = clock::now();
            match exchange.poll_action(now, &mut out) {
                StreamAction::Connect => {
                    drop(connection.take());
                    let deadline = exchange.deadline(now);
                    match timeout_at(deadline.into(), tcp::open(self.server, self.source)).await {
                        Ok(Ok(stream)) => {
                            exchange.handle_connected(clock::now());
                            connection = Some(stream);
                        }
                        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => exchange.handle_refused(),
                        Ok(Err(error)) if error.kind() != io::ErrorKind::TimedOut => return Err(error),
                        Ok(Err(_)) | Err(_) => exchange.handle_timeout(deadline),
                    }
                }
                StreamAction::Send => {
                    let deadline = exchange.deadline(now);
                    match timeout_at(deadline.into(), send(&mut connection, &out)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => exchange.handle_closed(),
                        Err(_) => exchange.handle_timeout(deadline),
                    }
                    out.clear();
                }
                StreamAction::WaitUntil(at) => {
                    buffer.resize(BUFFER_SIZE, 0);
                    match timeout_at(at.into(), receive(&mut connection, &mut buffer)).await {
                        Ok(Ok(0) | Err(_)) => exchange.handle_closed(),
                        Ok(Ok(length)) => exchange.handle_received(&buffer[..length]),
                        Err(_) => exchange.handle_timeout(at),
                    }
                }
                StreamAction::End => break,
            }
        }
        self.stats = exchange.stats();
        Ok(self.exchange.take().map(StreamExchange::into_result))
    }
}

async fn send(connection: &mut Option<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    let stream = connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    stream.write_all(bytes).await
}

async fn receive(connection: &mut Option<TcpStream>, buffer: &mut [u8]) -> io::Result<usize> {
    let stream = connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    stream.read(buffer).await
}

/// Why a probe could not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamProbeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    NotProbed(#[from] QueueError),
}
