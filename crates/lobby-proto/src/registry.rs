//! The list of servers.

mod admit;
mod batch;
mod index;
mod invariants;
mod legacy;
mod lobbies;
mod operator;
mod probed;
mod register;
mod reload;
mod save;
mod slots;
mod tombstones;

pub use probed::{ProbedOutcome, ProbedServer};
pub use save::{RestoreError, SaveFileWriter};

use crate::{
    BanList, CheckRequest, CheckResult, CheckTarget, Config, ConfigError, LatestRefusal, ListedServer, PublicId,
    PublishedLists, RecentOutcome, RegistrationOutcome, RegistryStats, UnlistReason,
    addresses::canonical,
    checks::{Checks, Waiter},
    entry::{Family, State, V4, V6, family_of},
    hash::{Keyed, KeyedMap},
    latest_refusals::Refusals,
    lists::ListBuilder,
    recent_outcomes::Past,
    wheel::Wheel,
};
use foldhash::fast::FixedState;
use lobbies::Lobbies;
use operator::Suspect;
use rallypoint_limit::{Lan, Limiter};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{Datagram, Registration, ServerId, Unregister};
use slots::Slots;
use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tombstones::Tombstones;

/// The lists are published at most this often: a hundred changes at once cost as much as one.
const PUBLISH_EVERY: Duration = Duration::from_millis(20);

/// Publishing copies what changed, at some gigabytes per second. After much work there is a pause, so that it takes up
/// a few percent of the time at most, however many servers there are and however often they change.
const PUBLISH_BYTES_PER_MILLISECOND: usize = 100_000;

/// Events that nobody takes are dropped beyond this number.
const MAX_EVENTS: usize = 65_536;

/// The registry: all servers, by ID, by endpoint and by lobby.
///
/// * Getters: [`lists`](Self::lists), [`stats`](Self::stats), [`recent_outcomes`](Self::recent_outcomes).
/// * In: [`handle_datagram`](Self::handle_datagram), [`handle_legacy_datagram`](Self::handle_legacy_datagram),
///   [`handle_check`](Self::handle_check), [`handle_probed`](Self::handle_probed),
///   [`handle_timeout`](Self::handle_timeout).
/// * Commands: [`set_config`](Self::set_config), [`set_admin_bans`](Self::set_admin_bans),
///   [`remove_probed`](Self::remove_probed), [`publish`](Self::publish), and for a restart [`save_next`](Self::save_next) and [`restore`](Self::restore).
/// * Out: [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout). It never sends anything by itself.
///
/// Changes show in [`lists`](Self::lists) when they are published: by [`handle_timeout`](Self::handle_timeout) at the
/// time [`poll_timeout`](Self::poll_timeout) names, which is at once if nothing was published just before.
#[derive(Debug)]
pub struct Registry {
    config: Config,
    seed: HashKeys,
    keyed: Keyed,
    print: FixedState,
    reloads: u64,
    slots: Slots,
    wheel: Wheel,
    lists: ListBuilder,
    lobbies: Lobbies,
    /// Registered endpoints per source.
    per_home: KeyedMap<Lan, usize>,
    /// An estimate of the bytes that all entries take.
    memory: usize,
    tombstones: Tombstones,
    /// Bans that are not of the configuration.
    admin_bans: BanList,
    limiter: Limiter,
    checks: Checks,
    /// Outcomes of registrations, and apart from them those of what could not be read: a flood of the latter must not
    /// make the former forgotten.
    past: Past,
    past_unread: Past,
    refusals: Refusals,
    events: VecDeque<Event>,
    publish_at: Option<Instant>,
    publish_not_before: Option<Instant>,
    /// The next entry to hold against a new configuration, and since when that is to be done.
    to_review: Option<(Instant, u32)>,
    stats: RegistryStats,
    /// How many entries there ever were.
    serial: u64,
    /// Reused by [`handle_timeout`](Self::handle_timeout).
    due: Vec<u32>,
    /// Reused for blocks.
    scratch: Vec<u8>,
}

/// Secrets for keyed hashes. They should come from the system's entropy; the default is for tests.
#[derive(Clone, Default)]
pub struct HashKeys {
    /// For hash tables, so that nobody can aim at one place of them. New with every start.
    pub tables: u64,
    /// For public IDs: kept, so that a server is called the same after a restart of the lobby.
    pub public_ids: [u8; 16],
}

impl std::fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKeys(secret)")
    }
}

/// What the registry tells its owner.
#[derive(Clone, Debug)]
pub enum Event {
    /// Check a server and report with [`Registry::handle_check`].
    Check(CheckRequest),
    /// A server is in the list that was not.
    Listed(Arc<ListedServer>),
    /// A listed server has something new.
    Changed(Arc<ListedServer>),
    /// A server is no longer in the list. This is what was last shown of it.
    Unlisted(Arc<ListedServer>, UnlistReason),
}

impl Registry {
    /// An empty registry.
    pub fn new(config: Config, seed: HashKeys, now: Instant) -> Result<Self, ConfigError> {
        config.validate()?;
        let keyed = Keyed::new(seed.tables);
        Ok(Self {
            print: keyed.fingerprints(0),
            keyed,
            reloads: 0,
            slots: Slots::new(keyed),
            wheel: Wheel::new(now),
            lists: ListBuilder::new(keyed),
            lobbies: Lobbies::new(keyed),
            per_home: keyed.map(),
            memory: 0,
            tombstones: Tombstones::new(keyed),
            admin_bans: BanList::default(),
            limiter: Limiter::new(&config.limits, u128::from(seed.tables)),
            checks: Checks::new(&config.checks, keyed, seed.tables),
            past: Past::new(keyed),
            past_unread: Past::new(keyed),
            refusals: Refusals::default(),
            events: VecDeque::new(),
            publish_at: None,
            publish_not_before: None,
            to_review: None,
            stats: RegistryStats::default(),
            serial: 0,
            due: Vec::new(),
            scratch: Vec::new(),
            config,
            seed,
        })
    }

    /// The published lists: any thread can hold on to this.
    #[must_use]
    pub fn lists(&self) -> Arc<PublishedLists> {
        self.lists.published().clone()
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How much there is and how much has happened.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        RegistryStats {
            registered: self.slots.len(),
            endpoints: self.slots.endpoints(),
            lobbies: self.lobbies.len(),
            tombstones: self.tombstones.len(),
            memory: self.memory,
            checks: self.checks.counts(),
            budgets: self.limiter.stats(),
            ..self.stats
        }
    }

    /// How often the lists were published: one of the [`stats`](Self::stats), for those who ask all the time.
    #[must_use]
    pub fn publish_count(&self) -> u64 {
        self.stats.publishes
    }

    /// How the budgets are used.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// What became of the last datagrams of an address, other than refreshes; the latest last.
    #[must_use]
    pub fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        let ip = canonical(ip);
        let mut past = [self.past.of(ip), self.past_unread.of(ip)].concat();
        past.sort_by_key(|past| past.at);
        past
    }

    /// What was refused, for each reason the latest.
    pub fn latest_refusals(&self) -> impl Iterator<Item = &LatestRefusal> + Clone {
        self.refusals.iter()
    }

    /// A datagram to UDP port 29944. Every one ends in exactly one outcome.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> RegistrationOutcome {
        let known = Datagram::peek_registration(bytes).and_then(|id| self.slots.find(id));
        self.handle(now, from, bytes, known)
    }

    /// A datagram, and the slot of the server that it is from if that is known.
    #[inline]
    fn handle(&mut self, now: Instant, from: SocketAddr, bytes: &[u8], known: Option<u32>) -> RegistrationOutcome {
        let source = canonical(from.ip());
        let outcome = match known.and_then(|slot| self.refresh(now, slot, source, bytes)) {
            Some(outcome) => outcome,
            None => self.handle_new(now, known, source, bytes),
        };
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }

    /// A datagram, to whichever port, of which only the length is known because it is longer than any that is accepted
    /// (L15).
    pub fn handle_too_large(&mut self, now: Instant, from: SocketAddr, size: usize) -> RegistrationOutcome {
        self.handle_unread(now, canonical(from.ip()), size, RegistrationOutcome::TooLarge)
    }

    /// A datagram that says nothing new. If nothing else is wrong, this is what becomes of it.
    fn handle_unread(
        &mut self,
        now: Instant,
        source: IpAddr,
        size: usize,
        otherwise: RegistrationOutcome,
    ) -> RegistrationOutcome {
        let outcome = self.admit(now, None, source, size, size).err().unwrap_or(otherwise);
        self.note(now, source, outcome, None);
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }

    /// What came of a check that [`Event::Check`] asked for.
    pub fn handle_check(&mut self, now: Instant, target: CheckTarget, verdict: CheckResult) {
        for waiter in self.checks.result(now, &self.wheel, &self.config.checks, target, verdict) {
            for (slot, family) in [(waiter.0, V4), (waiter.0, V6)] {
                if self.slots.is(waiter) && self.target(slot, family) == Some(target) {
                    self.settle(now, slot, family, target, verdict);
                }
            }
        }
    }

    /// Lets time pass: leases end, checks are renewed, the lists are published.
    pub fn handle_timeout(&mut self, now: Instant) {
        let reached = self.wheel.tick(now);
        while let Some(target) = self.checks.overdue(reached) {
            self.handle_check(now, target, CheckResult::Unreachable);
        }
        self.checks.forget_old(reached);
        let mut due = std::mem::take(&mut self.due);
        self.wheel.due(now, &mut due);
        for slot in due.drain(..) {
            self.look_at(now, slot);
        }
        self.due = due;
        self.review(now);
        self.tombstones.forget_old(now);
        if self.publish_at.is_some_and(|at| at <= now) {
            self.publish(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let review = self.to_review.map(|(since, _)| since);
        let overdue = self.checks.next_overdue().map(|tick| self.wheel.instant(tick));
        [self.wheel.next(), self.publish_at, review, overdue].into_iter().flatten().min()
    }

    /// The next thing that the owner should know or do.
    pub fn poll_event(&mut self) -> Option<Event> {
        let Self { slots, config, .. } = self;
        let is_wanted = |waiter: Waiter, target: &CheckTarget| {
            let wants = |family| register::target(slots, config, waiter.0, family) == Some(*target);
            slots.is(waiter) && (wants(V4) || wants(V6))
        };
        let check = self.checks.poll(&config.checks, &self.wheel, is_wanted);
        check.map(Event::Check).or_else(|| self.events.pop_front())
    }

    /// Makes all changes visible in the lists now.
    pub fn publish(&mut self, now: Instant) {
        let work = self.lists.publish();
        let pause = Duration::from_millis((work / PUBLISH_BYTES_PER_MILLISECOND) as u64);
        let next = now + PUBLISH_EVERY + pause;
        // What was too much for one time is done the next.
        self.publish_at = (!self.lists.is_published()).then_some(next);
        self.publish_not_before = Some(next);
        self.stats.publishes += 1;
    }

    /// A registration that is, byte for byte and from the same address, the one before: the lease is moved, nothing else.
    /// It costs less than asking whether it is within a budget, so nobody is asked.
    #[inline]
    fn refresh(&mut self, now: Instant, slot: u32, source: IpAddr, bytes: &[u8]) -> Option<RegistrationOutcome> {
        let print = self.fingerprint(source, bytes);
        let family = family_of(source);
        let hot = self.slots.hot_mut(slot);
        if hot.prints[family] != print {
            return None;
        }
        match hot.states[family] {
            State::Listed => {
                hot.deadlines[family] = self.wheel.deadline(now, self.config.lease);
                Some(RegistrationOutcome::Refreshed)
            }
            State::Checking => {
                hot.deadlines[family] = self.wheel.deadline(now, self.config.lease);
                Some(self.ask_again(now, slot, family))
            }
            State::None | State::Unreachable => None,
        }
    }

    fn handle_new(&mut self, now: Instant, known: Option<u32>, source: IpAddr, bytes: &[u8]) -> RegistrationOutcome {
        let (outcome, new) = match self.admit(now, known, source, bytes.len(), admit::charge(bytes)) {
            Err(refused) => (refused, None),
            Ok(()) => match Datagram::parse(bytes) {
                Err(error) => (RegistrationOutcome::Malformed(error), None),
                Ok(Datagram::Unregister(Unregister { server_id })) => (self.unregister(now, server_id), None),
                Ok(Datagram::Register(registration)) => {
                    let print = self.fingerprint(source, bytes);
                    (self.register(now, source, &registration, print), Some(registration))
                }
            },
        };
        self.note(now, source, outcome, new.as_ref());
        outcome
    }

    /// Notes what became of a datagram, and of the registration if it was one, for those who ask why.
    fn note(&mut self, now: Instant, source: IpAddr, outcome: RegistrationOutcome, new: Option<&Registration<'_>>) {
        if outcome == RegistrationOutcome::Refreshed {
            return;
        }
        let port = new.map(|new| new.port().get());
        let suspect = || Suspect {
            ip: source,
            name: new.map(Registration::name),
            id: new.map(|new| self.public_id(new.server_id())),
            place: new.map(|new| (self.endpoint(source, new.port()).outside, new.transport())),
        };
        let is_banned = outcome == RegistrationOutcome::Banned;
        let reason = is_banned.then(|| self.ban_reason(now, suspect())).flatten();
        let past = if port.is_some() { &mut self.past } else { &mut self.past_unread };
        past.record(now, source, outcome, port, reason.clone());
        self.refusals.note(source, outcome, port, reason);
    }

    /// What a server is called in public.
    fn public_id(&self, id: ServerId) -> PublicId {
        PublicId::of(id, &self.seed.public_ids)
    }

    fn unregister(&mut self, now: Instant, id: ServerId) -> RegistrationOutcome {
        let Some(slot) = self.slots.find(id) else { return RegistrationOutcome::NotRegistered };
        self.remove(now, slot, UnlistReason::Unregistered);
        self.tombstones.insert(now, id);
        RegistrationOutcome::Unregistered
    }

    /// Takes a server out of the registry.
    fn remove(&mut self, now: Instant, slot: u32, why: UnlistReason) {
        self.unlist(now, slot, why);
        for family in [V4, V6] {
            self.drop_endpoint(slot, family);
        }
        let listing = &self.slots.cold(slot).listing;
        self.lobbies.leave(listing.lobby_id);
        self.memory -= listing.memory();
        self.slots.remove(slot);
    }

    fn drop_endpoint(&mut self, slot: u32, family: Family) {
        let cold = self.slots.cold_mut(slot);
        if let Some(endpoint) = cold.endpoints[family].take() {
            let (key, origin) = ((endpoint.outside, cold.transport), cold.listing.origin);
            self.slots.unbind(key, slot);
            if origin.is_charged() {
                uncount(&mut self.per_home, Lan::of(endpoint.inside.ip));
            }
        }
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = State::None;
        hot.prints[family] = 0;
    }

    fn unlist(&mut self, now: Instant, slot: u32, why: UnlistReason) {
        let Some(place) = self.slots.cold_mut(slot).place.take() else { return };
        let shown = self.lists.remove(place, |moved, place| self.slots.cold_mut(moved).place = Some(place));
        self.stats.listed -= 1;
        self.stats.unlisted[why as usize] += 1;
        self.tell(now, Event::Unlisted(shown, why));
    }

    /// Looks at an entry whose time may have come.
    fn look_at(&mut self, now: Instant, slot: u32) {
        if self.slots.get(slot).is_none() {
            return;
        }
        let reached = self.wheel.tick(now);
        for family in [V4, V6] {
            let hot = self.slots.hot(slot);
            if hot.states[family] != State::None && hot.deadlines[family] <= reached {
                self.drop_endpoint(slot, family);
            }
        }
        let hot = self.slots.hot(slot);
        let leases = [V4, V6].into_iter().filter(|&family| hot.states[family] != State::None);
        let Some(next) = leases.map(|family| hot.deadlines[family]).min() else {
            self.remove(now, slot, UnlistReason::Expired);
            return;
        };
        self.wheel.schedule(slot, next);
        self.relist(now, slot, None, UnlistReason::Expired);
        self.renew_checks(now, slot);
        self.vouch_for(now, slot);
    }

    /// Whoever is in the list is known to the limiter, although refreshes do not ask it.
    fn vouch_for(&mut self, now: Instant, slot: u32) {
        let (hot, cold) = (self.slots.hot(slot), self.slots.cold(slot));
        for family in [V4, V6].into_iter().filter(|&family| hot.states[family] == State::Listed) {
            if let Some(source) = cold.endpoints[family].map(|endpoint| endpoint.inside.ip)
                && !self.config.limit_exempt.contains(source)
            {
                self.limiter.vouch(now, source);
            }
        }
    }

    fn tell(&mut self, now: Instant, event: Event) {
        if self.publish_at.is_none() {
            self.publish_at = Some(self.publish_not_before.map_or(now, |earliest| earliest.max(now)));
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.stats.dropped_events += 1;
        }
        self.events.push_back(event);
    }

    #[inline]
    fn fingerprint(&self, source: IpAddr, bytes: &[u8]) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = self.print.build_hasher();
        match source {
            IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
            IpAddr::V6(ip) => hasher.write_u128(ip.to_bits()),
        }
        hasher.write(bytes);
        // Zero stands for "none".
        hasher.finish() | 1
    }
}

/// One less of something that is counted; what reaches zero is forgotten.
pub(crate) fn uncount<K: std::hash::Hash + Eq>(counts: &mut KeyedMap<K, usize>, key: K) {
    if let std::collections::hash_map::Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
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
