//! The table of listed servers, for readers: verification, web pages and the API.
//!
//! [`ServerTable`] is fed with the events of the lobby and with the time. It publishes snapshots that any thread can read
//! without waiting, together with the changes since the previous one. The cost of a change hardly depends on the number of
//! servers: records are kept in shards, of which a change copies one.

mod answer_budget;
mod feed;
mod latencies;
mod probe_results;
mod record;
mod rounds;
mod shards;
mod snapshot;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use feed::TableInput;
pub use feed::{ServerFeed, Subscription};
pub use record::{FoldedTexts, ServerRecord};
pub(crate) use rounds::visit_servers;
use shards::ShardIndex;
pub use snapshot::{TableSnapshot, Totals};
pub(crate) use task::run;

use crate::{NodeLatency, WallClock, verify::VerificationResult};
use latencies::Latencies;
use probe_results::ProbeResults;
use rallypoint_limit::Site;
use rallypoint_lobby_proto::{Event, ListSnapshot, ListedServer, PublicId, UnlistReason};
use rallypoint_wire::lobby::ListId;
use shards::{Shards, position};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// Minimum interval between two snapshots: however much changes, subscribers are notified at most ten times per second.
pub const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

/// Interval at which one shard is compared with its listings, so that each record is refreshed once per minute. Neither a new
/// latency, which the lobby changes in place, nor a corrected system clock is an event.
const REFRESH_INTERVAL: Duration = Duration::from_millis(60_000 / ShardIndex::COUNT as u64);

/// Memory for replies to probes, unless the owner of a table sets it.
const DEFAULT_ANSWER_BYTES: usize = 256 << 20;

/// The servers that a table contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableScope {
    /// Every listed server: what a web server displays.
    #[default]
    All,
    /// Only servers that can be verified because they state how to query them (E1). It saves about a kilobyte per server if
    /// no web server reads the table.
    Verifiable,
}

/// The table of listed servers.
///
/// * In: [`handle_list`](Self::handle_list) at the start and whenever events were lost,
///   [`handle_event`](Self::handle_event), [`handle_verification`](Self::handle_verification), and periodically
///   [`handle_wall_clock`](Self::handle_wall_clock).
/// * Out: [`handle_timeout`](Self::handle_timeout) returns what is to be published, at the time that
///   [`poll_timeout`](Self::poll_timeout) names.
///
/// ```
/// use rallypoint_lobby::{ServerTable, TableScope, WallClock};
/// use rallypoint_lobby_proto::{Config, Registry, HashKeys};
/// use std::time::{Instant, SystemTime};
///
/// let now = Instant::now();
/// let mut registry = Registry::new(Config::default(), HashKeys::default(), now)?;
/// let mut table = ServerTable::new(now, WallClock::new(now, SystemTime::now()), TableScope::All);
/// while let Some(event) = registry.poll_event() {
///     table.handle_event(&event);
/// }
/// assert!(table.handle_timeout(now).is_none(), "no server has registered, so there is nothing to publish");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ServerTable {
    scope: TableScope,
    clock: WallClock,
    shards: Shards,
    totals: Totals,
    lists: Arc<BTreeMap<ListId, Totals>>,
    published: Arc<TableSnapshot>,
    /// Servers that differ from the published snapshot; with the reason for those that left.
    touched: HashMap<PublicId, Option<UnlistReason>>,
    /// Whether something changed that is not an event.
    is_stale: bool,
    results: ProbeResults,
    /// Latencies by node of a cluster. Records get them when they are refreshed.
    latencies: Latencies,
    publish_not_before: Instant,
    refresh_at: Instant,
    refresh_shard: ShardIndex,
}

/// A new snapshot with the changes since the previous one.
#[derive(Clone, Debug)]
pub struct TableUpdate {
    /// All servers.
    pub snapshot: Arc<TableSnapshot>,
    /// The changes that are worth an event; may be empty. A server has at most one, or two if it moved to another list.
    pub changes: Vec<TableChange>,
}

/// A change of the table.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// A server was added.
    Listed(Arc<ServerRecord>),
    /// A server displays differently.
    Changed(Arc<ServerRecord>),
    /// A server was removed. The record is the last one that was published.
    Unlisted(Arc<ServerRecord>, UnlistReason),
}

impl ServerTable {
    /// An empty table.
    #[must_use]
    pub fn new(now: Instant, clock: WallClock, scope: TableScope) -> Self {
        let published = TableSnapshot::empty();
        Self {
            scope,
            clock,
            shards: published.shards.clone(),
            totals: published.totals,
            lists: Arc::clone(&published.lists),
            published: Arc::new(published),
            touched: HashMap::new(),
            is_stale: false,
            results: ProbeResults::new(DEFAULT_ANSWER_BYTES),
            latencies: Latencies::default(),
            publish_not_before: now,
            refresh_at: now + REFRESH_INTERVAL,
            refresh_shard: ShardIndex::default(),
        }
    }

    /// Sets the memory for replies of servers to probes, in bytes; 256 MiB by default. Player lists have half of it, a network
    /// (/24 or /48) has a sixteenth of it.
    #[must_use]
    pub fn with_answer_bytes(mut self, bytes: usize) -> Self {
        self.results = ProbeResults::new(bytes);
        self
    }

    /// The last published snapshot.
    #[must_use]
    pub fn published(&self) -> &Arc<TableSnapshot> {
        &self.published
    }

    /// Whether an event changes this table. A table of limited scope ignores most of them.
    #[must_use]
    pub fn is_relevant(&self, event: &Event) -> bool {
        match event {
            Event::Listed(listing) | Event::Changed(listing) => {
                self.is_in_scope(listing) || self.record(listing.public_id()).is_some()
            }
            Event::Unlisted(listing, _) => self.record(listing.public_id()).is_some() || self.is_in_scope(listing),
            Event::Check(_) => false,
        }
    }

    /// Handles an event of the lobby.
    pub fn handle_event(&mut self, event: &Event) {
        match event {
            Event::Listed(listing) | Event::Changed(listing) => self.put(listing),
            Event::Unlisted(listing, reason) => self.remove(listing.public_id(), *reason),
            Event::Check(_) => {}
        }
    }

    /// Handles the whole list: servers that are not part of it are removed.
    pub fn handle_list(&mut self, list: &ListSnapshot) {
        let mut listed = HashSet::with_capacity(self.totals.servers);
        for listing in list.lists().flat_map(|(_, list)| list.servers()) {
            listed.insert(listing.public_id());
            self.put(listing);
        }
        let removed: Vec<_> = self.records().map(|record| record.id).filter(|id| !listed.contains(id)).collect();
        for id in removed {
            // The reason was lost with the event; this is the most frequent one.
            self.remove(id, UnlistReason::Expired);
        }
    }

    /// Handles the result of probing a server. It may arrive before the server is in the table.
    pub fn handle_verification(&mut self, result: VerificationResult) {
        let id = result.id;
        let Some(record) = self.record(id).cloned() else {
            return self.results.insert_early(result);
        };
        let new = record.with_verification(self.results.insert(network_of(&record), result));
        // Player names are displayed on the server's own page only; lists change with the verification alone.
        let is_event = (record.verification, record.differences, record.session_key)
            != (new.verification, new.differences, new.session_key);
        if is_event || record.info != new.info {
            self.set(Arc::new(new));
            self.is_stale = true;
        }
        if is_event {
            self.touched.entry(id).or_default();
        }
    }

    /// Handles latencies that nodes of a cluster have measured. They are displayed within a minute, and are no reason for an
    /// event; the first one of a node is displayed with the next snapshot.
    pub fn handle_latencies(&mut self, now: Instant, latencies: Vec<(PublicId, NodeLatency)>) {
        for (id, latency) in latencies {
            let Some(record) = self.record(id).cloned() else { continue };
            let is_first = record.node_latencies().iter().all(|known| known.node != latency.node);
            self.latencies.insert(now, id, latency);
            if is_first && let Some(new) = record.with_latencies(self.latencies.of(now, id)) {
                self.set(Arc::new(new));
                self.is_stale = true;
            }
        }
    }

    /// Handles the current system time, which can be set at any time: for instance some time after the start of a machine
    /// without a battery-backed clock.
    pub fn handle_wall_clock(&mut self, now: Instant, wall: SystemTime) {
        self.clock.set(now, wall);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        if self.is_changed() { self.publish_not_before.min(self.refresh_at) } else { self.refresh_at }
    }

    /// Refreshes records, and returns a new snapshot if one is due.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<TableUpdate> {
        if self.refresh_at <= now {
            self.refresh_at = now + REFRESH_INTERVAL;
            self.refresh(now);
        }
        (self.is_changed() && self.publish_not_before <= now).then(|| self.publish(now))
    }

    fn is_changed(&self) -> bool {
        self.is_stale || !self.touched.is_empty()
    }

    fn publish(&mut self, now: Instant) -> TableUpdate {
        self.publish_not_before = now + PUBLISH_INTERVAL;
        self.is_stale = false;
        let touched = std::mem::take(&mut self.touched);
        let changes = touched.into_iter().flat_map(|(id, reason)| self.changes_of(id, reason)).collect();
        self.published = Arc::new(TableSnapshot {
            shards: self.shards.clone(),
            totals: self.totals,
            lists: Arc::clone(&self.lists),
            version: self.published.version + 1,
        });
        TableUpdate { snapshot: Arc::clone(&self.published), changes }
    }

    /// The net change of a server since the last snapshot, however many events there were in between.
    fn changes_of(&self, id: PublicId, reason: Option<UnlistReason>) -> impl Iterator<Item = TableChange> + use<> {
        let before = self.published.record(id);
        let after = self.record(id);
        let changes = match (before, after) {
            (None, None) => [None, None],
            (None, Some(record)) => [Some(TableChange::Listed(Arc::clone(record))), None],
            (Some(record), None) => {
                [Some(TableChange::Unlisted(Arc::clone(record), reason.unwrap_or(UnlistReason::Expired))), None]
            }
            (Some(before), Some(after)) => TableChange::between(before, after),
        };
        changes.into_iter().flatten()
    }

    fn put(&mut self, listing: &Arc<ListedServer>) {
        let id = listing.public_id();
        if !self.is_in_scope(listing) {
            // It may have been in scope before: a registration can change in any field.
            return self.remove(id, UnlistReason::Expired);
        }
        let is_same =
            |record: &Arc<ServerRecord>| record.listing.as_ref().is_some_and(|known| Arc::ptr_eq(known, listing));
        if self.record(id).is_some_and(is_same) {
            return;
        }
        let mut record = ServerRecord::new(listing, &self.clock);
        if let Some(known) = self.record(id) {
            record.copy_latencies(known);
        }
        if let Some(result) = self.results.get(id, network_of(&record)) {
            record = record.with_verification(result);
        }
        self.set(Arc::new(record));
        self.touched.insert(id, None);
    }

    fn is_in_scope(&self, listing: &ListedServer) -> bool {
        match self.scope {
            TableScope::All => true,
            TableScope::Verifiable => listing.has_query(),
        }
    }

    fn set(&mut self, record: Arc<ServerRecord>) {
        let lists = Arc::make_mut(&mut self.lists);
        lists.entry(record.list).or_default().add(&record);
        self.totals.add(&record);
        let shard = Arc::make_mut(&mut self.shards[ShardIndex::of(record.id)]);
        match position(shard, record.id) {
            Ok(index) => {
                let old = std::mem::replace(&mut shard[index], record);
                self.subtract(&old);
            }
            Err(index) => shard.insert(index, record),
        }
    }

    fn remove(&mut self, id: PublicId, reason: UnlistReason) {
        let shard = &mut self.shards[ShardIndex::of(id)];
        let Ok(index) = position(shard, id) else { return };
        let old = Arc::make_mut(shard).remove(index);
        self.subtract(&old);
        self.results.remove(id);
        self.latencies.remove(id);
        self.touched.insert(id, Some(reason));
    }

    /// Subtracts a record that was replaced or removed from the totals.
    fn subtract(&mut self, record: &ServerRecord) {
        self.totals.subtract(record);
        let lists = Arc::make_mut(&mut self.lists);
        if let Some(totals) = lists.get_mut(&record.list) {
            totals.subtract(record);
            if totals.servers == 0 {
                lists.remove(&record.list);
            }
        }
    }

    /// Refreshes the records of the next shard.
    fn refresh(&mut self, now: Instant) {
        let shard = self.refresh_shard;
        self.refresh_shard = shard.next();
        if self.refresh_shard == ShardIndex::default() {
            self.results.end_period();
        }
        let refreshed = |record: &Arc<ServerRecord>| {
            let new = record.refreshed(&self.clock);
            let latencies = self.latencies.of(now, record.id);
            new.as_ref().unwrap_or(record).with_latencies(latencies).or(new)
        };
        let changed: Vec<_> = self.shards[shard].iter().filter_map(refreshed).collect();
        for record in changed {
            self.set(Arc::new(record));
            self.is_stale = true;
        }
    }

    fn records(&self) -> impl Iterator<Item = &Arc<ServerRecord>> {
        self.shards.records()
    }

    fn record(&self, id: PublicId) -> Option<&Arc<ServerRecord>> {
        self.shards.record(id)
    }
}

/// The network that the replies of a server are charged to.
fn network_of(record: &ServerRecord) -> Option<Site> {
    record.addresses().next().map(|addr| Site::of(addr.ip()))
}

impl TableChange {
    /// The record that the change is about.
    #[must_use]
    pub fn record(&self) -> &Arc<ServerRecord> {
        match self {
            Self::Listed(record) | Self::Changed(record) | Self::Unlisted(record, _) => record,
        }
    }

    /// The changes that turn one record of a server into another: two if it moved to another list, none if it displays the
    /// same.
    fn between(before: &Arc<ServerRecord>, after: &Arc<ServerRecord>) -> [Option<Self>; 2] {
        if before.list != after.list {
            let unlisted = Self::Unlisted(Arc::clone(before), UnlistReason::Moved);
            return [Some(unlisted), Some(Self::Listed(Arc::clone(after)))];
        }
        let is_changed = !Arc::ptr_eq(before, after) && !before.displays_like(after);
        [is_changed.then(|| Self::Changed(Arc::clone(after))), None]
    }
}
