//! A node of a cluster: what to write, what to apply, and when to read everything again.

mod bans;
mod contact;
mod contact_monitor;
mod defect;
mod loading;
mod log;
mod outbox;
mod pending;
mod update;

pub use contact::NodeState;
pub use contact_monitor::{ContactEvent, ContactMonitor};
pub use defect::StoreDefect;
pub use update::Update;

use crate::{
    StoreClock,
    request::{
        FORMAT, NodeRow, OLDEST_FORMAT, OpenedStore, Reply, Request, RequestId, RequestKind, StoreError, StoreErrorKind,
    },
};
use bans::ReadState;
use contact::Contact;
use loading::Loading;
use log::LogPosition;
use outbox::Outbox;
use rallypoint_lobby_proto::{LeaseRenewal, PublicId};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// Interval between two reports of a node about itself: every third tick.
const REPORT_INTERVAL: Duration = Duration::from_millis(2_900);

/// Interval between two ticks.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval between two ticks while more leases have ended than one tick removes.
const SHORT_TICK_INTERVAL: Duration = Duration::from_millis(20);

/// How long servers of other nodes stay after the store has lost changes or was emptied: their nodes write them again.
const REFILL_TIME: Duration = Duration::from_secs(10);

/// If this many servers came back within [`REFILL_TIME`], the store is still being filled, and the others stay for as long again.
const REFILL_PROGRESS: usize = 1_000;

/// Interval at which a node that was refused tries again: the store may have been emptied, or set up by the right nodes by now.
const REFUSED_RETRY: Duration = Duration::from_secs(10);

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
    /// Times that something was found to be wrong with the content of the store ([`StoreDefect`]).
    pub defects: u64,
    /// Servers that were not tracked because there are too many.
    pub untracked: u64,
    /// Servers in the store, as far as this node knows.
    pub servers: usize,
}

/// A node of a cluster, without sockets and clock.
///
/// * Getters: [`state`](Self::state), [`stats`](Self::stats), [`nodes`](Self::nodes), [`clock`](Self::clock) and others.
/// * In: [`handle_changes`](Self::handle_changes), [`handle_renewals`](Self::handle_renewals),
///   [`handle_ban`](Self::handle_ban), [`handle_reply`](Self::handle_reply).
/// * Commands: [`set_report`](Self::set_report), [`reread`](Self::reread), [`reread_bans`](Self::reread_bans).
/// * Out: [`poll_request`](Self::poll_request), [`poll_update`](Self::poll_update), [`take_defect`](Self::take_defect),
///   [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct ClusterNode {
    config: NodeConfig,
    contact: Contact,
    clock: StoreClock,
    tick: TickState,
    /// The position in the log when states of servers were last requested.
    fetch_seq: u64,
    /// Until when the registry keeps servers of other nodes.
    remote_deadline: Instant,
    /// The content of the store that is known here.
    epoch: Option<[u8; 16]>,
    position: LogPosition,
    loading: Option<Loading>,
    bans: ReadState,
    /// Whether the store is opened again to read everything, not because the contact was lost.
    is_reload: bool,
    /// Servers in the store, with the number of the last change that is known.
    known: HashMap<PublicId, u64>,
    outbox: Outbox,
    refill: Option<Refill>,
    updates: VecDeque<Update>,
    report: Vec<u8>,
    tokens: u64,
    nodes: Vec<NodeRow>,
    /// A defect of the store's content that is not reported yet.
    defect: Option<StoreDefect>,
    stats: NodeStats,
}

/// The requests that keep the contact alive: when the next one is due, and what was known when the last one was sent.
#[derive(Debug)]
struct TickState {
    next: Instant,
    /// When a tick carries the node's report again.
    next_report: Instant,
    /// The position in the log when the last tick was sent.
    seq: u64,
    /// Number of servers in the store, as far as this node knew, when the last tick was sent.
    known: usize,
}

impl TickState {
    fn new(now: Instant) -> Self {
        Self { next: now, next_report: now, seq: 0, known: 0 }
    }
}

/// A store that has lost servers: their nodes write them again, and until then they stay listed.
#[derive(Clone, Copy, Debug)]
struct Refill {
    /// When servers that are not in the store are removed.
    ends_at: Instant,
    /// Number of servers in the store when that time was set.
    known: usize,
}

impl ClusterNode {
    /// A node that has no contact with the store yet.
    #[must_use]
    pub fn new(config: NodeConfig, now: Instant) -> Self {
        Self {
            config,
            contact: Contact::new(now),
            clock: StoreClock::default(),
            tick: TickState::new(now),
            fetch_seq: 0,
            remote_deadline: now,
            epoch: None,
            position: LogPosition::default(),
            loading: None,
            bans: ReadState::default(),
            is_reload: false,
            known: HashMap::new(),
            outbox: Outbox::default(),
            refill: None,
            updates: VecDeque::new(),
            report: Vec::new(),
            tokens: 0,
            nodes: Vec::new(),
            defect: None,
            stats: NodeStats::default(),
        }
    }

    /// The connection state.
    #[must_use]
    pub fn state(&self) -> &NodeState {
        &self.contact.state
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        NodeStats { seq: self.position.seq, servers: self.known.len(), ..self.stats }
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
        self.contact.last
    }

    /// When the current contact began, or the last one if there is none.
    #[must_use]
    pub fn contact_since(&self) -> Instant {
        self.contact.opened_at
    }

    /// Whether the contact is as good as it was before it was lost: all entries are loaded, and each kind of request that has
    /// failed since has succeeded, or there was no failure for some seconds.
    #[must_use]
    pub fn has_recovered(&self, now: Instant) -> bool {
        self.contact.state == NodeState::Following && self.contact.has_recovered(now)
    }

    /// Sets what the node reports about itself to the others.
    pub fn set_report(&mut self, report: Vec<u8>) {
        self.report = report;
    }

    /// Number of changes that can be handed over now.
    #[must_use]
    pub fn free_changes(&self) -> usize {
        if self.contact.is_connected() { self.outbox.free_changes() } else { 0 }
    }

    /// Handles renewed leases. Without contact they are dropped: all leases are reported again afterwards.
    pub fn handle_renewals(&mut self, renewals: impl IntoIterator<Item = LeaseRenewal>) {
        if self.contact.is_connected() {
            self.outbox.push_leases(renewals);
        }
    }

    /// Whether leases can be handed over now.
    #[must_use]
    pub fn has_room_for_renewals(&self) -> bool {
        self.contact.is_connected() && self.outbox.has_room_for_leases()
    }

    /// The next request, if one should be sent now.
    pub fn poll_request(&mut self, now: Instant) -> Option<(RequestId, Request)> {
        let Some(epoch) = self.epoch.filter(|_| self.contact.is_connected()) else {
            let is_due = now >= self.contact.retry_at && self.contact.is_idle(RequestKind::Open);
            let request = is_due.then(|| self.open_request())?;
            return self.begin(request);
        };
        if now >= self.tick.next && self.contact.is_idle(RequestKind::Tick) {
            let request = self.tick_request(now, epoch);
            return self.begin(request);
        }
        if self.bans.is_due && self.contact.is_idle(RequestKind::Bans) {
            self.bans.is_due = false;
            return self.begin(Request::Bans);
        }
        if let Some(loading) = &self.loading
            && self.contact.is_idle(RequestKind::Scan)
        {
            return self.begin(Request::Scan { cursor: loading.cursor() });
        }
        if self.loading.is_none() && self.contact.is_idle(RequestKind::ReadLog) {
            return self.begin(Request::ReadLog { after: self.position.seq });
        }
        if self.outbox.has_writes() && self.contact.is_idle(RequestKind::Write) {
            let writes = self.outbox.begin_write(&self.clock).into_iter();
            let writes = writes.map(|write| (self.next_token(), write)).collect();
            return self.begin(Request::Write { epoch, writes });
        }
        if self.contact.is_idle(RequestKind::Fetch)
            && let Some(ids) = self.outbox.begin_fetch()
        {
            self.fetch_seq = self.position.seq;
            return self.begin(Request::Fetch(ids));
        }
        let leases = self.outbox.take_leases(self.contact.in_flight(RequestKind::Renew), &self.clock)?;
        self.stats.renewed += leases.len() as u64;
        self.begin(Request::Renew(leases))
    }

    fn begin(&mut self, request: Request) -> Option<(RequestId, Request)> {
        Some((self.contact.begin(request.kind()), request))
    }

    /// Handles the reply to a request, or its failure.
    pub fn handle_reply(&mut self, sent: Instant, now: Instant, id: RequestId, reply: Result<Reply, StoreError>) {
        if !self.contact.end(id) {
            return;
        }
        if reply.is_ok() {
            self.contact.succeed(now, id.kind);
        }
        match reply {
            Err(error) => {
                if error.kind == StoreErrorKind::TooLarge && id.kind == RequestKind::ReadLog {
                    self.skip_log();
                }
                self.fail(now, id.kind, error);
            }
            Ok(Reply::Opened(opened)) => self.handle_opened(sent, now, &opened),
            Ok(Reply::Ticked(None) | Reply::Written(None)) => self.handle_emptied(now),
            Ok(Reply::Ticked(Some(ticked))) => self.handle_ticked(sent, now, ticked),
            Ok(Reply::Written(Some(results))) if !self.outbox.has_results(&results) => {
                self.fail(now, RequestKind::Write, incomplete());
            }
            Ok(Reply::Fetched(values)) if !self.outbox.has_states(values.len()) => {
                self.fail(now, RequestKind::Fetch, incomplete());
            }
            Ok(Reply::Written(Some(results))) => self.handle_written(now, results),
            Ok(Reply::Renewed(missing)) => {
                self.stats.lost_leases += missing.len() as u64;
                self.updates.extend(missing.into_iter().map(Update::Report));
            }
            Ok(Reply::Fetched(values)) => self.handle_fetched(now, values),
            Ok(Reply::Scanned { cursor, entries, malformed }) => self.handle_scanned(now, cursor, entries, malformed),
            Ok(Reply::Bans { bans, left_out, malformed }) => {
                self.stats.malformed = self.stats.malformed.saturating_add(malformed);
                let values = bans.into_iter().map(|(_, value)| value).collect();
                self.updates.push_back(Update::AllBans { values, left_out });
            }
            Ok(Reply::Log { records, is_malformed }) => self.handle_log(now, records, is_malformed),
        }
    }

    /// The next update for the registry and the bans.
    pub fn poll_update(&mut self, now: Instant) -> Option<Update> {
        let due =
            self.refill.filter(|refill| refill.ends_at <= now && self.loading.is_none() && self.contact.is_connected());
        if let Some(refill) = due {
            if self.known.len() >= refill.known.saturating_add(REFILL_PROGRESS) {
                self.await_refill(now, REFILL_TIME);
            } else {
                self.refill = None;
                self.updates.push_back(Update::RemoveMissing(self.known_or_pending()));
            }
        }
        self.updates.pop_front()
    }

    /// When [`poll_request`](Self::poll_request) or [`poll_update`](Self::poll_update) should be called next, if nothing happens
    /// before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.contact.state {
            NodeState::Refused(_) | NodeState::Disconnected(_) => self.contact.retry_at,
            // The store is opened again.
            NodeState::Loading if self.epoch.is_none() => self.contact.retry_at,
            NodeState::Loading | NodeState::Following => {
                self.refill.map_or(self.tick.next, |refill| refill.ends_at.min(self.tick.next))
            }
        };
        Some(next)
    }

    fn open_request(&mut self) -> Request {
        let epoch = self.next_token();
        Request::Open { epoch, secret_check: self.config.secret_check }
    }

    fn tick_request(&mut self, now: Instant, epoch: [u8; 16]) -> Request {
        self.tick.next = now + TICK_INTERVAL;
        self.tick.seq = self.position.seq;
        self.tick.known = self.known.len();
        let token = self.next_token();
        let mut report = None;
        if now >= self.tick.next_report {
            self.tick.next_report = now + REPORT_INTERVAL;
            report = Some(&self.report).filter(|report| !report.is_empty()).cloned();
            self.outbox.flush_leases();
        }
        Request::Tick { epoch, token, node: self.config.node, report, after: self.tick.seq }
    }

    /// A number that no other change or content of the store has.
    fn next_token(&mut self) -> [u8; 16] {
        self.tokens += 1;
        (u128::from(self.config.node) << 64 | u128::from(self.tokens)).to_be_bytes()
    }

    /// A request has failed: gives up the connection. What was being written is written again later.
    fn fail(&mut self, now: Instant, kind: RequestKind, error: StoreError) {
        self.contact.fail(kind);
        self.stats.failures += 1;
        self.cancel_requests();
        self.outbox.lose_contact();
        self.forget_partial_load();
        self.contact.lose(now, error);
    }

    /// A record of the log cannot be read. Everything is read with the next contact instead, and the log from there on.
    fn skip_log(&mut self) {
        self.stats.malformed = self.stats.malformed.saturating_add(1);
        self.epoch = None;
        self.is_reload = true;
    }

    /// Discards an incomplete load: everything has to be read again.
    fn forget_partial_load(&mut self) {
        if let Some(loading) = self.loading.take() {
            self.epoch = None;
            self.is_reload = loading.is_refill();
        }
    }

    fn handle_opened(&mut self, sent: Instant, now: Instant, opened: &OpenedStore) {
        if opened.format > FORMAT {
            let format = opened.format;
            let reason = format!(
                "the store is used by nodes of a later version (format {format}, this program knows {FORMAT}): update this node"
            );
            return self.contact.refuse(now + REFUSED_RETRY, reason);
        }
        if opened.format < OLDEST_FORMAT {
            let format = opened.format;
            let reason = format!(
                "the store is used by nodes of an earlier version (format {format}, this program needs {OLDEST_FORMAT} or later): \
                 update those nodes, or choose another cluster name"
            );
            return self.contact.refuse(now + REFUSED_RETRY, reason);
        }
        if opened.secret_check != self.config.secret_check {
            let reason = "the nodes in the store have another secret (field secret of the key meta): give all nodes the same one, or \
                          choose another cluster name";
            return self.contact.refuse(now + REFUSED_RETRY, reason.into());
        }
        self.contact.open(now);
        self.clock.handle_sample(sent, now, opened.time);
        self.tick.next = now;
        self.tick.next_report = now;
        self.bans.handle_opened();
        // After a longer outage the registry has dropped servers that the store may still have.
        let is_complete = now < self.remote_deadline;
        self.extend_remote_deadline(now);
        self.updates.push_back(Update::ReportLeases);
        let is_same = self.epoch == Some(opened.epoch);
        let is_continued = is_complete && is_same && self.position.is_at_or_before(opened.seq, &opened.token);
        let is_refill = (is_complete && self.epoch.is_some()) || std::mem::take(&mut self.is_reload);
        if self.epoch.is_some() && !is_same {
            self.note_defect(StoreDefect::Emptied);
        } else if is_same && is_complete && !is_continued {
            self.note_defect(StoreDefect::LostChanges);
        }
        self.epoch = Some(opened.epoch);
        if is_continued {
            self.contact.state = NodeState::Following;
            if self.refill.is_some() {
                // The other nodes could not write either.
                self.await_refill(now, REFILL_TIME);
            }
        } else {
            // A store that was emptied, or has lost changes, is filled again by the nodes.
            self.load(now, LogPosition { seq: opened.seq, token: opened.token.clone() }, is_refill);
        }
    }

    /// Keeps servers that are not in the store for this time: other nodes may write them again.
    fn await_refill(&mut self, now: Instant, time: Duration) {
        self.refill = Some(Refill { ends_at: now + time, known: self.known.len() });
    }

    fn extend_remote_deadline(&mut self, now: Instant) {
        self.remote_deadline = now + self.config.outage_limit;
        self.updates.push_back(Update::RemoteDeadline(self.remote_deadline));
    }

    /// The store has another epoch: it was emptied.
    fn handle_emptied(&mut self, now: Instant) {
        self.forget_partial_load();
        self.cancel_requests();
        self.outbox.lose_contact();
        let error = StoreError { kind: StoreErrorKind::Emptied, message: "the store has lost its content".into() };
        self.contact.reopen(now, NodeState::Disconnected(error));
    }
}

/// A reply that does not have one result for each part of its request.
fn incomplete() -> StoreError {
    contact::unreachable("the store gave an incomplete reply: another program may have changed its keys")
}
