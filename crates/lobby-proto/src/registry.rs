//! The registry: all servers, their leases and the published lists.
//!
//! Each part has its own fields and its own tests: [`Entries`], [`Admission`], [`Checks`], [`Publisher`] (with the lists) and
//! [`Replication`]. The registry asks one part for a decision and tells the others what follows from it; no part changes another.

mod admission;
mod cluster;
pub(crate) mod entries;
mod evidence;
#[cfg(any(test, feature = "invariants"))]
mod invariants;
mod lifecycle;
mod outcomes;
mod probed;
mod publisher;
mod reachability;
mod register;
mod replication;
mod save;
mod tombstones;

pub use cluster::{ApplyMode, ApplyOutcome, Removal};
pub(crate) use entries::{DisplacedServer, Entries};
pub(crate) use evidence::Evidence;
pub use probed::{ProbedOutcome, ProbedServer};
pub use replication::{LeaseRenewal, LocalChange, ReplicatedEndpoint, ReplicatedServer};
pub use save::{RestoreError, SaveFileWriter};

use crate::{
    BanList, CheckRequest, CheckResult, CheckTarget, Config, HashKeys, LatestRefusal, ListedServer, PublicId,
    PublishedLists, RecentOutcome, RegistrationOutcome, RegistryConfigError, RegistryStats, UnlistReason,
    bans::Candidate,
    checks::Checks,
    doors::{Door, LOBBY},
    entry::{EndpointState, Family},
    hash::KeyedHash,
    index::{EntryKey, SlotIndex},
    wheel::Clock,
};
use admission::Admission;
use entries::Group;
use lifecycle::Review;
use outcomes::OutcomeLog;
use publisher::Publisher;
use rallypoint_limit::Limiter;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{Datagram, ServerId, Unregister};
use replication::Replication;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::Instant,
};

/// Number of datagrams of a batch that are looked up together: enough to keep the memory busy. The datagrams are independent of
/// each other, so their waits for the index and for the entries overlap.
const LOOKUPS: usize = 32;

/// The registry: all servers, by ID, by endpoint and by list.
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
/// let (id, list, port) = (ServerId::from_bytes([7; 16]), ListId::GANG_GARRISON_2, 8190.try_into()?);
/// let mut datagram = Vec::new();
/// Registration::new(id, list, Transport::Udp, port, Occupancy::default(), table.as_table())?.emit(&mut datagram);
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
    config: Arc<Config>,
    keys: HashKeys,
    clock: Clock,
    entries: Entries,
    admission: Admission,
    checks: Checks,
    lists: Publisher,
    outcomes: OutcomeLog,
    replication: Replication,
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
        let config = Arc::new(config);
        let keyed = KeyedHash::new(keys.tables);
        let clock = Clock::new(now);
        Ok(Self {
            entries: Entries::new(&config, keyed, clock, now),
            admission: Admission::new(&config, keyed, clock, keys.tables),
            checks: Checks::new(&config, keyed, clock, keys.tables),
            lists: Publisher::new(keyed),
            outcomes: OutcomeLog::new(keyed),
            replication: Replication::new(&config, keyed, clock),
            review: None,
            config,
            keys,
            clock,
        })
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
        let mut stats = RegistryStats {
            outcomes: self.outcomes.counts(),
            registered: self.entries.len(),
            lists: self.entries.list_count(),
            endpoints: self.entries.endpoints(),
            tombstones: self.entries.buried(),
            memory: self.entries.usage(Group::All).memory,
            checks: self.checks.stats(),
            budgets: self.admission.limiter().stats(),
            gaps: self.entries.gaps(),
            ..RegistryStats::default()
        };
        self.lists.add_stats(&mut stats);
        stats
    }

    /// Number of times the lists were published: one of the [`stats`](Self::stats), without the cost of the others.
    #[must_use]
    pub fn publish_count(&self) -> u64 {
        self.lists.publishes()
    }

    /// The limiter of registrations.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        self.admission.limiter()
    }

    /// The outcomes of the last datagrams from an address, except refreshes, oldest first.
    #[must_use]
    pub fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        self.outcomes.recent(ip.to_canonical())
    }

    /// Marks those of an address's [`recent_outcomes`](Self::recent_outcomes) that are bans which may have been lifted: bans
    /// were changed since, and the address itself is not banned any more. A ban of its name or ID that is still in force shows
    /// again with the next registration.
    pub fn mark_former_bans(&self, now: Instant, ip: IpAddr, outcomes: &mut [RecentOutcome]) {
        let Some(changed) = self.admission.former_bans_until(now, ip.to_canonical()) else { return };
        for past in outcomes {
            past.is_former_ban = past.outcome == RegistrationOutcome::Banned && past.at < changed;
        }
    }

    /// The latest refusal of each reason.
    pub fn latest_refusals(&self) -> impl Iterator<Item = &LatestRefusal> + Clone {
        self.outcomes.latest_refusals()
    }

    /// Changes the configuration; servers stay registered. Servers that are now banned or private are removed at once; if
    /// there are many thousands of servers, the next calls of [`handle_timeout`](Self::handle_timeout) continue with it.
    ///
    /// # Errors
    /// If the configuration is invalid; then nothing has changed.
    pub fn set_config(&mut self, now: Instant, config: Config) -> Result<(), RegistryConfigError> {
        config.validate()?;
        self.config = Arc::new(config);
        self.entries.set_config(&self.config);
        self.admission.set_config(now, &self.config);
        self.checks.set_config(&self.config);
        self.replication.set_config(&self.config);
        self.review = Some(Review::new(now));
        self.continue_review(now);
        Ok(())
    }

    /// Sets the bans in addition to those of the configuration; they stay when the configuration changes. Servers that are
    /// now banned are removed at once; if there are many thousands of servers, the next calls of
    /// [`handle_timeout`](Self::handle_timeout) continue with it.
    pub fn set_admin_bans(&mut self, now: Instant, bans: BanList) {
        self.admission.set_admin_bans(now, bans);
        self.review = Some(Review::new(now));
        self.continue_review(now);
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
        let known = Datagram::peek_registration(bytes).and_then(|id| self.entries.find(id));
        self.handle_from(now, door, from, bytes, known)
    }

    /// Does the same as [`handle_datagram`](Self::handle_datagram) for each datagram in order, but faster.
    pub fn handle_datagrams<'a, I>(&mut self, now: Instant, datagrams: I)
    where
        I: IntoIterator<Item = (SocketAddr, &'a [u8]), IntoIter: Clone>,
    {
        let mut datagrams = datagrams.into_iter();
        loop {
            let mut hashes = [None; LOOKUPS];
            for (hash, (_, bytes)) in hashes.iter_mut().zip(datagrams.clone()) {
                *hash = Datagram::peek_registration(bytes).map(|id| (self.entries.hash(id), id));
            }
            self.entries.prefetch(hashes.map(|hash| hash.map_or(0, |(hash, _)| hash)));
            for hash in hashes {
                let Some((from, bytes)) = datagrams.next() else { return };
                let known = hash.and_then(|(hash, id)| self.entries.find_hashed(hash, id));
                self.handle_from(now, &LOBBY, from, bytes, known);
            }
        }
    }

    /// Handles a datagram; `known` is the slot of the server whose ID it contains, if that server is registered. The same bytes
    /// from the same address extend the lease, which costs less than checking a budget, so no budget is checked.
    #[inline]
    fn handle_from(
        &mut self,
        now: Instant,
        door: &'static Door,
        from: SocketAddr,
        bytes: &[u8],
        known: Option<SlotIndex>,
    ) -> RegistrationOutcome {
        let source = from.ip().to_canonical();
        let known = known.map(|slot| (slot, self.entries.fingerprint(source, bytes)));
        if let Some((slot, fingerprint)) = known
            && let Some(state) = self.entries.refresh(now, slot, Family::of(source), fingerprint)
        {
            if state == EndpointState::Listed {
                self.outcomes.count(RegistrationOutcome::Refreshed);
                return RegistrationOutcome::Refreshed;
            }
            let outcome = self.request_check_again(now, slot, Family::of(source));
            self.outcomes.count(outcome);
            return outcome;
        }
        let outcome = self.handle_change(now, door, source, bytes, known);
        self.outcomes.count(outcome);
        outcome
    }

    /// Handles a datagram that is not a refresh; `known` is the server with its ID, and the fingerprint of the datagram.
    fn handle_change(
        &mut self,
        now: Instant,
        door: &'static Door,
        source: IpAddr,
        bytes: &[u8],
        known: Option<(SlotIndex, u64)>,
    ) -> RegistrationOutcome {
        let is_registered = known.is_some_and(|(slot, _)| self.entries.is_from(slot, source));
        if let Err(refused) = self.admission.admit(now, source, bytes, is_registered) {
            let reason = self.admission.reason_for(now, refused, || Candidate::at(source));
            // Its owner may have several servers at one address, so the port counts.
            let port = Datagram::peek_port(bytes).map(NonZeroU16::get);
            self.outcomes.record_unparsed(now, source, refused, port, reason);
            return refused;
        }
        if let Some((slot, fingerprint)) = known
            && let Some((outcome, port)) = self.revise(now, slot, source, bytes, fingerprint)
        {
            if outcome != RegistrationOutcome::Refreshed {
                self.outcomes.record_for_owner(now, source, outcome, port.get(), None);
            }
            return outcome;
        }
        match Datagram::parse(bytes) {
            Ok(Datagram::Register(new)) => {
                let fingerprint = self.entries.fingerprint(source, bytes);
                let outcome = self.register(now, door, source, &new, fingerprint);
                if outcome != RegistrationOutcome::Refreshed {
                    let reason = self.admission.reason_for(now, outcome, || self.candidate(source, &new));
                    self.outcomes.record(now, source, outcome, Some(new.port().get()), reason);
                }
                outcome
            }
            Ok(Datagram::Unregister(Unregister { server_id })) => {
                let (outcome, port) = self.unregister(now, source, server_id);
                self.outcomes.record(now, source, outcome, port, None);
                outcome
            }
            Err(error) => {
                let outcome = RegistrationOutcome::Malformed(error);
                self.outcomes.record(now, source, outcome, None, None);
                outcome
            }
        }
    }

    /// Handles a datagram to any door of which only the size is known, because it is larger than any that is accepted
    /// (L15).
    pub fn handle_too_large(&mut self, now: Instant, from: SocketAddr, size: usize) -> RegistrationOutcome {
        self.handle_without_data(now, from.ip().to_canonical(), size, RegistrationOutcome::TooLarge)
    }

    /// Handles a datagram that changes nothing; its outcome is `otherwise`, unless it is refused before.
    pub(crate) fn handle_without_data(
        &mut self,
        now: Instant,
        source: IpAddr,
        size: usize,
        otherwise: RegistrationOutcome,
    ) -> RegistrationOutcome {
        let outcome = self.admit_size(now, source, size).err().unwrap_or(otherwise);
        self.record_door_outcome(now, source, None, outcome);
        outcome
    }

    /// Decides whether a datagram of this size, which a door handles itself, is handled.
    pub(crate) fn admit_size(&mut self, now: Instant, source: IpAddr, size: usize) -> Result<(), RegistrationOutcome> {
        self.admission.admit_size(now, source, size)
    }

    /// Counts the outcome of a datagram that a door has handled itself, and records it for the owner of the server at its source
    /// unless it is ordinary.
    pub(crate) fn record_door_outcome(
        &mut self,
        now: Instant,
        source: IpAddr,
        port: Option<u16>,
        outcome: RegistrationOutcome,
    ) {
        self.outcomes.count(outcome);
        if !matches!(outcome, RegistrationOutcome::Refreshed | RegistrationOutcome::ListRequested) {
            let reason = self.admission.reason_for(now, outcome, || Candidate::at(source));
            self.outcomes.record(now, source, outcome, port, reason);
        }
    }

    /// Handles the owner's report that the receive buffer overflowed, because more datagrams arrive than can be handled: refreshes
    /// are lost with the others. Leases that would end are extended until 35 seconds after the last report, but not if that goes
    /// on for more than ten minutes (W86).
    pub fn handle_lost_datagrams(&mut self, now: Instant) {
        self.entries.handle_lost_datagrams(now);
    }

    /// Handles the passing of time: leases end, checks are repeated, the lists are published.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.entries.detect_gap(now) {
            self.checks.handle_gap(now);
        }
        while let Some(target) = self.checks.take_overdue(now) {
            self.handle_check(now, target, CheckResult::Unreachable);
        }
        self.checks.forget_expired(now);
        for slot in self.entries.take_due(now) {
            self.handle_deadline(now, slot);
        }
        self.continue_review(now);
        self.entries.forget_expired(now);
        self.admission.forget_expired(now);
        self.replication.forget_expired(now);
        self.lists.handle_timeout(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) should be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let review = self.review.map(|review| review.since());
        let parts = [self.entries.next_due(), self.lists.next_publication(), self.checks.poll_timeout(), review];
        parts.into_iter().flatten().min()
    }

    /// The next event. Checks come first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let entries = &self.entries;
        let is_wanted = |waiter: EntryKey, target: &CheckTarget| {
            let wants = |family| entries.check_target(waiter.slot, family) == Some(*target);
            entries.contains(waiter) && Family::ALL.into_iter().any(wants)
        };
        let check = self.checks.poll(is_wanted);
        check.map(Event::Check).or_else(|| self.lists.pop_event())
    }

    /// Publishes all changes now.
    pub fn publish(&mut self, now: Instant) {
        self.lists.publish(now);
    }

    /// The public ID of a server.
    fn public_id(&self, id: ServerId) -> PublicId {
        PublicId::of(id, &self.keys.public_ids)
    }

    /// The ID of a server that has none of its own, which only this lobby can derive from what identifies the server: the ID
    /// allows removing it from the list.
    pub(crate) fn derived_id(&self, parts: &[&[u8]]) -> ServerId {
        let mut hasher = SipHasher24::new_with_key(&self.keys.public_ids);
        parts.iter().for_each(|part| hasher.write(part));
        ServerId::from_bytes(hasher.finish128().as_bytes())
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
