//! The registry: all servers, their leases and the published lists.

mod admission;
mod bans;
mod batch;
mod capacity;
mod chains;
mod dispatch;
mod displaced;
mod endpoints;
mod eviction;
mod gap;
mod id_index;
#[cfg(any(test, feature = "invariants"))]
mod invariants;
mod legacy;
mod listing;
mod lobby_table;
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
mod sample_set;
mod save;
mod seen_endpoints;
mod seen_filter;
mod slots;
mod tombstones;
mod trust;

pub(crate) use chains::ChainLinks;
pub(crate) use displaced::DisplacedServer;
pub use probed::{ProbedOutcome, ProbedServer};
pub use replication::{
    ApplyMode, ApplyOutcome, LeaseRenewal, LocalChange, Removal, ReplicatedEndpoint, ReplicatedServer,
};
pub use save::{RestoreError, SaveFileWriter};
pub(crate) use slots::Slots;

use crate::{
    BanList, CheckRequest, CheckResult, CheckTarget, Config, HashKeys, LatestRefusal, ListedServer, PublicId,
    PublishedLists, RecentOutcome, RegistrationOutcome, RegistryConfigError, RegistryStats, UnlistReason,
    checks::Checks,
    entry::Family,
    hash::{Fingerprinter, KeyedHash, KeyedMap},
    index::{EntryKey, SlotIndex},
    lists::ListBuilder,
    wheel::TimerWheel,
};
use capacity::Usage;
use gap::GapDetector;
use outcomes::OutcomeLog;
use publishing::{EventQueue, PublishTimer};
use rallypoint_limit::Limiter;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{Datagram, ServerId};
use reload::Review;
use replication::Replication;
use reserved_endpoints::ReservedEndpoints;
use seen_endpoints::SeenEndpoints;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};
use tombstones::Tombstones;

/// The registry: all servers, by ID, by endpoint and by lobby.
///
/// * Getters: [`lists`](Self::lists), [`stats`](Self::stats), [`recent_outcomes`](Self::recent_outcomes).
/// * In: [`handle_datagram`](Self::handle_datagram), [`handle_legacy_datagram`](Self::handle_legacy_datagram),
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
/// use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport};
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let mut registry = Registry::new(Config::default(), HashKeys::default(), start)?;
/// let mut table = TableBuf::new();
/// table.push(b"name", b"Bacon Town 24/7")?;
/// let (id, lobby, port) = (ServerId::from_bytes([7; 16]), LobbyId::GANG_GARRISON_2, 8190.try_into()?);
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
    /// Bans in addition to those of the configuration.
    admin_bans: BanList,
    keys: HashKeys,
    fingerprinter: Fingerprinter,
    slots: Slots,
    wheel: TimerWheel,
    gaps: GapDetector,
    usage: Usage,
    seen: SeenEndpoints,
    reserved: ReservedEndpoints,
    /// The entries that keep a displaced server, by the ID of that server.
    displaced_by_id: KeyedMap<PublicId, SlotIndex>,
    tombstones: Tombstones<ServerId>,
    limiter: Limiter,
    checks: Checks,
    lists: ListBuilder,
    publish_timer: PublishTimer,
    events: EventQueue,
    outcomes: OutcomeLog,
    /// The comparison of all entries with a new configuration, while it is in progress.
    review: Option<Review>,
    /// When bans were last changed, if they were.
    bans_changed_at: Option<Instant>,
    /// `None` unless the registry is a node of a cluster.
    replication: Option<Box<Replication>>,
    stats: RegistryStats,
    buffers: Buffers,
}

/// Buffers that are reused between calls.
#[derive(Debug, Default)]
struct Buffers {
    /// For [`Registry::handle_timeout`].
    due: Vec<SlotIndex>,
    /// For blocks of the list.
    block: Vec<u8>,
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
            admin_bans: BanList::default(),
            fingerprinter: Fingerprinter::new(keyed),
            slots: Slots::new(keyed),
            wheel: TimerWheel::new(now),
            gaps: GapDetector::new(now),
            usage: Usage::new(keyed),
            seen: SeenEndpoints::new(keyed, config.caps.memory),
            reserved: ReservedEndpoints::new(keyed),
            displaced_by_id: keyed.map(),
            tombstones: Tombstones::new(keyed, tombstones::REORDERING_TIME),
            limiter: Limiter::new(&config.limits, u128::from(keys.tables)),
            checks: Checks::new(&config.checks, config.caps.memory, keyed, keys.tables),
            lists: ListBuilder::new(keyed),
            publish_timer: PublishTimer::default(),
            events: EventQueue::default(),
            outcomes: OutcomeLog::new(keyed),
            review: None,
            bans_changed_at: None,
            replication: None,
            stats: RegistryStats::default(),
            buffers: Buffers::default(),
            config,
            keys,
        })
    }

    /// Stops maintaining the lists of the legacy protocol (L16), for a lobby without a legacy port. It has to be called before
    /// servers register or are restored.
    pub fn disable_legacy_lists(&mut self) {
        self.lists.disable_legacy();
    }

    /// The published lists, which any thread can keep and read.
    #[must_use]
    pub fn lists(&self) -> Arc<PublishedLists> {
        self.lists.published().clone()
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
            registered: self.slots.len(),
            endpoints: self.slots.endpoints(),
            lobbies: self.usage.lobbies.len(),
            tombstones: self.tombstones.len(),
            memory: self.usage.memory,
            checks: self.checks.stats(),
            budgets: self.limiter.stats(),
            dropped_events: self.events.dropped,
            ..self.stats
        }
    }

    /// Number of times the lists were published: one of the [`stats`](Self::stats), without the cost of the others.
    #[must_use]
    pub fn publish_count(&self) -> u64 {
        self.stats.publishes
    }

    /// The limiter of registrations.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
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

    /// Handles a datagram to UDP port 29944. Every datagram has exactly one outcome.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> RegistrationOutcome {
        let known = Datagram::peek_registration(bytes).and_then(|id| self.slots.find(id));
        self.handle_from(now, from, bytes, known)
    }

    /// Handles a datagram to either port of which only the size is known, because it is larger than any that is accepted
    /// (L15).
    pub fn handle_too_large(&mut self, now: Instant, from: SocketAddr, size: usize) -> RegistrationOutcome {
        self.handle_without_data(now, from.ip().to_canonical(), size, RegistrationOutcome::TooLarge)
    }

    /// Handles the result of a check that was requested by [`Event::Check`].
    pub fn handle_check(&mut self, now: Instant, target: CheckTarget, result: CheckResult) {
        let (waiters, result) = self.checks.handle_result(now, &self.wheel, &self.config.checks, target, result);
        for waiter in waiters {
            for family in Family::ALL {
                if self.slots.contains(waiter) && self.check_target(waiter.slot, family) == Some(target) {
                    self.apply_check(now, waiter.slot, family, target, result);
                }
            }
        }
    }

    /// Handles the passing of time: leases end, checks are repeated, the lists are published.
    pub fn handle_timeout(&mut self, now: Instant) {
        let reached = self.wheel.tick(now);
        self.detect_gap(now);
        while let Some(target) = self.checks.take_overdue(reached) {
            self.handle_check(now, target, CheckResult::Unreachable);
        }
        self.checks.forget_expired(reached);
        let mut due = std::mem::take(&mut self.buffers.due);
        self.wheel.take_due(now, &mut due);
        for slot in due.drain(..) {
            self.handle_deadline(now, slot);
        }
        self.buffers.due = due;
        self.continue_review(now);
        self.tombstones.forget_expired(now);
        self.seen.forget_expired(reached);
        self.reserved.forget_expired(reached);
        self.forget_replicated_tombstones(now);
        if self.publish_timer.is_due(now) {
            self.publish(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) should be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let review = self.review.map(|review| review.since);
        let overdue = self.checks.next_overdue().map(|tick| self.wheel.instant(tick));
        let check = self.checks.next_start().map(|tick| self.wheel.instant(tick));
        [self.wheel.next(), self.publish_timer.at(), review, overdue, check].into_iter().flatten().min()
    }

    /// The next event. Checks come first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let Self { slots, config, .. } = self;
        let is_wanted = |waiter: EntryKey, target: &CheckTarget| {
            let wants = |family| reachability::check_target(slots, config, waiter.slot, family) == Some(*target);
            slots.contains(waiter) && Family::ALL.into_iter().any(wants)
        };
        let check = self.checks.poll(&config.checks, &self.wheel, is_wanted);
        check.map(Event::Check).or_else(|| self.events.pop())
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
