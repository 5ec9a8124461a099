//! A node of a cluster: what to write, what to apply, and when to read everything again.

mod loading;
mod pending;
mod writes;

use crate::{
    StoreClock,
    record::{EntryValue, LogRecord, RecordKind},
    request::{
        FORMAT, LeaseWrite, NodeRow, OpenedStore, Reply, Request, RequestId, RequestKind, StoreError, Ticked, Write,
    },
};
use loading::Loading;
use pending::{Pending, ServerState};
use rallypoint_lobby_proto::{
    ApplyMode, LeaseRenewal, ListingOrigin, PublicId, Removal, ReplicatedEndpoint, ReplicatedServer,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

/// Interval between two ticks.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of changes in one request.
const MAX_WRITES: usize = 500;

/// Maximum number of leases in one request.
const MAX_LEASES: usize = 500;

/// Maximum number of requests for leases at the same time: with a store on another continent, one at a time would be too slow
/// for a hundred thousand servers.
const MAX_RENEWS: usize = 4;

/// Number of leases that wait for a request; further ones are reported with the next sweep.
const MAX_WAITING_LEASES: usize = 20_000;

/// First and last pause before the store is contacted again.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// How long servers of other nodes stay after the store has lost changes or was emptied: their nodes write them again.
const REFILL_TIME: Duration = Duration::from_secs(10);

/// Configuration of a [`ClusterNode`].
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Random number of this node, and of this start of it.
    pub node: u64,
    /// Derived from the cluster's secret.
    pub secret_check: [u8; 16],
    /// How long servers of other nodes stay listed without contact with the store. Default: 5 minutes.
    pub outage_limit: Duration,
    /// Maximum number of servers that are tracked.
    pub max_servers: usize,
}

/// What the owner of a [`ClusterNode`] applies to the registry, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Apply {
    /// A server has this state.
    Put(Box<ReplicatedServer>, ApplyMode),
    /// A server is not in the store any more.
    Remove(PublicId, Removal),
    /// Servers that this node heard and that are not among these are reported again.
    ReportMissing(Arc<HashSet<PublicId>>),
    /// Servers that are not among these are not in the store.
    RemoveMissing(Arc<HashSet<PublicId>>),
    /// The state of a server is reported again.
    Report(PublicId),
    /// All leases are reported again.
    ReportLeases,
    /// Servers of other nodes stay until this time without further contact with the store.
    RemoteDeadline(Instant),
    /// A ban was added, changed or lifted.
    Ban {
        /// Its subject.
        subject: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
}

/// How a node stands to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It has no contact, for this reason.
    Disconnected(StoreError),
    /// It has contact and reads everything.
    Loading,
    /// It has everything, and reads the log.
    Following,
    /// It must not take part: its secret or version is not the store's.
    Refused(String),
}

/// Counters of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Number of the last change that was applied.
    pub seq: u64,
    /// Number of changes in the store that were not applied when it last answered.
    pub behind: u64,
    /// Changes of other nodes, and own ones as the store has decided them, that were applied.
    pub applied: u64,
    /// Changes that were written.
    pub written: u64,
    /// Changes that the store refused, because another node had later ones.
    pub refused: u64,
    /// Leases that were renewed.
    pub renewed: u64,
    /// Leases that the store had lost.
    pub lost_leases: u64,
    /// Times that everything was read.
    pub loads: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Values in the store that are not valid.
    pub malformed: u64,
    /// Servers that were not tracked because there are too many.
    pub untracked: u64,
    /// Servers in the store, as far as this node knows.
    pub servers: usize,
}

/// A node of a cluster, without sockets and clock.
///
/// * Getters: [`state`](Self::state), [`stats`](Self::stats), [`nodes`](Self::nodes), [`clock`](Self::clock).
/// * In: [`handle_changes`](Self::handle_changes), [`handle_renewals`](Self::handle_renewals),
///   [`handle_ban`](Self::handle_ban), [`handle_reply`](Self::handle_reply).
/// * Commands: [`set_report`](Self::set_report), [`reread`](Self::reread).
/// * Out: [`poll_request`](Self::poll_request), [`poll_apply`](Self::poll_apply), [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct ClusterNode {
    config: NodeConfig,
    state: NodeState,
    clock: StoreClock,
    /// Number of connections so far: replies of earlier ones are ignored.
    session: u64,
    in_flight: HashMap<RequestKind, usize>,
    retry_at: Instant,
    retry_delay: Duration,
    next_tick: Instant,
    /// The position in the log when the last tick was sent.
    tick_position: u64,
    last_contact: Instant,
    /// Until when the registry keeps servers of other nodes.
    remote_deadline: Instant,
    epoch: Option<[u8; 16]>,
    /// Number and token of the last record of the log that was applied.
    position: u64,
    token: Vec<u8>,
    loading: Option<Loading>,
    needs_bans: bool,
    /// Whether the store is opened again to read everything, not because the contact was lost.
    is_reload: bool,
    /// Servers in the store, with the number of the last change that is known.
    known: HashMap<PublicId, u64>,
    pending: HashMap<PublicId, Pending>,
    writes: VecDeque<Write>,
    /// The changes that are being written.
    writing: Vec<Write>,
    leases: VecDeque<LeaseRenewal>,
    fetches: VecDeque<PublicId>,
    fetching: Vec<PublicId>,
    /// When servers that are not in the store are removed.
    remove_missing_at: Option<Instant>,
    applies: VecDeque<Apply>,
    report: Vec<u8>,
    tokens: u64,
    nodes: Vec<NodeRow>,
    stats: NodeStats,
}

impl ClusterNode {
    /// A node that has no contact with the store yet.
    #[must_use]
    pub fn new(config: NodeConfig, now: Instant) -> Self {
        let not_yet = StoreError {
            kind: crate::StoreErrorKind::Unreachable,
            message: "the store has not been contacted yet".into(),
        };
        Self {
            config,
            state: NodeState::Disconnected(not_yet),
            clock: StoreClock::default(),
            session: 0,
            in_flight: HashMap::new(),
            retry_at: now,
            retry_delay: RETRY_MIN,
            next_tick: now,
            tick_position: 0,
            last_contact: now,
            remote_deadline: now,
            epoch: None,
            position: 0,
            token: Vec::new(),
            loading: None,
            needs_bans: false,
            is_reload: false,
            known: HashMap::new(),
            pending: HashMap::new(),
            writes: VecDeque::new(),
            writing: Vec::new(),
            leases: VecDeque::new(),
            fetches: VecDeque::new(),
            fetching: Vec::new(),
            remove_missing_at: None,
            applies: VecDeque::new(),
            report: Vec::new(),
            tokens: 0,
            nodes: Vec::new(),
            stats: NodeStats::default(),
        }
    }

    /// How the node stands to the store.
    #[must_use]
    pub fn state(&self) -> &NodeState {
        &self.state
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        NodeStats { seq: self.position, servers: self.known.len(), ..self.stats }
    }

    /// The nodes that the store knows.
    #[must_use]
    pub fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }

    /// The store's clock.
    #[must_use]
    pub fn clock(&self) -> &StoreClock {
        &self.clock
    }

    /// When the store last answered.
    #[must_use]
    pub fn last_contact(&self) -> Instant {
        self.last_contact
    }

    /// Sets what the node reports about itself to the others.
    pub fn set_report(&mut self, report: Vec<u8>) {
        self.report = report;
    }

    /// Number of changes that can be handed over now.
    #[must_use]
    pub fn free_changes(&self) -> usize {
        if self.is_connected() { MAX_WRITES.saturating_sub(self.writes.len()) } else { 0 }
    }

    /// Handles renewed leases. Without contact they are dropped: all leases are reported again afterwards.
    pub fn handle_renewals(&mut self, renewals: impl IntoIterator<Item = LeaseRenewal>) {
        if self.is_connected() {
            self.leases.extend(renewals);
            if self.leases.len() > MAX_WAITING_LEASES {
                self.leases.clear();
                self.applies.push_back(Apply::ReportLeases);
            }
        }
    }

    /// Number of leases that can be handed over now.
    #[must_use]
    pub fn has_room_for_renewals(&self) -> bool {
        self.is_connected() && self.leases.len() < MAX_LEASES * MAX_RENEWS
    }

    /// The next request, if one should be sent now.
    pub fn poll_request(&mut self, now: Instant) -> Option<(RequestId, Request)> {
        let request = self.next_request(now)?;
        let kind = request.kind();
        *self.in_flight.entry(kind).or_default() += 1;
        Some((RequestId { session: self.session, kind }, request))
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        let is_idle = |node: &Self, kind| node.in_flight.get(&kind).is_none_or(|count| *count == 0);
        if let NodeState::Refused(_) = self.state {
            return None;
        }
        let Some(epoch) = self.epoch.filter(|_| self.is_connected()) else {
            let is_due = now >= self.retry_at && is_idle(self, RequestKind::Open);
            return is_due.then(|| self.open_request());
        };
        if now >= self.next_tick && is_idle(self, RequestKind::Tick) {
            self.next_tick = now + TICK_INTERVAL;
            self.tick_position = self.position;
            let token = self.next_token();
            return Some(Request::Tick { epoch, token, node: self.config.node, report: self.report.clone() });
        }
        if self.needs_bans && is_idle(self, RequestKind::Bans) {
            self.needs_bans = false;
            return Some(Request::Bans);
        }
        if let Some(loading) = &self.loading
            && is_idle(self, RequestKind::Scan)
        {
            return Some(Request::Scan { cursor: loading.cursor() });
        }
        if self.loading.is_none() && is_idle(self, RequestKind::ReadLog) {
            return Some(Request::ReadLog { after: self.position });
        }
        if !self.writes.is_empty() && is_idle(self, RequestKind::Write) {
            return Some(self.write_request(epoch));
        }
        if !self.fetches.is_empty() && is_idle(self, RequestKind::Fetch) {
            let count = self.fetches.len().min(MAX_WRITES);
            self.fetching = self.fetches.drain(..count).collect();
            return Some(Request::Fetch(self.fetching.clone()));
        }
        let renews = self.in_flight.get(&RequestKind::Renew).copied().unwrap_or(0);
        if !self.leases.is_empty() && renews < MAX_RENEWS {
            let count = self.leases.len().min(MAX_LEASES);
            self.stats.renewed += count as u64;
            let leases = self.leases.drain(..count);
            let write = |lease: LeaseRenewal| LeaseWrite {
                id: lease.public_id,
                is_ipv6: lease.is_ipv6,
                deadline: self.clock.store_time(lease.deadline),
            };
            return Some(Request::Renew(leases.map(write).collect()));
        }
        None
    }

    /// Handles the reply to a request, or its failure.
    pub fn handle_reply(&mut self, sent: Instant, now: Instant, id: RequestId, reply: Result<Reply, StoreError>) {
        if id.session != self.session {
            return;
        }
        if let Some(count) = self.in_flight.get_mut(&id.kind) {
            *count = count.saturating_sub(1);
        }
        match reply {
            Err(error) => self.disconnect(now, error),
            Ok(reply) => {
                self.handle_contact(now);
                self.handle_success(sent, now, reply);
            }
        }
    }

    /// The next change for the registry.
    pub fn poll_apply(&mut self, now: Instant) -> Option<Apply> {
        if self.remove_missing_at.is_some_and(|at| at <= now) && self.loading.is_none() && self.is_connected() {
            self.remove_missing_at = None;
            self.applies.push_back(Apply::RemoveMissing(Arc::new(self.known_or_pending())));
        }
        self.applies.pop_front()
    }

    /// When [`poll_request`](Self::poll_request) or [`poll_apply`](Self::poll_apply) should be called next, if nothing happens
    /// before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.state {
            NodeState::Refused(_) => return None,
            NodeState::Disconnected(_) => self.retry_at,
            NodeState::Loading | NodeState::Following => self.next_tick,
        };
        Some(self.remove_missing_at.map_or(next, |at| at.min(next)))
    }

    fn is_connected(&self) -> bool {
        matches!(self.state, NodeState::Loading | NodeState::Following)
    }

    fn open_request(&mut self) -> Request {
        let mut epoch = [0; 16];
        epoch[..8].copy_from_slice(&self.config.node.to_be_bytes());
        self.tokens += 1;
        epoch[8..].copy_from_slice(&self.tokens.to_be_bytes());
        Request::Open { epoch, secret_check: self.config.secret_check }
    }

    fn next_token(&mut self) -> Vec<u8> {
        self.tokens += 1;
        [self.config.node.to_be_bytes(), self.tokens.to_be_bytes()].concat()
    }

    fn handle_contact(&mut self, now: Instant) {
        self.last_contact = now;
    }

    /// Gives up the connection. What was being written is written again later.
    fn disconnect(&mut self, now: Instant, error: StoreError) {
        self.stats.failures += 1;
        self.cancel_requests();
        self.leases.clear();
        if let Some(loading) = self.loading.take() {
            // What was read so far is incomplete.
            self.epoch = None;
            self.is_reload = loading.is_refill();
        }
        self.state = NodeState::Disconnected(error);
        self.retry_at = now + self.retry_delay;
        self.retry_delay = (self.retry_delay * 2).min(RETRY_MAX);
    }

    fn handle_success(&mut self, sent: Instant, now: Instant, reply: Reply) {
        match reply {
            Reply::Opened(opened) => self.handle_opened(sent, now, &opened),
            Reply::Ticked(None) | Reply::Written(None) => self.reopen(now),
            Reply::Ticked(Some(ticked)) => self.handle_ticked(sent, now, ticked),
            Reply::Written(Some(results)) => self.handle_written(now, results),
            Reply::Renewed(missing) => {
                self.stats.lost_leases += missing.len() as u64;
                self.applies.extend(missing.into_iter().map(Apply::Report));
            }
            Reply::Fetched(values) => {
                for (id, value) in std::mem::take(&mut self.fetching).into_iter().zip(values) {
                    let state = value.map_or(ServerState::lost(self.position), |value| {
                        ServerState::put(value.seq, value, ApplyMode::Change)
                    });
                    self.offer(now, id, state);
                }
            }
            Reply::Scanned { cursor, entries, malformed } => self.handle_scanned(now, cursor, entries, malformed),
            Reply::Bans(bans) => {
                self.applies.extend(bans.into_iter().map(|(subject, value)| Apply::Ban { subject, value }));
            }
            Reply::Log { records, is_malformed } => self.handle_log(now, records, is_malformed),
        }
    }

    fn handle_opened(&mut self, sent: Instant, now: Instant, opened: &OpenedStore) {
        if opened.format > FORMAT {
            self.state = NodeState::Refused(format!(
                "the store is used by nodes of a later version (format {}, this program knows {FORMAT}): update this node",
                opened.format
            ));
            return;
        }
        if opened.secret_check != self.config.secret_check {
            self.state = NodeState::Refused(
                "the nodes in the store have another secret: give all nodes the same one, or choose another cluster name"
                    .into(),
            );
            return;
        }
        self.clock.handle_sample(sent, now, opened.time);
        self.retry_delay = RETRY_MIN;
        self.next_tick = now;
        // After a longer outage the registry has dropped servers that the store may still have.
        let is_complete = now < self.remote_deadline;
        self.extend_remote_deadline(now);
        self.applies.push_back(Apply::ReportLeases);
        let is_continued = is_complete
            && self.epoch == Some(opened.epoch)
            && (opened.seq > self.position || (opened.seq == self.position && opened.token == self.token));
        let is_refill = (is_complete && self.epoch.is_some()) || std::mem::take(&mut self.is_reload);
        self.epoch = Some(opened.epoch);
        if is_continued {
            self.state = NodeState::Following;
        } else {
            // A store that was emptied, or has lost changes, is filled again by the nodes.
            self.load(now, opened.seq, opened.token.clone(), is_refill);
        }
    }

    fn extend_remote_deadline(&mut self, now: Instant) {
        self.remote_deadline = now + self.config.outage_limit;
        self.applies.push_back(Apply::RemoteDeadline(self.remote_deadline));
    }

    /// The store has another epoch: it was emptied.
    fn reopen(&mut self, now: Instant) {
        let error = StoreError { kind: crate::StoreErrorKind::Unreachable, message: "the store was emptied".into() };
        self.disconnect(now, error);
        self.retry_at = now;
    }

    fn handle_ticked(&mut self, sent: Instant, now: Instant, ticked: Ticked) {
        self.clock.handle_sample(sent, now, ticked.time);
        self.extend_remote_deadline(now);
        self.stats.behind = ticked.seq.saturating_sub(self.position);
        self.nodes = ticked.nodes;
        if self.loading.is_some() {
            return;
        }
        // A failover lost changes that were applied here. (Records that were read since the tick was sent do not count.)
        let has_lost_changes = ticked.seq < self.tick_position;
        let is_forked = ticked.seq == self.position && ticked.token != self.token;
        if has_lost_changes || is_forked {
            self.load(now, ticked.seq, ticked.token, true);
        }
    }

    fn handle_log(&mut self, now: Instant, records: Vec<LogRecord>, is_malformed: bool) {
        if self.loading.is_some() {
            return;
        }
        for record in records {
            if record.seq != self.position + 1 || record.previous != self.token {
                // Records are missing, or the store has lost some that were applied here.
                self.reload(now);
                return;
            }
            self.position = record.seq;
            self.token = record.token;
            self.handle_record(now, record.seq, record.kind);
        }
        if is_malformed {
            self.stats.malformed += 1;
            self.reload(now);
        }
    }

    fn handle_record(&mut self, now: Instant, seq: u64, kind: RecordKind) {
        match kind {
            RecordKind::Put { id, value, is_expiry } => {
                let mode = if is_expiry { ApplyMode::Expiry } else { ApplyMode::Change };
                self.offer(now, id, ServerState::put(seq, value, mode));
            }
            RecordKind::Remove { id, reason } => {
                let removal = reason.map_or(Removal::Lost, Removal::Change);
                self.offer(now, id, ServerState { seq, change: Err(removal) });
            }
            RecordKind::Ban { subject, value } => self.applies.push_back(Apply::Ban { subject, value }),
            RecordKind::Unknown => self.stats.malformed += 1,
        }
    }

    /// Applies a state of a server, unless a later one is known or a change of this node is on its way.
    fn offer(&mut self, now: Instant, id: PublicId, state: ServerState) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.defer(state);
            return;
        }
        let known = self.known.get(&id).copied();
        // After a scan, the log begins before the state that the scan has shown. Its record of that state is applied again: an
        // older record, of another server that had the endpoint before, may have displaced the server.
        if known.is_some_and(|known| known > state.seq) {
            return;
        }
        match state.change {
            Ok((value, mode)) => {
                if known.is_none() && self.known.len() >= self.config.max_servers {
                    self.stats.untracked += 1;
                    return;
                }
                self.known.insert(id, state.seq);
                self.stats.applied += 1;
                let server = self.replicated(now, id, *value);
                self.applies.push_back(Apply::Put(Box::new(server), mode));
            }
            Err(removal) => {
                self.known.remove(&id);
                self.stats.applied += 1;
                self.applies.push_back(Apply::Remove(id, removal));
            }
        }
    }

    fn replicated(&self, now: Instant, id: PublicId, value: EntryValue) -> ReplicatedServer {
        let since = self.clock.node_time(value.body.since).unwrap_or(now).min(now);
        let endpoint = |(internal, external)| ReplicatedEndpoint { internal, external, deadline: now };
        ReplicatedServer {
            public_id: id,
            lobby_id: value.body.lobby_id,
            origin: ListingOrigin::ALL.into_iter().find(|origin| *origin == value.origin).unwrap_or_default(),
            since,
            block: value.body.block,
            v4: value.v4.map(endpoint),
            v6: value.v6.map(endpoint),
        }
    }
}
