//! One probe on a socket of its own.

use crate::{
    engine::is_refusal,
    stream::{StreamProbe, StreamProbeError},
};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, ProbeOutcome, Prober, ProberConfig, ProberStats, Transport};
use rallypoint_udp::{clock, entropy};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::{io::Interest, net::UdpSocket, time::sleep_until};

/// One probe of one server, on a socket of its own.
///
/// The socket is connected to the server and has an unpredictable port, so it receives from that server only. A reply of
/// document 003 repeats nothing of its query, so this is all that keeps third parties from forging it (W41). Many servers are
/// probed far more cheaply by a scanner, which uses one socket for all of them; this is for services that probe servers on
/// behalf of others and have to trust the replies. Protocols over TCP and HTTP take a connection, without retries.
///
/// Dropping it closes the socket: an abandoned probe leaves nothing behind. The number of probes at a time is up to the
/// caller.
///
/// ```
/// use rallypoint_query::{SingleProbe, SingleProbeConfig, proto::{Probe, ProbeOutcome, Protocol}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// // No server listens at the port of a socket that was just closed.
/// let closed = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
/// let probe = Probe::new(closed, Protocol::Session.presence());
/// let mut probe = SingleProbe::connect(probe, &SingleProbeConfig::default()).await?;
/// assert_eq!(probe.run().await?, ProbeOutcome::Refused);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SingleProbe(Socket);

#[derive(Debug)]
enum Socket {
    Datagrams(Box<DatagramProbe>),
    Stream {
        probe: Box<StreamProbe>,
        fail_on_socket_error: bool,
    },
    /// No reply can ever come from the address.
    None,
}

/// A probe with datagrams.
#[derive(Debug)]
struct DatagramProbe {
    socket: UdpSocket,
    server: SocketAddr,
    prober: Prober,
    config: SingleProbeConfig,
    buffer: Vec<u8>,
    is_refused: bool,
}

/// Settings of a [`SingleProbe`]. The ranges are those of [`ProberConfig`].
#[derive(Clone, Debug, PartialEq)]
pub struct SingleProbeConfig {
    /// Time from the first query until the probe times out; default 3 s.
    pub deadline: Duration,
    /// Maximum number of retries; default 4.
    pub retries: u8,
    /// Wait before the first retry; default 400 ms.
    pub retry_after: Duration,
    /// Factor by which each wait is longer than the previous one; default 1.2.
    pub backoff: f64,
    /// Whether an error of the socket (host unreachable, blocked by the local firewall, ...) ends the probe with that error.
    /// Otherwise the datagram counts as lost, and the query is retried. Default false. A refusal always ends the probe.
    pub fail_on_socket_error: bool,
}

/// Larger than any datagram, in bytes.
const BUFFER_SIZE: usize = 1 << 16;

/// Maximum number of datagrams received before other tasks get to run.
const MAX_DATAGRAMS_PER_WAKE: usize = 64;

/// More than one query needs: a single probe is not rate-limited.
const PACKETS_PER_SECOND: u32 = 1_000;

impl SingleProbe {
    /// Opens the socket and connects it to the server. A TCP connection is made by [`run`](Self::run).
    ///
    /// # Errors
    /// If this machine cannot send to the address (no route, no descriptors, not permitted, ...), has no random numbers, or if
    /// the configuration is out of range.
    pub async fn connect(probe: Probe, config: &SingleProbeConfig) -> io::Result<Self> {
        let prober_config = config.prober();
        prober_config.validate().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if probe.transport() == Transport::Udp {
            return DatagramProbe::connect(probe, config, prober_config)
                .await
                .map(Box::new)
                .map(Socket::Datagrams)
                .map(Self);
        }
        let fail_on_socket_error = config.fail_on_socket_error;
        match StreamProbe::new(probe, config.deadline, None) {
            Ok(probe) => Ok(Self(Socket::Stream { probe: Box::new(probe), fail_on_socket_error })),
            Err(StreamProbeError::Io(error)) => Err(error),
            Err(StreamProbeError::NotProbed(_)) => Ok(Self(Socket::None)),
        }
    }

    /// Sends queries until the server has answered or the deadline has passed. Times out at once if no reply can ever come
    /// from the address (multicast, port 0, ...).
    ///
    /// # Errors
    /// I/O errors of the socket, if [`SingleProbeConfig::fail_on_socket_error`] is set.
    pub async fn run(&mut self) -> io::Result<ProbeOutcome> {
        match &mut self.0 {
            Socket::Datagrams(probe) => probe.run().await,
            Socket::Stream { probe, fail_on_socket_error } => match probe.run().await {
                Ok(result) => Ok(result.map_or(ProbeOutcome::TimedOut, |result| result.outcome)),
                Err(error) if *fail_on_socket_error => Err(error),
                Err(_) => Ok(ProbeOutcome::TimedOut),
            },
            Socket::None => Ok(ProbeOutcome::TimedOut),
        }
    }

    /// Counters of this probe, also while it runs.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        match &self.0 {
            Socket::Datagrams(probe) => probe.stats(),
            Socket::Stream { probe, .. } => probe.stats(),
            Socket::None => ProberStats::default(),
        }
    }
}

impl SingleProbeConfig {
    fn prober(&self) -> ProberConfig {
        ProberConfig {
            packets_per_second: PACKETS_PER_SECOND,
            max_in_flight: 1,
            max_targets: 1,
            deadline: self.deadline,
            retries: self.retries,
            retry_after: self.retry_after,
            backoff: self.backoff,
        }
    }
}

impl DatagramProbe {
    async fn connect(probe: Probe, config: &SingleProbeConfig, prober: ProberConfig) -> io::Result<Self> {
        let server = probe.address;
        let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        let mut prober = Prober::new(prober, entropy::bytes()?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // An address that no reply can come from is not queued: `run` then returns at once.
        let _ = prober.enqueue(probe);
        Ok(Self { socket, server, prober, config: config.clone(), buffer: Vec::new(), is_refused: false })
    }

    async fn run(&mut self) -> io::Result<ProbeOutcome> {
        let mut out = Vec::new();
        while !self.prober.is_idle() {
            let now = clock::now();
            self.prober.handle_timeout(now);
            while self.prober.poll_transmit(now, &mut out).is_some() {
                if self.handle_error(self.socket.send(&out).await.err())? {
                    return Ok(self.refused());
                }
                out.clear();
            }
            if let Some(result) = self.prober.poll_event() {
                return Ok(result.outcome);
            }
            let Some(wake) = self.prober.poll_timeout() else { break };
            tokio::select! {
                ready = self.socket.ready(Interest::READABLE | Interest::ERROR) => {
                    ready?;
                    if self.receive()? {
                        return Ok(self.refused());
                    }
                }
                () = sleep_until(wake.into()) => {}
            }
        }
        Ok(ProbeOutcome::TimedOut)
    }

    fn stats(&self) -> ProberStats {
        let mut stats = self.prober.stats();
        // The socket reports refusals, so the prober does not count them.
        stats.refused += u64::from(self.is_refused);
        stats
    }

    fn refused(&mut self) -> ProbeOutcome {
        self.is_refused = true;
        ProbeOutcome::Refused
    }

    /// Passes received datagrams to the prober. True if the server's machine reports that the port is closed: the system
    /// makes sure that such a report is about this very socket, whose port is unpredictable.
    fn receive(&mut self) -> io::Result<bool> {
        let take_error = || Err(self.socket.take_error()?.unwrap_or_else(|| io::ErrorKind::WouldBlock.into()));
        let pending: io::Result<()> = self.socket.try_io(Interest::ERROR, take_error);
        if self.handle_error(pending.err())? {
            return Ok(true);
        }
        self.buffer.resize(BUFFER_SIZE, 0);
        for _ in 0..MAX_DATAGRAMS_PER_WAKE {
            match self.socket.try_recv(&mut self.buffer) {
                Ok(length) => self.prober.handle_datagram(clock::now(), self.server, &self.buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    if self.handle_error(Some(error))? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Whether an error of the socket is a refusal. Any other error is returned if it has to end the probe.
    fn handle_error(&self, error: Option<io::Error>) -> io::Result<bool> {
        match error {
            Some(error) if is_refusal(&error) => Ok(true),
            Some(error) if self.config.fail_on_socket_error && error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(false),
        }
    }
}

impl Default for SingleProbeConfig {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(3),
            retries: 4,
            retry_after: Duration::from_millis(400),
            backoff: 1.2,
            fail_on_socket_error: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query_proto::{Protocol, Responder, ResponderConfig, ServerInfo};

    async fn server() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = socket.local_addr().unwrap();
        (socket, addr)
    }

    async fn connect(probe: Probe) -> SingleProbe {
        SingleProbe::connect(probe, &SingleProbeConfig::default()).await.unwrap()
    }

    #[tokio::test]
    async fn presence_is_known_with_the_first_datagram_of_the_reply() {
        let (server, addr) = server().await;
        let mut probe = connect(Probe::new(addr, Protocol::Session.presence())).await;
        let answer_once = async {
            let mut buffer = [0; 64];
            let (length, client) = server.recv_from(&mut buffer).await.unwrap();
            let mut responder = Responder::new(ResponderConfig::default(), 7, &ServerInfo::default()).unwrap();
            responder.handle_datagram(clock::now(), client, &buffer[..length]);
            let mut datagram = Vec::new();
            responder.poll_transmit(clock::now(), &mut datagram).unwrap();
            server.send_to(&datagram, client).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(probe.run(), answer_once);
        let ProbeOutcome::Answered(reply) = outcome.unwrap() else { panic!("no reply") };
        assert!(reply.is_complete(), "nothing that was asked for is missing");
        assert_eq!(probe.stats().sent, 1);
    }

    #[tokio::test]
    async fn a_refusal_ends_the_probe_and_is_counted() {
        let (closed, addr) = server().await;
        drop(closed);
        for query in [Protocol::Session.info(), Protocol::Bloodmasters.info()] {
            let mut probe = connect(Probe::new(addr, query)).await;
            assert_eq!(probe.run().await.unwrap(), ProbeOutcome::Refused);
            assert_eq!(probe.stats().refused, 1);
        }
    }

    #[tokio::test]
    async fn what_this_machine_cannot_send_is_an_error() {
        let broadcast = Probe::new("255.255.255.255:9".parse().unwrap(), Protocol::Session.info());
        assert!(SingleProbe::connect(broadcast, &SingleProbeConfig::default()).await.is_err());
        let range = SingleProbeConfig { deadline: Duration::ZERO, ..SingleProbeConfig::default() };
        let (_server, addr) = server().await;
        let error = SingleProbe::connect(Probe::new(addr, Protocol::Session.info()), &range).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
