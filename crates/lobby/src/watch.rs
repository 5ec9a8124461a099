//! Watched servers: they cannot register themselves, and the operator lists them in the configuration. Each is probed every
//! 30 seconds.

mod listing;

pub(crate) use listing::probed_server;

use crate::{
    cluster::Duties,
    probe::{ProbePool, ProbeReason},
    service::RegistryHandle,
    table::ServerFeed,
    verify::{Verification, VerificationResult},
};
use rallypoint_lobby_proto::{ListingOrigin, ProbedOutcome, PublicId};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol, QueryReply};
use rallypoint_wire::lobby::ListId;
use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{self, MissedTickBehavior},
};

/// Interval between two probes of a server.
const INTERVAL: Duration = Duration::from_secs(30);

/// How long a reply keeps a server listed: after three probes without a reply it is removed.
const LEASE: Duration = Duration::from_secs(3 * INTERVAL.as_secs() + 10);

/// Interval between two lookups of a host name. A server that does not reply may have moved and is looked up before every
/// probe.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(300);

/// Time after which a lookup fails.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A server to watch.
///
/// ```
/// use rallypoint_lobby::WatchTarget;
/// use rallypoint_query_proto::Protocol;
/// use rallypoint_wire::lobby::ListId;
///
/// let target = WatchTarget {
///     host: "example.org".into(),
///     port: 6969.try_into()?,
///     protocol: Protocol::Bloodmasters,
///     list: ListId::BLOODMASTERS,
/// };
/// assert_eq!(target.to_string(), "bloodmasters://example.org:6969");
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchTarget {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: NonZeroU16,
    /// Query protocol.
    pub protocol: Protocol,
    /// List in which the server is listed.
    pub list: ListId,
}

/// The URL of the server: `bloodmasters://example.org:6969`.
impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, protocol, .. } = self;
        match host.contains(':') {
            true => write!(f, "{protocol}://[{host}]:{port}"),
            false => write!(f, "{protocol}://{host}:{port}"),
        }
    }
}

/// Watches a set of servers, each in a task of its own. Dropping it ends the tasks; the servers stay listed until their leases
/// expire.
#[derive(Debug)]
pub(crate) struct Watcher {
    context: WatchContext,
    runtime: Handle,
    tasks: HashMap<WatchTarget, JoinHandle<()>>,
}

/// State that the tasks of all watched servers share.
#[derive(Clone, Debug)]
pub(crate) struct WatchContext {
    pub registry: RegistryHandle,
    pub pool: ProbePool,
    pub feed: Arc<ServerFeed>,
    /// In a cluster, one node probes a server and the others list what it found.
    pub duties: Duties,
}

impl Watcher {
    /// A watcher without servers.
    pub fn new(context: WatchContext, runtime: Handle) -> Self {
        Self { context, runtime, tasks: HashMap::new() }
    }

    /// Watches these servers and no others.
    pub async fn set_targets(&mut self, targets: &[WatchTarget]) {
        let removed: Vec<_> = self.tasks.keys().filter(|known| !targets.contains(known)).cloned().collect();
        for target in removed {
            if let Some(task) = self.tasks.remove(&target) {
                task.abort();
                // The task has to end first: it could list the server once more.
                let _ = task.await;
            }
            let label = target.to_string();
            // A server that only changes its list stays the same server.
            if !targets.iter().any(|kept| kept.to_string() == label) {
                self.context.registry.remove_probed(label).await;
            }
        }
        for target in targets {
            let start = || self.runtime.spawn(self.context.clone().watch(target.clone()));
            self.tasks.entry(target.clone()).or_insert_with(start);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

impl WatchContext {
    /// Probes one server periodically.
    async fn watch(self, target: WatchTarget) {
        let mut ticks = time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut addrs = Vec::new();
        let mut looked_up: Option<Instant> = None;
        let mut state = WatchState::default();
        loop {
            ticks.tick().await;
            if !self.duties.is_own(target.to_string().as_bytes()) {
                state.listed_as = None;
                continue;
            }
            let is_outdated = looked_up.is_none_or(|at| at.elapsed() >= LOOKUP_INTERVAL);
            if is_outdated || state.listed_as.is_none() {
                addrs = look_up(&target).await;
                looked_up = Some(Instant::now());
            }
            let status = self.check(&target, &addrs, &mut state).await;
            if status != state.status {
                status.log(&target, addrs.is_empty());
                state.status = status;
            }
        }
    }

    /// Probes a server at those addresses that may be listed, and lists it if it replies. A name may resolve to an address of
    /// the lobby's own network: the owner of the name decides that, so no probe is sent there unless such servers are listed.
    async fn check(&self, target: &WatchTarget, addrs: &[SocketAddr], state: &mut WatchState) -> WatchStatus {
        let mut allowed = Vec::new();
        let mut refused = None;
        for &addr in addrs {
            match self.registry.precheck_probed(addr.ip(), target.port).await {
                None => allowed.push(addr),
                reason => refused = reason,
            }
        }
        if let Some(reason) = refused.filter(|_| allowed.is_empty()) {
            return WatchStatus::Refused(reason.code());
        }
        match self.probe(target, &allowed).await {
            Some(replies) => self.list(target, replies, state).await,
            None => WatchStatus::NotProbed,
        }
    }

    /// Probes all addresses, and returns those that replied with their replies; `None` if there are addresses and none of
    /// them could be probed.
    async fn probe(&self, target: &WatchTarget, addrs: &[SocketAddr]) -> Option<Vec<(IpAddr, Box<QueryReply>)>> {
        let mut probes = Vec::new();
        for &addr in addrs {
            let pool = self.pool.clone();
            let target = Probe::new(addr, target.protocol.players());
            let probe = tokio::spawn(async move { pool.probe(target, ProbeReason::Configured).await });
            probes.push((addr.ip(), probe));
        }
        let mut replies = Vec::new();
        let mut was_probed = addrs.is_empty();
        for (ip, probe) in probes {
            match probe.await {
                Ok(Some(ProbeOutcome::Answered(reply))) => replies.push((ip, reply)),
                Ok(Some(_)) => was_probed = true,
                Ok(None) | Err(_) => {}
            }
        }
        (was_probed || !replies.is_empty()).then_some(replies)
    }

    /// Lists a server with its first reply.
    async fn list(
        &self,
        target: &WatchTarget,
        replies: Vec<(IpAddr, Box<QueryReply>)>,
        state: &mut WatchState,
    ) -> WatchStatus {
        let ips = replies.iter().map(|(ip, _)| *ip).collect();
        let Some((_, reply)) = replies.into_iter().next() else {
            if let Some(id) = state.listed_as.take() {
                self.feed.report(VerificationResult::new(id, Verification::Unreachable)).await;
            }
            return WatchStatus::NoReply;
        };
        let server = probed_server(&reply, ListingOrigin::Watched, target, ips, LEASE);
        match self.registry.list_probed(server).await {
            Some(ProbedOutcome::Listed(id)) => {
                state.listed_as = Some(id);
                let info = Some(Arc::new(reply.info));
                self.feed
                    .report(VerificationResult { info, ..VerificationResult::new(id, Verification::Verified) })
                    .await;
                WatchStatus::Replies
            }
            Some(ProbedOutcome::Refused(reason)) => WatchStatus::Refused(reason.code()),
            Some(ProbedOutcome::Taken) | None => WatchStatus::Duplicate,
        }
    }
}

/// The current knowledge about a watched server.
#[derive(Debug, Default)]
struct WatchState {
    /// Its ID in the list, if it replied to the last probe.
    listed_as: Option<PublicId>,
    status: WatchStatus,
}

/// The state of a watched server. Changes of it are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WatchStatus {
    #[default]
    Replies,
    NoReply,
    NotProbed,
    Duplicate,
    Refused(&'static str),
}

impl WatchStatus {
    fn log(self, target: &WatchTarget, is_unresolved: bool) {
        match self {
            Self::Replies => tracing::info!(server = %target, "a watched server replies"),
            Self::NoReply if is_unresolved => {
                tracing::warn!(server = %target, "a watched server has no address: its name cannot be resolved");
            }
            Self::NoReply => tracing::warn!(server = %target, "a watched server does not reply"),
            Self::Duplicate => {
                tracing::info!(server = %target, "a watched server is configured twice: it is listed once");
            }
            Self::NotProbed => tracing::warn!(
                server = %target,
                "a watched server cannot be probed: this machine has no route to it, or no file descriptors left"
            ),
            Self::Refused(reason) => {
                tracing::warn!(server = %target, reason, "a watched server cannot be listed");
            }
        }
    }
}

/// The first address of each family.
async fn look_up(target: &WatchTarget) -> Vec<SocketAddr> {
    let lookup = tokio::net::lookup_host((&*target.host, target.port.get()));
    let Ok(Ok(found)) = time::timeout(LOOKUP_TIMEOUT, lookup).await else { return Vec::new() };
    let mut addrs: Vec<SocketAddr> = Vec::new();
    for addr in found {
        if !addrs.iter().any(|known| known.is_ipv4() == addr.is_ipv4()) {
            addrs.push(addr);
        }
    }
    addrs
}
