//! The list of servers.

mod register;
mod save;
mod slots;

pub use save::{RestoreError, Saver};

use crate::{
    CheckRequest, Config, ConfigError, Gone, Listing, Lists, Outcome, PastOutcome, Stats, Target, Verdict,
    addresses::{canonical, is_possible_source, is_public},
    checks::Checks,
    entry::{EndpointEntry, State, V4, V6, family_of},
    lists::ListBuilder,
    past::Past,
    wheel::Wheel,
};
use foldhash::fast::RandomState;
use rallypoint_limit::Limiter;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{Datagram, LobbyId, ServerId, Unregister};
use slots::Slots;
use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

/// For so long after an unregistration, a registration with the same ID is taken for a reordered datagram (L11).
const TOMBSTONE: Duration = Duration::from_secs(3);

/// The lists are published at most this often: a hundred changes at once cost as much as one.
const PUBLISH_EVERY: Duration = Duration::from_millis(20);

/// Events that nobody takes are dropped beyond this number.
const MAX_EVENTS: usize = 65_536;

/// The registry: all servers, by ID, by endpoint and by lobby.
///
/// * Getters: [`lists`](Self::lists), [`stats`](Self::stats), [`past_outcomes`](Self::past_outcomes).
/// * In: [`handle_datagram`](Self::handle_datagram), [`handle_legacy_datagram`](Self::handle_legacy_datagram),
///   [`handle_check`](Self::handle_check), [`handle_timeout`](Self::handle_timeout).
/// * Commands: [`set_config`](Self::set_config), [`publish`](Self::publish), and for a restart
///   [`save_some`](Self::save_some) and [`restore`](Self::restore).
/// * Out: [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout). It never sends anything by itself.
///
/// Changes show in [`lists`](Self::lists) when they are published: by [`handle_timeout`](Self::handle_timeout) at the
/// time [`poll_timeout`](Self::poll_timeout) names, which is at once if nothing was published just before.
#[derive(Debug)]
pub struct Registry {
    config: Config,
    seed: Seed,
    print: foldhash::fast::FixedState,
    slots: Slots,
    wheel: Wheel,
    lists: ListBuilder,
    /// Registered servers per lobby, listed or not.
    per_lobby: HashMap<LobbyId, usize, RandomState>,
    /// Registered endpoints per source address.
    per_address: HashMap<IpAddr, usize, RandomState>,
    tombstones: Tombstones,
    limiter: Limiter,
    checks: Checks,
    /// Outcomes of registrations, and apart from them those of what could not be read: a flood of the latter must not
    /// make the former forgotten.
    past: Past,
    past_unread: Past,
    events: VecDeque<Event>,
    publish_at: Option<Instant>,
    last_publish: Option<Instant>,
    stats: Stats,
    /// Reused by [`handle_timeout`](Self::handle_timeout).
    due: Vec<u32>,
}

/// Secrets for keyed hashes. They should come from the system's entropy; the default is for tests.
#[derive(Clone, Default)]
pub struct Seed {
    /// For hash tables, so that nobody can aim at one place of them. New with every start.
    pub tables: u64,
    /// For public IDs: kept, so that a server is called the same after a restart of the lobby.
    pub public_ids: [u8; 16],
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(secret)")
    }
}

/// What the registry tells its owner.
#[derive(Clone, Debug)]
pub enum Event {
    /// Check a server and report with [`Registry::handle_check`].
    Check(CheckRequest),
    /// A server is in the list that was not.
    Listed(Arc<Listing>),
    /// A listed server has something new.
    Changed(Arc<Listing>),
    /// A server is no longer in the list.
    Unlisted(Arc<Listing>, Gone),
}

impl Registry {
    /// An empty registry.
    pub fn new(config: Config, seed: Seed, now: Instant) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            print: foldhash::fast::FixedState::with_seed(seed.tables),
            slots: Slots::new(seed.tables),
            wheel: Wheel::new(now),
            lists: ListBuilder::new(),
            per_lobby: HashMap::default(),
            per_address: HashMap::default(),
            tombstones: Tombstones::default(),
            limiter: Limiter::new(&config.limits, u128::from(seed.tables)),
            checks: Checks::new(&config.checks, seed.tables),
            past: Past::new(),
            past_unread: Past::new(),
            events: VecDeque::new(),
            publish_at: None,
            last_publish: None,
            stats: Stats::default(),
            due: Vec::new(),
            config,
            seed,
        })
    }

    /// The published lists: any thread can hold on to this.
    #[must_use]
    pub fn lists(&self) -> Arc<Lists> {
        self.lists.published().clone()
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How much there is and how much has happened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (registered, lobbies) = (self.slots.len(), self.per_lobby.len());
        Stats { registered, lobbies, checks: self.checks.counts, ..self.stats }
    }

    /// How the budgets are used.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// What became of the last datagrams of an address, other than refreshes; the latest last.
    #[must_use]
    pub fn past_outcomes(&self, ip: IpAddr) -> Vec<PastOutcome> {
        let ip = canonical(ip);
        let mut past = [self.past.of(ip), self.past_unread.of(ip)].concat();
        past.sort_by_key(|past| past.at);
        past
    }

    /// A datagram to UDP port 29944. Every one ends in exactly one outcome.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> Outcome {
        let source = canonical(from.ip());
        let outcome = match self.refresh(now, source, bytes) {
            Some(outcome) => outcome,
            None => self.handle_new(now, source, bytes),
        };
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }

    /// A datagram to the legacy UDP port 29942 (L16).
    pub fn handle_legacy_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> Outcome {
        let source = canonical(from.ip());
        let modern = crate::legacy::to_registration(bytes, source, &self.seed.public_ids);
        let outcome = match &modern {
            Ok(modern) => self.refresh(now, source, modern).unwrap_or_else(|| self.handle_new(now, source, modern)),
            Err(error) => self.admit(now, source, bytes.len()).err().unwrap_or(Outcome::Malformed(*error)),
        };
        if modern.is_err() {
            self.past_unread.record(now, source, outcome, None);
        }
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }

    /// What came of a check that [`Event::Check`] asked for.
    pub fn handle_check(&mut self, now: Instant, target: Target, verdict: Verdict) {
        for (slot, generation) in self.checks.result(now, &self.wheel, &self.config.checks, target, verdict) {
            if !self.slots.is(slot, generation) {
                continue;
            }
            for family in [V4, V6] {
                let endpoint = self.slots.cold(slot).endpoints[family];
                if endpoint.and_then(|endpoint| endpoint.target()) == Some(target) {
                    self.settle(now, slot, family, verdict);
                }
            }
        }
    }

    /// Lets time pass: leases end, checks are renewed, the lists are published.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.due(now, &mut due);
        for slot in due.drain(..) {
            self.look_at(now, slot);
        }
        self.due = due;
        self.tombstones.forget_old(now);
        self.checks.forget_old(self.wheel.tick(now));
        if self.publish_at.is_some_and(|at| at <= now) {
            self.publish(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.wheel.next(), self.publish_at].into_iter().flatten().min()
    }

    /// The next thing that the owner should know or do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.checks.poll(&self.config.checks).map(Event::Check).or_else(|| self.events.pop_front())
    }

    /// Makes all changes visible in the lists now.
    pub fn publish(&mut self, now: Instant) {
        self.publish_at = None;
        self.last_publish = Some(now);
        self.stats.published += 1;
        self.lists.publish();
    }

    /// Changes the configuration without forgetting anything. Servers that the new bans name go at once.
    pub fn set_config(&mut self, now: Instant, config: Config) -> Result<(), ConfigError> {
        config.validate()?;
        self.limiter.set_config(&config.limits);
        self.checks.set_config(&config.checks);
        self.config = config;
        for slot in self.slots.all() {
            if self.is_unwelcome(now, slot) {
                self.remove(now, slot, Gone::Banned);
            } else {
                // The next registration is looked at under the new rules.
                self.slots.hot_mut(slot).prints = [0; 2];
            }
        }
        Ok(())
    }

    /// A registration that is, byte for byte and from the same address, the one before: the lease is moved, nothing else.
    /// It costs less than asking whether it is within a budget, so nobody is asked.
    #[inline]
    fn refresh(&mut self, now: Instant, source: IpAddr, bytes: &[u8]) -> Option<Outcome> {
        let slot = self.slots.find(Datagram::peek_registration(bytes)?)?;
        let print = self.fingerprint(source, bytes);
        let family = family_of(source);
        let hot = self.slots.hot_mut(slot);
        if hot.prints[family] != print {
            return None;
        }
        let outcome = match hot.states[family] {
            State::Listed => Outcome::Refreshed,
            State::Checking => Outcome::Checking,
            State::None | State::Unreachable => return None,
        };
        hot.deadlines[family] = self.wheel.deadline(now, self.config.lease);
        Some(outcome)
    }

    fn handle_new(&mut self, now: Instant, source: IpAddr, bytes: &[u8]) -> Outcome {
        let (outcome, port) = match self.admit(now, source, bytes.len()) {
            Err(refused) => (refused, None),
            Ok(()) => match Datagram::parse(bytes) {
                Err(error) => (Outcome::Malformed(error), None),
                Ok(Datagram::Unregister(Unregister { server_id })) => (self.unregister(now, server_id), None),
                Ok(Datagram::Register(registration)) => {
                    let print = self.fingerprint(source, bytes);
                    (self.register(now, source, &registration, print), Some(registration.port().get()))
                }
            },
        };
        let past = if port.is_some() { &mut self.past } else { &mut self.past_unread };
        past.record(now, source, outcome, port);
        outcome
    }

    /// Whether a datagram is looked at at all.
    fn admit(&mut self, now: Instant, source: IpAddr, size: usize) -> Result<(), Outcome> {
        if !is_possible_source(source) {
            return Err(Outcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source) {
            if let rallypoint_limit::Verdict::Refused(refusal) = self.limiter.check(now, source, size) {
                return Err(Outcome::OverBudget(refusal));
            }
        }
        if self.config.bans.of_address(now, source).is_some() {
            return Err(Outcome::Banned);
        }
        if size > self.config.max_registration {
            return Err(Outcome::TooLarge);
        }
        Ok(())
    }

    fn unregister(&mut self, now: Instant, id: ServerId) -> Outcome {
        let Some(slot) = self.slots.find(id) else { return Outcome::NotRegistered };
        self.remove(now, slot, Gone::Unregistered);
        self.tombstones.insert(now, id);
        Outcome::Unregistered
    }

    /// Takes a server out of the registry.
    fn remove(&mut self, now: Instant, slot: u32, why: Gone) {
        self.unlist(now, slot, why);
        for family in [V4, V6] {
            self.drop_endpoint(slot, family);
        }
        let lobby = self.slots.cold(slot).listing.lobby_id;
        uncount(&mut self.per_lobby, lobby);
        self.slots.free(slot);
    }

    fn drop_endpoint(&mut self, slot: u32, family: usize) {
        let cold = self.slots.cold_mut(slot);
        if let Some(endpoint) = cold.endpoints[family].take() {
            let key = (endpoint.outside, cold.transport);
            self.slots.unbind(key, slot);
            uncount(&mut self.per_address, endpoint.source);
        }
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = State::None;
        hot.prints[family] = 0;
    }

    fn unlist(&mut self, now: Instant, slot: u32, why: Gone) {
        let cold = self.slots.cold_mut(slot);
        let Some(place) = cold.place.take() else { return };
        let listing = cold.listing.clone();
        if let Some((moved, place)) = self.lists.remove(place) {
            self.slots.cold_mut(moved).place = Some(place);
        }
        self.stats.listed -= 1;
        self.stats.gone[why as usize] += 1;
        self.tell(now, Event::Unlisted(listing, why));
    }

    /// Looks at an entry whose time may have come.
    fn look_at(&mut self, now: Instant, slot: u32) {
        if !self.slots.is_live(slot) {
            // Its tenant left before its time; the slot could not be given away while the wheel knew it.
            self.slots.recycle(slot);
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
            self.remove(now, slot, Gone::Expired);
            self.slots.recycle(slot);
            return;
        };
        self.wheel.insert(slot, next);
        self.relist(now, slot, Gone::Expired);
        self.renew_checks(now, slot);
    }

    fn is_unwelcome(&self, now: Instant, slot: u32) -> bool {
        let cold = self.slots.cold(slot);
        let endpoints = cold.endpoints.iter().flatten();
        let unwelcome = |endpoint: &EndpointEntry| {
            let private = !self.config.allow_private && !is_public(endpoint.outside.ip);
            private || self.config.bans.of_address(now, endpoint.source).is_some()
        };
        let name = || cold.listing.block().table.get(b"name").unwrap_or_default();
        endpoints.into_iter().any(unwelcome) || self.config.bans.of_name(now, name()).is_some()
    }

    fn tell(&mut self, now: Instant, event: Event) {
        if self.publish_at.is_none() {
            let earliest = self.last_publish.map_or(now, |last| last + PUBLISH_EVERY);
            self.publish_at = Some(earliest.max(now));
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.stats.lost_events += 1;
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
fn uncount<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize, RandomState>, key: K) {
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

/// Servers that have just unregistered (L11). Only servers that were there leave one, so their number is bounded by what
/// can register within three seconds.
#[derive(Debug, Default)]
struct Tombstones {
    by_id: HashMap<ServerId, Instant, RandomState>,
    ends: VecDeque<(Instant, ServerId)>,
}

impl Tombstones {
    fn insert(&mut self, now: Instant, id: ServerId) {
        let end = now + TOMBSTONE;
        self.by_id.insert(id, end);
        self.ends.push_back((end, id));
    }

    fn contains(&self, now: Instant, id: ServerId) -> bool {
        self.by_id.get(&id).is_some_and(|&end| now < end)
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(&(end, id)) = self.ends.front()
            && end <= now
        {
            self.ends.pop_front();
            if self.by_id.get(&id) == Some(&end) {
                self.by_id.remove(&id);
            }
        }
    }
}
