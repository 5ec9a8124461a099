//! A prober on real sockets.
//!
//! Probes come in groups: the addresses of a name, the protocols that a server may speak. The first answer settles the
//! group; if there is none, the most informative error does.

mod refusal_watch;
mod streams;
mod thread;

pub(crate) use refusal_watch::is_refusal;

use crate::{Family, PacketObserver, ProbeError, ScanConfig, ScanError, route::local_address_for};
use rallypoint_query_proto::{Probe, QueryReply, Transport};
use rallypoint_udp::{BindError, EventLoop, EventLoopThread, SocketKind, UdpSocket};
use refusal_watch::RefusalWatch;
use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use streams::StreamCommand;
use thread::ProbeThread;
use tokio::{sync::mpsc, task::JoinSet};

/// Probes groups of addresses on a thread of its own. Dropping it ends the thread, and closes all connections.
///
/// Protocols over TCP and HTTP take a connection each, at most 128 at a time, and need a tokio runtime.
///
/// For programs that have addresses rather than targets; everything else uses a [`Scanner`](crate::Scanner).
#[derive(Debug)]
pub struct ProbeEngine {
    thread: EventLoopThread<ProbeThread>,
    results: mpsc::Receiver<GroupResult>,
    /// Whether the thread waits for room in the channel.
    is_stalled: Arc<AtomicBool>,
    pending: usize,
    config: ScanConfig,
    /// Number of the last group.
    last_tag: u64,
    /// To the task that makes probes over TCP and HTTP.
    streams: mpsc::UnboundedSender<StreamCommand>,
    /// What it receives, until it is started.
    unstarted: Option<mpsc::UnboundedReceiver<StreamCommand>>,
    stream_task: JoinSet<()>,
}

/// The result of a group of probes.
#[derive(Debug)]
pub struct GroupResult {
    /// The key that was given to [`ProbeEngine::probe`].
    pub key: u64,
    /// The first reply, or why there is none.
    pub result: Result<ProbeReply, ProbeFailure>,
}

/// The reply that settled a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// The probe that was answered.
    pub probe: Probe,
    /// The reply.
    pub reply: Box<QueryReply>,
    /// Number of retries.
    pub retries: u8,
}

/// Why no probe of a group was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFailure {
    /// The most informative error of the group.
    pub error: ProbeError,
    /// The address that it is about, if there is one.
    pub address: Option<SocketAddr>,
}

/// Maximum number of results waiting to be taken. While the channel is full, no further probes start.
const MAX_RESULTS: usize = 1_024;

/// Size of the sockets' receive buffers, in bytes: room for what arrives while the thread is not scheduled.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Up to this number of pending groups the route to each address is looked up first, because a user wants to know if there is
/// none. In a scan of thousands of servers the lookups would take too long.
const MAX_ROUTE_LOOKUPS: usize = 256;

impl ProbeEngine {
    /// Opens the sockets and starts the thread.
    ///
    /// # Errors
    /// If the configuration is invalid, or if the system lacks sockets, threads or random numbers.
    pub fn start(config: &ScanConfig, observer: Option<Box<dyn PacketObserver>>) -> Result<Self, ScanError> {
        config.validate()?;
        let (sockets, has_error_queue) = bind_sockets(config)?;
        let watch = (!has_error_queue).then(|| RefusalWatch::new(config.source.map(|source| source.ip())));
        let (sender, results) = mpsc::channel(MAX_RESULTS);
        let is_stalled = Arc::new(AtomicBool::new(false));
        let (streams, commands) = mpsc::unbounded_channel();
        let machine =
            ProbeThread::new(config, sockets.clone(), sender, is_stalled.clone(), observer, watch, streams.clone())?;
        let thread = EventLoop::new(sockets)
            .and_then(|event_loop| event_loop.spawn("prober", machine, drop))
            .map_err(ScanError::Thread)?;
        Ok(Self {
            thread,
            results,
            is_stalled,
            pending: 0,
            config: config.clone(),
            last_tag: 0,
            streams,
            unstarted: Some(commands),
            stream_task: JoinSet::new(),
        })
    }

    /// Probes a group. It has one [`GroupResult`], with this key. Keys may repeat.
    ///
    /// # Panics
    /// If a probe is made over TCP or HTTP, and there is no tokio runtime.
    pub fn probe(&mut self, key: u64, mut probes: Vec<Probe>) {
        self.pending += 1;
        let mut error = ProbeError::NotFound;
        probes.retain(|probe| match self.check_route(probe) {
            Ok(()) => true,
            Err(found) => {
                error = found;
                false
            }
        });
        self.last_tag += 1;
        let tag = self.last_tag;
        let mut over_streams = Vec::new();
        for probe in &mut probes {
            probe.tag = tag;
            if probe.transport() != Transport::Udp {
                over_streams.push(*probe);
            }
        }
        self.thread.handle().run(move |thread, _| {
            if probes.is_empty() {
                thread.push_result(GroupResult { key, result: Err(ProbeFailure { error, address: None }) });
            } else {
                thread.start_group(key, tag, probes);
            }
        });
        for probe in over_streams {
            self.start_stream_task();
            // The task ends with this engine.
            let _ = self.streams.send(StreamCommand::Start(probe));
        }
    }

    /// Starts the task that makes probes over TCP and HTTP, unless it runs.
    fn start_stream_task(&mut self) {
        if let Some(commands) = self.unstarted.take() {
            let thread = self.thread.handle().clone();
            self.stream_task = streams::spawn(&self.config, commands, move |outcome| {
                thread.run(move |thread, _| thread.handle_stream_outcome(outcome));
            });
        }
    }

    /// The next result; `None` if no group is pending. Can be cancelled at any time.
    pub async fn next(&mut self) -> Option<GroupResult> {
        if self.pending == 0 {
            return None;
        }
        let result = self.results.recv().await?;
        self.pending -= 1;
        if self.is_stalled.swap(false, SeqCst) {
            // Wakes the thread up.
            self.thread.handle().run(|_, _| {});
        }
        Some(result)
    }

    /// Number of groups without a result.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Whether a datagram could leave this machine for that address.
    fn check_route(&self, probe: &Probe) -> Result<(), ProbeError> {
        let ip = probe.address.ip();
        if let Some(family) = self.config.only_family().filter(|family| *family != Family::of(ip)) {
            return Err(ProbeError::NoAddress(family));
        }
        if self.pending > MAX_ROUTE_LOOKUPS {
            return Ok(());
        }
        local_address_for(probe.address).map(drop).map_err(|error| ProbeError::from_route(&error, ip))
    }
}

/// A socket for each family that is allowed and that this machine has, and whether they report refusals.
fn bind_sockets(config: &ScanConfig) -> Result<(Vec<Arc<UdpSocket>>, bool), BindError> {
    let addrs: Vec<SocketAddr> = match config.source {
        Some(source) => vec![source],
        None => [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()]
            .into_iter()
            .filter(|ip| Family::allows(config.only_family(), *ip))
            .map(|ip| SocketAddr::new(ip, 0))
            .collect(),
    };
    let mut sockets = Vec::new();
    let mut last_error = None;
    let mut has_error_queue = true;
    for addr in addrs {
        let with_error_queue = |socket: UdpSocket| match socket.enable_error_queue() {
            Ok(()) => Ok(socket),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                has_error_queue = false;
                Ok(socket)
            }
            Err(error) => Err(BindError::new(SocketKind::Udp, addr, error)),
        };
        match UdpSocket::bind(addr, RECEIVE_BUFFER).and_then(with_error_queue) {
            Ok(socket) => sockets.push(Arc::new(socket)),
            Err(error) => last_error = Some(error),
        }
    }
    match last_error {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok((sockets, has_error_queue)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query_proto::Protocol;
    use std::time::Duration;

    #[tokio::test]
    async fn a_missing_route_is_reported_for_every_probe_of_a_long_sequence() {
        let config = ScanConfig::without_retries(Duration::from_secs(1));
        let mut engine = ProbeEngine::start(&config, None).unwrap();
        // The system does not permit sending to the broadcast address.
        let probe = Probe::new("255.255.255.255:9".parse().unwrap(), Protocol::Bloodmasters.info());
        for key in 0..2 * MAX_ROUTE_LOOKUPS as u64 {
            engine.probe(key, vec![probe]);
            let result = engine.next().await.unwrap();
            assert!(matches!(result.result, Err(ProbeFailure { error: ProbeError::NoRoute(_), .. })), "{result:?}");
        }
    }
}
