//! The registry: all servers, their leases and the published lists.

mod admission;
mod bans;
mod batch;
mod capacity;
mod dispatch;
mod displaced;
mod endpoints;
mod entries;
mod eviction;
mod evidence;
mod gap;
mod groups;
mod id_index;
#[cfg(any(test, feature = "invariants"))]
mod invariants;
mod listing;
mod open_lists;
mod outcomes;
mod probed;
mod publishing;
mod reachability;
mod refresh;
mod register;
mod reload;
mod removal;
mod replication;
mod reserved_endpoints;
mod revise;
mod save;
mod seen_endpoints;
mod seen_filter;
mod slots;
mod tombstones;

pub(crate) use displaced::DisplacedServer;
pub(crate) use evidence::Evidence;
pub(crate) use groups::GroupPositions;
pub use probed::{ProbedOutcome, ProbedServer};
pub use replication::{
    ApplyMode, ApplyOutcome, LeaseRenewal, LocalChange, Removal, ReplicatedEndpoint, ReplicatedServer,
};
pub use save::{RestoreError, SaveFileWriter};
pub(crate) use slots::Slots;

use crate::{
    CheckRequest, CheckResult, CheckTarget, Config, HashKeys, LatestRefusal, ListedServer, PublicId, PublishedLists,
    RecentOutcome, RegistrationOutcome, RegistryConfigError, RegistryStats, UnlistReason,
    checks::Checks,
    doors::{Door, LOBBY},
    entry::Family,
    hash::KeyedHash,
    index::EntryKey,
};
use admission::Admission;
use entries::Entries;
use outcomes::OutcomeLog;
use publishing::Publisher;
use rallypoint_limit::Limiter;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{Datagram, ServerId};
use reload::Review;
use replication::Replication;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

/// The registry: all servers, by ID, by endpoint and by lobby.
///
/// * Getters: [`lists`](Self::lists), [`stats`](Self::stats), [`recent_outcomes`](Self::recent_outcomes).
/// * In: [`handle_datagram`](Self::handle_datagram), [`handle_datagrams`](Self::handle_datagrams),
///   [`handle_check`](Self::handle_check), [`handle_reply`](Self::handle_reply), [`handle_probed`](Self::handle_probed),
///   [`handle_timeout`](Self::handle_timeout).
/// * Commands: [`set_config`](Self::set_config), [`set_admin_bans`](Self::set_admin_bans),
///   [`remove_probed`](Self::remove_probed), [`publish`](Self::publish), and for a restart
///   [`save_next`](Self::save_next) and [`restore`](Self::restore).
/// * Out: [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout). It never sends anything by itself.
///
/// Changes become visible in [`lists`](Self::lists) when they are published: by [`handle_timeout`](Self::handle_timeout) at
/// the time that [`poll_timeout`](Self::poll_timeout) returns, which is at once unless the lists were published just before.
///
/// ```
/// use rallypoint_lobby_proto::{Config, Event, HashKeys, RegistrationOutcome, Registry};
/// use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let mut registry = Registry::new(Config::default(), HashKeys::default(), start)?;
/// let mut table = TableBuf::new();
/// table.push(b"name", b"Bacon Town 24/7")?;
/// let (id, lobby, port) = (ServerId::from_bytes([7; 16]), ListId::GANG_GARRISON_2, 8190.try_into()?);
/// let mut datagram = Vec::new();
/// Registration::new(id, lobby, Transport::Udp, port, Occupancy::default(), table.as_table())?.emit(&mut datagram);
///
/// // The first registration lists the server, the same bytes again extend its lease.
/// let source = "203.0.113.9:51000".parse()?;
/// assert_eq!(registry.handle_datagram(start, source, &datagram), RegistrationOutcome::Listed);
/// let later = start + Duration::from_secs(30);
/// assert_eq!(registry.handle_datagram(later, source, &datagram), RegistrationOutcome::Refreshed);
/// assert!(matches!(registry.poll_event(), Some(Event::Listed(_))));
///
/// // Without further registrations the lease ends: the default is 70 seconds.
/// let end = later + Duration::from_secs(71);
/// while let Some(at) = registry.poll_timeout().filter(|at| *at <= end) {
///     registry.handle_timeout(at);
/// }
/// assert_eq!(registry.stats().registered, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Registry {
    config: Config,
    keys: HashKeys,
    entries: Entries,
    admission: Admission,
    checks: Checks,
    lists: Publisher,
    outcomes: OutcomeLog,
    /// `None` unless the registry is a node of a cluster.
    replication: Option<Box<Replication>>,
    /// The comparison of all entries with a new configuration, while it is in progress.
    review: Option<Review>,
}

/// An event that a [`Registry`] reports to its owner.
#[derive(Clone, Debug)]
pub enum Event {
    /// A server should be checked; the result is passed to [`Registry::handle_check`].
    Check(CheckRequest),
    /// A server was added to the list.
    Listed(Arc<ListedServer>),
    /// The data of a listed server has changed.
    Changed(Arc<ListedServer>),
    /// A server was removed from the list; these are its last data.
    Unlisted(Arc<ListedServer>, UnlistReason),
}

impl Event {
    /// Estimated memory that the event keeps in use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let server = match self {
            Self::Check(_) => 0,
            Self::Listed(server) | Self::Changed(server) | Self::Unlisted(server, _) => {
                size_of::<ListedServer>() + server.block.len()
            }
        };
        size_of::<Self>() + server
    }
}

impl Registry {
    /// Creates an empty registry.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: Config, keys: HashKeys, now: Instant) -> Result<Self, RegistryConfigError> {
        config.validate()?;
        let keyed = KeyedHash::new(keys.tables);
        Ok(Self {
            entries: Entries::new(keyed, now),
            admission: Admission::new(&config, keyed, keys.tables),
            checks: Checks::new(&config.checks, config.caps.memory, keyed, keys.tables),
            lists: Publisher::new(keyed),
            outcomes: OutcomeLog::new(keyed),
            replication: None,
            review: None,
            config,
            keys,
        })
    }

    /// The published lists, which any thread can keep and read.
    #[must_use]
    pub fn lists(&self) -> Arc<PublishedLists> {
        self.lists.builder.published().clone()
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counters and current sizes.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        RegistryStats {
            outcomes: self.outcomes.counts,
            unlisted: self.lists.unlisted,
            registered: self.entries.slots.len(),
            listed: self.lists.listed,
            lobbies: self.admission.lists.len(),
            endpoints: self.entries.slots.endpoints(),
            tombstones: self.entries.tombstones.len(),
            memory: self.memory(),
            checks: self.checks.stats(),
            budgets: self.admission.limiter.stats(),
            dropped_events: self.lists.events.dropped,
            publishes: self.lists.publishes,
            gaps: self.entries.gaps.count,
        }
    }

    /// Number of times the lists were published: one of the [`stats`](Self::stats), without the cost of the others.
    #[must_use]
    pub fn publish_count(&self) -> u64 {
        self.lists.publishes
    }

    /// The limiter of registrations.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.admission.limiter
    }

    /// The outcomes of the last datagrams from an address, except refreshes, oldest first.
    #[must_use]
    pub fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        self.outcomes.recent(ip.to_canonical())
    }

    /// The latest refusal of each reason.
    pub fn latest_refusals(&self) -> impl Iterator<Item = &LatestRefusal> + Clone {
        self.outcomes.latest_refusals()
    }

    /// Handles a datagram of document 001. Every datagram has exactly one outcome.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> RegistrationOutcome {
        self.handle_registration(now, &LOBBY, from, bytes)
    }

    /// Handles a datagram of document 001, which a door has made from one of its own protocol.
    pub(crate) fn handle_registration(
        &mut self,
        now: Instant,
        door: &'static Door,
        from: SocketAddr,
        bytes: &[u8],
    ) -> RegistrationOutcome {
        let known = Datagram::peek_registration(bytes).and_then(|id| self.entries.slots.find(id));
        self.handle_from(now, door, from, bytes, known)
    }

    /// Handles a datagram to any door of which only the size is known, because it is larger than any that is accepted
    /// (L15).
    pub fn handle_too_large(&mut self, now: Instant, from: SocketAddr, size: usize) -> RegistrationOutcome {
        self.handle_without_data(now, from.ip().to_canonical(), size, RegistrationOutcome::TooLarge)
    }

    /// Handles the result of a check that was requested by [`Event::Check`].
    pub fn handle_check(&mut self, now: Instant, target: CheckTarget, result: CheckResult) {
        let (waiters, result) =
            self.checks.handle_result(now, &self.entries.wheel, &self.config.checks, target, result);
        for waiter in waiters {
            for family in Family::ALL {
                if self.entries.slots.contains(waiter) && self.check_target(waiter.slot, family) == Some(target) {
                    self.apply_check(now, waiter.slot, family, target, result);
                }
            }
        }
    }

    /// Handles the passing of time: leases end, checks are repeated, the lists are published.
    pub fn handle_timeout(&mut self, now: Instant) {
        let reached = self.entries.wheel.tick(now);
        self.detect_gap(now);
        while let Some(target) = self.checks.take_overdue(reached) {
            self.handle_check(now, target, CheckResult::Unreachable);
        }
        self.checks.forget_expired(reached);
        let mut due = std::mem::take(&mut self.entries.due);
        self.entries.wheel.take_due(now, &mut due);
        for slot in due.drain(..) {
            self.handle_deadline(now, slot);
        }
        self.entries.due = due;
        self.continue_review(now);
        self.entries.tombstones.forget_expired(now);
        self.admission.seen.forget_expired(reached);
        self.entries.reserved.forget_expired(reached);
        self.forget_replicated_tombstones(now);
        if self.lists.timer.is_due(now) {
            self.publish(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) should be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let review = self.review.map(|review| review.since);
        let overdue = self.checks.next_overdue().map(|tick| self.entries.wheel.instant(tick));
        let check = self.checks.next_start().map(|tick| self.entries.wheel.instant(tick));
        [self.entries.wheel.next(), self.lists.timer.at(), review, overdue, check].into_iter().flatten().min()
    }

    /// The next event. Checks come first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let Self { entries: Entries { slots, wheel, .. }, config, .. } = self;
        let is_wanted = |waiter: EntryKey, target: &CheckTarget| {
            let wants = |family| reachability::check_target(slots, config, waiter.slot, family) == Some(*target);
            slots.contains(waiter) && Family::ALL.into_iter().any(wants)
        };
        let check = self.checks.poll(&config.checks, wheel, is_wanted);
        check.map(Event::Check).or_else(|| self.lists.events.pop())
    }

    /// The public ID of a server.
    fn public_id(&self, id: ServerId) -> PublicId {
        PublicId::of(id, &self.keys.public_ids)
    }
}

impl Machine for Registry {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        Registry::handle_datagram(self, now, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Registry::handle_timeout(self, now);
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        Registry::poll_event(self)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Registry::poll_timeout(self)
    }
}
