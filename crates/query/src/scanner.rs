//! Scanning servers and lists, once or repeatedly.

mod connect;
mod list_task;

#[cfg(feature = "http")]
use crate::mirror::{MirrorConfig, MirrorEvent};
use crate::{
    Family, FetchedServer, ListSummary, PacketObserver, ProbeEngine, ProbeError, ReplyStats, ScanConfig, ScanError,
    ScannedServer, ServerAddress, Target,
    engine::{GroupResult, ProbeFailure},
    resolve::resolve,
    target::Host,
};
use connect::{Connected, measure_connect};
use list_task::{ListEvent, ListTask};
use rallypoint_query_proto::{Detail, Probe, RoundTrip, RttMethod};
use rallypoint_wire::lobby::Transport;
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    ops::Range,
    sync::Arc,
};
use tokio::{sync::mpsc, task::JoinSet};

/// Scans targets: reads lists, resolves names, probes servers, and reports what it finds as it is found.
///
/// A scan of all targets is a *pass*. [`scan`](Self::scan) makes one; [`begin_pass`](Self::begin_pass) and
/// [`next`](Self::next) do the same step by step. Memory is bounded by the number of servers being probed at a time (16,384)
/// and by the lists being read: a target that is a server takes none until it is probed. Needs a tokio runtime.
///
/// ```no_run
/// use rallypoint_query::{ScanConfig, ScanEvent, Scanner};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let targets = ["lobby://lobby.example.org/gg2".parse()?, "play.example.org".parse()?];
/// let mut scanner = Scanner::new(ScanConfig::default(), targets)?;
/// scanner
///     .scan(|event| {
///         if let ScanEvent::Answered(server) = event {
///             println!("{} {:?} {:?} ms", server.name(), server.info.players, server.ping_ms());
///         }
///     })
///     .await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Scanner {
    config: ScanConfig,
    targets: Arc<[Target]>,
    /// Targets whose servers have not been started in this pass.
    unstarted: Range<usize>,
    /// `None` if only lists are read.
    engine: Option<ProbeEngine>,
    /// Probes that wait for room in the engine.
    waiting: VecDeque<(u64, Work)>,
    /// Servers to connect to.
    unconnected: VecDeque<(u64, Vec<SocketAddr>)>,
    connecting: JoinSet<Connected>,
    resolving: JoinSet<Resolved>,
    /// Servers that are being probed, by key.
    pending: HashMap<u64, PendingServer>,
    last_key: u64,
    /// Tasks that read lists. They end with the next pass.
    list_tasks: JoinSet<()>,
    list_events: Option<mpsc::UnboundedReceiver<ListEvent>>,
    /// Where to read the lists of lobbies that do not answer.
    #[cfg(feature = "http")]
    mirrors: Option<Arc<MirrorConfig>>,
}

/// Something that a scan found.
#[derive(Debug)]
pub enum ScanEvent {
    /// A list contains this server.
    Listed {
        /// The server, as the list describes it.
        server: ScannedServer,
        /// Whether it is probed as well: [`Answered`](Self::Answered) or [`Failed`](Self::Failed) follows.
        is_probed: bool,
    },
    /// A server answered.
    Answered(ScannedServer),
    /// A server did not answer: [`ScannedServer::error`] is the reason.
    Failed(ScannedServer),
    /// The list of the target with this index is complete; all of its servers were reported before.
    ListComplete(usize, ListSummary),
    /// The list of the target with this index could not be read.
    ListFailed(usize, ProbeError),
    /// The list of the target with this index could not be read, and a mirror was tried: [`ListComplete`](Self::ListComplete) or
    /// [`ListFailed`](Self::ListFailed) follows.
    #[cfg(feature = "http")]
    Mirror(usize, Box<MirrorEvent>),
}

/// Number of servers of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    /// Servers to probe, as far as known.
    pub total: usize,
    /// Servers without a result.
    pub pending: usize,
}

/// The next step of probing a server. Kept small: there can be a great many of them.
#[derive(Debug)]
enum Work {
    /// Resolve the target with this index, then probe it.
    Target(usize),
    Probes(Vec<Probe>),
    /// Connect to one of these addresses.
    Connect(Vec<SocketAddr>),
}

/// A server that is being probed. Kept small: there can be a great many of them.
#[derive(Debug)]
enum PendingServer {
    /// The target with this index.
    Named(usize),
    Listed(Box<ScannedServer>),
}

#[derive(Debug)]
struct Resolved {
    key: u64,
    target_index: usize,
    addresses: Result<Vec<SocketAddr>, ProbeError>,
}

/// Maximum number of groups handed to the engine: the number of probes it keeps in flight.
const MAX_IN_FLIGHT: usize = 16_384;

/// Maximum number of TCP connections opened at a time.
const MAX_CONNECTS: usize = 64;

/// Maximum number of names resolved at a time.
const MAX_LOOKUPS: usize = 32;

impl Scanner {
    /// Opens the sockets, unless the configuration requests lists only.
    ///
    /// # Errors
    /// If the configuration is invalid, or if the system lacks sockets, threads or random numbers.
    pub fn new(config: ScanConfig, targets: impl Into<Arc<[Target]>>) -> Result<Self, ScanError> {
        Self::with_observer(config, targets, None)
    }

    /// Starts a scan with an observer that receives a copy of every datagram.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_observer(
        config: ScanConfig,
        targets: impl Into<Arc<[Target]>>,
        observer: Option<Box<dyn PacketObserver>>,
    ) -> Result<Self, ScanError> {
        config.validate()?;
        let engine = match config.detail {
            Some(_) => Some(ProbeEngine::start(&config, observer)?),
            None => None,
        };
        Ok(Self {
            config,
            targets: targets.into(),
            unstarted: 0..0,
            engine,
            waiting: VecDeque::new(),
            resolving: JoinSet::new(),
            unconnected: VecDeque::new(),
            connecting: JoinSet::new(),
            pending: HashMap::new(),
            last_key: 0,
            list_tasks: JoinSet::new(),
            list_events: None,
            #[cfg(feature = "http")]
            mirrors: None,
        })
    }

    /// Reads the lists of lobbies that do not answer from mirrors, from the next pass on.
    #[cfg(feature = "http")]
    pub fn set_mirrors(&mut self, mirrors: Option<MirrorConfig>) {
        self.mirrors = mirrors.map(Arc::new);
    }

    /// Makes one pass over all targets. Can be cancelled at any time: the results of probes that were started are reported by
    /// the next pass.
    pub async fn scan(&mut self, on_event: impl FnMut(ScanEvent)) {
        self.begin_pass();
        self.finish(on_event).await;
    }

    /// Waits for everything that is under way.
    pub async fn finish(&mut self, mut on_event: impl FnMut(ScanEvent)) {
        while let Some(event) = self.next().await {
            on_event(event);
        }
    }

    /// Begins a pass over all targets; [`next`](Self::next) returns what is found.
    pub fn begin_pass(&mut self) {
        let (sender, events) = mpsc::unbounded_channel();
        self.list_tasks = JoinSet::new();
        self.list_events = Some(events);
        self.unstarted = 0..self.targets.len();
        for (index, target) in self.targets.iter().enumerate() {
            if matches!(target, Target::Server(_)) {
                continue;
            }
            let list = ListTask {
                index,
                target: target.clone(),
                config: self.config.clone(),
                #[cfg(feature = "http")]
                mirrors: self.mirrors.clone(),
                sender: sender.clone(),
            };
            self.list_tasks.spawn(list.run());
        }
    }

    /// The next event; `None` if nothing is under way. Can be cancelled at any time.
    pub async fn next(&mut self) -> Option<ScanEvent> {
        loop {
            self.start_probes();
            self.start_connects();
            let is_probing = self.engine.as_ref().is_some_and(|engine| engine.pending() > 0);
            tokio::select! {
                event = receive(&mut self.list_events), if self.list_events.is_some() => match event {
                    Some(ListEvent::Server(index, server)) => return Some(self.handle_listed(index, *server)),
                    Some(ListEvent::Done(index, Ok(summary))) => return Some(ScanEvent::ListComplete(index, summary)),
                    Some(ListEvent::Done(index, Err(error))) => return Some(ScanEvent::ListFailed(index, error)),
                    #[cfg(feature = "http")]
                    Some(ListEvent::Mirror(index, event)) => return Some(ScanEvent::Mirror(index, event)),
                    None => self.list_events = None,
                },
                Some(resolved) = self.resolving.join_next() => {
                    // An error would mean that the lookup panicked: it does not.
                    let Ok(resolved) = resolved else { continue };
                    if let Some(event) = self.handle_resolved(resolved) {
                        return Some(event);
                    }
                },
                Some(connected) = self.connecting.join_next() => {
                    let Ok(connected) = connected else { continue };
                    if let Some(event) = self.handle_connected(connected) {
                        return Some(event);
                    }
                },
                result = next_result(&mut self.engine), if is_probing => if let Some(event) = self.handle_result(result?) {
                    return Some(event);
                },
                else => return None,
            }
        }
    }

    /// Probes one server again, if it can be probed; [`next`](Self::next) returns the result.
    pub fn probe_again(&mut self, server: ScannedServer) {
        let index = server.target_index;
        if matches!(self.targets.get(index), Some(Target::Server(_))) {
            return self.enqueue(PendingServer::Named(index), Work::Target(index));
        }
        if let Some(work) = self.work_of(&server.to_listed()) {
            self.enqueue(PendingServer::Listed(Box::new(server)), work);
        }
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &Arc<[Target]> {
        &self.targets
    }

    /// Number of servers to probe and of servers without a result.
    #[must_use]
    pub fn progress(&self) -> ScanProgress {
        let started = usize::try_from(self.last_key).unwrap_or(usize::MAX);
        ScanProgress {
            total: started.saturating_add(self.unstarted.len()),
            pending: self.pending.len() + self.unstarted.len(),
        }
    }

    /// Hands probes to the engine, as many as there is room for: first what waits, then further targets.
    fn start_probes(&mut self) {
        let Some(detail) = self.config.detail else { return };
        while self.engine.as_ref().is_some_and(|engine| engine.pending() < MAX_IN_FLIGHT)
            && self.resolving.len() < MAX_LOOKUPS
        {
            let Some((key, work)) = self.waiting.pop_front().or_else(|| self.next_target()) else { return };
            let Some(engine) = &mut self.engine else { return };
            match work {
                Work::Probes(probes) => engine.probe(key, probes),
                Work::Connect(addrs) => self.unconnected.push_back((key, addrs)),
                Work::Target(index) => {
                    let Some(Target::Server(server)) = self.targets.get(index) else { continue };
                    match &server.host {
                        Host::Ip(ip) => engine.probe(key, server.probes(&[SocketAddr::new(*ip, 0)], detail)),
                        Host::Name(_) => {
                            let host = server.host.clone();
                            let family = self.config.only_family();
                            self.resolving.spawn(async move {
                                let addresses = resolve(&host, 0, family).await;
                                Resolved { key, target_index: index, addresses }
                            });
                        }
                    }
                }
            }
        }
    }

    /// Starts to connect to servers, as many as there is room for.
    fn start_connects(&mut self) {
        while self.connecting.len() < MAX_CONNECTS {
            let Some((key, addrs)) = self.unconnected.pop_front() else { break };
            let config = self.config.clone();
            self.connecting.spawn(async move {
                let result = measure_connect(addrs, &config).await;
                Connected { key, result }
            });
        }
    }

    /// The next target of this pass that is a server.
    fn next_target(&mut self) -> Option<(u64, Work)> {
        let index = self.unstarted.by_ref().find(|index| matches!(self.targets[*index], Target::Server(_)))?;
        Some((self.add_pending(PendingServer::Named(index)), Work::Target(index)))
    }

    fn handle_listed(&mut self, target_index: usize, listed: FetchedServer) -> ScanEvent {
        let work = self.work_of(&listed);
        let server = ScannedServer::listed(listed, target_index);
        let is_probed = work.is_some();
        if let Some(work) = work {
            self.enqueue(PendingServer::Listed(Box::new(server.clone())), work);
        }
        ScanEvent::Listed { server, is_probed }
    }

    /// How a listed server is reached, if it is.
    fn work_of(&self, listed: &FetchedServer) -> Option<Work> {
        let family: Option<Family> = self.config.only_family();
        let detail: Detail = self.config.detail?;
        let probes = listed.probes(detail, family);
        if !probes.is_empty() {
            return Some(Work::Probes(probes));
        }
        let is_tcp = listed.info.lobby.as_ref().is_some_and(|lobby| lobby.transport == Transport::Tcp);
        let endpoints = listed.endpoints.iter().copied().filter(|addr| Family::allows(family, addr.ip()));
        let addrs: Vec<_> = endpoints.filter(|_| self.config.connect_tcp && is_tcp).collect();
        (!addrs.is_empty()).then_some(Work::Connect(addrs))
    }

    fn enqueue(&mut self, server: PendingServer, work: Work) {
        if self.engine.is_some() {
            let key = self.add_pending(server);
            self.waiting.push_back((key, work));
        }
    }

    fn add_pending(&mut self, server: PendingServer) -> u64 {
        self.last_key += 1;
        self.pending.insert(self.last_key, server);
        self.last_key
    }

    fn handle_resolved(&mut self, Resolved { key, target_index, addresses }: Resolved) -> Option<ScanEvent> {
        match addresses {
            Ok(addresses) => {
                let detail = self.config.detail?;
                let probes = self.server(target_index)?.probes(&addresses, detail);
                self.engine.as_mut()?.probe(key, probes);
                None
            }
            Err(error) => self.handle_result(GroupResult { key, result: Err(ProbeFailure { error, address: None }) }),
        }
    }

    fn handle_connected(&mut self, Connected { key, result }: Connected) -> Option<ScanEvent> {
        let mut server = self.take_pending(key)?;
        Some(match result {
            Ok((address, time)) => {
                server.address = Some(address);
                server.error = None;
                let round_trip = RoundTrip { time, method: RttMethod::Connect };
                server.reply = Some(ReplyStats { round_trip, retries: 0, missing: Vec::new() });
                ScanEvent::Answered(server)
            }
            Err(error) => {
                server.error = Some(error);
                ScanEvent::Failed(server)
            }
        })
    }

    fn handle_result(&mut self, GroupResult { key, result }: GroupResult) -> Option<ScanEvent> {
        let mut server = self.take_pending(key)?;
        Some(match result {
            Ok(reply) => {
                server.apply_reply(reply);
                ScanEvent::Answered(server)
            }
            Err(failure) => {
                server.address = server.address.or(failure.address);
                server.error = Some(failure.error);
                ScanEvent::Failed(server)
            }
        })
    }

    fn take_pending(&mut self, key: u64) -> Option<ScannedServer> {
        match self.pending.remove(&key)? {
            PendingServer::Listed(server) => Some(*server),
            PendingServer::Named(index) => Some(ScannedServer::named(self.server(index)?, index)),
        }
    }

    fn server(&self, index: usize) -> Option<&ServerAddress> {
        match self.targets.get(index) {
            Some(Target::Server(server)) => Some(server),
            _ => None,
        }
    }
}

async fn receive(events: &mut Option<mpsc::UnboundedReceiver<ListEvent>>) -> Option<ListEvent> {
    events.as_mut()?.recv().await
}

async fn next_result(engine: &mut Option<ProbeEngine>) -> Option<GroupResult> {
    engine.as_mut()?.next().await
}
