//! A registration that is not a mere refresh: the rules of who replaces whom, who is checked, and what is shown.

use super::{Registry, slots::Slots};
use crate::{
    CheckResult, CheckTarget, Config, Event, ListedServer, ListingOrigin, RegistrationOutcome, UnlistReason,
    checks::Answer,
    entry::{Addr, Cold, EndpointEntry, Family, Inside, Probe, State, V4, V6, family_of, memory_of},
};
use rallypoint_limit::{Lan, Site, is_public};
use rallypoint_wire::lobby::{Endpoint, ListBlock, LobbyId, Registration, TableBuf, Transport};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};

/// A server registers every 30 seconds. Less than this after its last registration it has not come back, it repeats itself.
const RETURN_AFTER: Duration = Duration::from_secs(10);

/// What a block of the list has besides the table: its length, two endpoints, occupancy, and so on.
const BLOCK_HEAD: usize = 64;

/// Servers that say no more than this, in bytes, may go on changing when memory is used up.
const MODEST: usize = 1_024;

/// A server for which there has to be room.
pub(super) struct Newcomer {
    /// Whose servers are counted, if they are.
    pub home: Option<Lan>,
    pub lobby: LobbyId,
    /// Who is charged if that lobby is new.
    pub opener: Option<Site>,
    /// How many bytes the list would have of it.
    pub size: usize,
}

impl Newcomer {
    /// A server that is charged to nobody.
    pub fn unrelated(new: &Registration<'_>) -> Self {
        // What the list shows of it is at most this much longer than what it says.
        Self { home: None, lobby: new.lobby_id(), opener: None, size: new.table().size() + BLOCK_HEAD }
    }
}

impl Registry {
    pub(super) fn register(
        &mut self,
        now: Instant,
        source: IpAddr,
        new: &Registration<'_>,
        print: u64,
    ) -> RegistrationOutcome {
        if self.is_name_banned(now, new.name()) {
            return RegistrationOutcome::Banned;
        }
        if self.tombstones.contains(now, new.server_id()) {
            return RegistrationOutcome::JustUnregistered;
        }
        let endpoint = self.endpoint(source, new.port());
        let place = (endpoint.outside, new.transport());
        if self.is_server_banned(now, self.public_id(new.server_id())) || self.is_place_banned(now, place) {
            return RegistrationOutcome::Banned;
        }
        if !self.config.allow_private && !is_public(endpoint.outside.ip) {
            return RegistrationOutcome::PrivateSource;
        }
        let known = self.slots.find(new.server_id());
        let owner = self.slots.at_endpoint(place);
        let replaced = owner.filter(|&slot| Some(slot) != known);
        if replaced.is_some_and(|slot| self.slots.cold(slot).listing.origin != ListingOrigin::Registered) {
            return RegistrationOutcome::ListedByQuery;
        }
        let (home, opener) = (Some(Lan::of(source)), Some(Site::of(source)));
        let newcomer = Newcomer { home, opener, ..Newcomer::unrelated(new) };
        if let Some(refused) = self.at_cap(&newcomer, known, replaced) {
            return refused;
        }
        // L8: a restarted server has a new ID, and must be visible at once.
        if let Some(old) = replaced {
            self.remove(now, old, UnlistReason::Replaced);
        }
        let slot = known.unwrap_or_else(|| self.create(now, opener, new, ListingOrigin::Registered));
        self.move_lobby(now, slot, opener, new.lobby_id());
        let was_listed = self.slots.cold(slot).place.is_some();
        let family = family_of(source);
        let is_to_check = self.set_endpoint(now, slot, family, endpoint, new);
        let lease = self.wheel.deadline(now, self.config.lease);
        self.slots.hot_mut(slot).deadlines[family] = lease;
        self.wheel.schedule(slot, lease);
        let is_busy = [V4, V6].map(|family| is_to_check[family] && self.check(now, slot, family));
        let is_changed = self.relist(now, slot, Some(new), UnlistReason::Unreachable);
        if !is_busy[family] {
            self.slots.hot_mut(slot).prints[family] = print;
        }
        match self.slots.hot(slot).states[family] {
            State::Listed if !was_listed => RegistrationOutcome::Listed,
            State::Listed if is_changed => RegistrationOutcome::Changed,
            State::Listed => RegistrationOutcome::Refreshed,
            State::Checking if is_busy[family] => RegistrationOutcome::CheckBusy,
            State::Checking => RegistrationOutcome::Checking,
            State::Unreachable | State::None => RegistrationOutcome::Unreachable,
        }
    }

    /// Where a server is that registers this port from this address.
    pub(super) fn endpoint(&self, source: IpAddr, port: NonZeroU16) -> EndpointEntry {
        let inside = Addr { ip: source, port };
        let outside = self.config.address_map.outside(inside.into());
        // `Config::validate` has made sure that no port is mapped to 0.
        let outside = Addr { ip: outside.ip(), port: NonZeroU16::new(outside.port()).unwrap_or(port) };
        EndpointEntry { inside, outside }
    }

    /// Whether there is room, counting what this registration would free.
    pub(super) fn at_cap(
        &self,
        new: &Newcomer,
        known: Option<u32>,
        replaced: Option<u32>,
    ) -> Option<RegistrationOutcome> {
        let caps = &self.config.caps;
        let ours = || known.into_iter().chain(replaced);
        let lobby_of = |slot| self.slots.cold(slot).listing.lobby_id;
        if ours().next().is_none() && self.slots.len() >= caps.total {
            return Some(RegistrationOutcome::RegistryFull);
        }
        match self.lobbies.servers(new.lobby) {
            Some(count) if count >= caps.per_lobby && !ours().any(|slot| lobby_of(slot) == new.lobby) => {
                return Some(RegistrationOutcome::LobbyFull);
            }
            None if !self.config.named_lobbies.contains(&new.lobby) => {
                let (open, opened_here) = self.lobbies.open_without(new.opener, self.lobbies_only_of(known, replaced));
                if open >= caps.lobbies || opened_here >= caps.lobbies_per_network {
                    return Some(RegistrationOutcome::TooManyLobbies);
                }
            }
            _ => {}
        }
        if let Some(home) = new.home {
            let from_here = self.per_home.get(&home).copied().unwrap_or(0);
            if from_here >= caps.per_address && !ours().any(|slot| self.is_from_home(slot, home)) {
                return Some(RegistrationOutcome::AddressFull);
            }
        }
        let freed: usize = ours().map(|slot| self.slots.cold(slot).listing.memory()).sum();
        let (before, needed) = (self.memory - freed, memory_of(new.size));
        // Who is there already can go on changing while others have used up the rest, within reason.
        let extra = if freed > 0 && new.size <= MODEST { caps.memory / 8 } else { 0 };
        (needed > freed && before + needed > caps.memory.saturating_add(extra))
            .then_some(RegistrationOutcome::MemoryFull)
    }

    /// The lobbies that would be empty without these servers.
    fn lobbies_only_of(&self, a: Option<u32>, b: Option<u32>) -> impl Iterator<Item = LobbyId> {
        let lobby_of = |slot: Option<u32>| slot.map(|slot| self.slots.cold(slot).listing.lobby_id);
        let (a, b) = (lobby_of(a), lobby_of(b));
        let has = |lobby: Option<LobbyId>, servers| lobby.filter(|&id| self.lobbies.servers(id) == Some(servers));
        let empty = if a == b { [has(a, 2), None] } else { [has(a, 1), has(b, 1)] };
        empty.into_iter().flatten()
    }

    fn is_from_home(&self, slot: u32, home: Lan) -> bool {
        let cold = self.slots.cold(slot);
        cold.listing.origin.is_charged() && cold.endpoints.iter().flatten().any(|at| Lan::of(at.inside.ip) == home)
    }

    fn join_lobby(&mut self, opener: Option<Site>, lobby: LobbyId) {
        self.lobbies.join(lobby, self.config.named_lobbies.contains(&lobby), opener);
    }

    pub(super) fn create(
        &mut self,
        now: Instant,
        opener: Option<Site>,
        new: &Registration<'_>,
        origin: ListingOrigin,
    ) -> u32 {
        self.join_lobby(opener, new.lobby_id());
        // What it says comes in when it is listed: writing that down is the expensive part, and done once.
        self.scratch.clear();
        ListBlock { table: TableBuf::new().as_table(), ..block(new, None, None) }.emit(&mut self.scratch);
        let public_id = self.public_id(new.server_id());
        let listing = Arc::new(ListedServer::new(public_id, new.lobby_id(), now, &self.scratch).of(origin));
        self.memory += listing.memory();
        let (transport, probe) = (new.transport(), Probe::of(new));
        let serial = self.next_serial();
        let cold = Cold { serial, transport, probe, endpoints: [None; 2], asks: [None; 2], listing, place: None };
        self.slots.insert(new.server_id(), cold)
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// A known server that names another lobby moves there.
    pub(super) fn move_lobby(&mut self, now: Instant, slot: u32, opener: Option<Site>, lobby: LobbyId) {
        let old = self.slots.cold(slot).listing.lobby_id;
        if old != lobby {
            self.unlist(now, slot, UnlistReason::Moved);
            self.lobbies.leave(old);
            self.join_lobby(opener, lobby);
            let cold = self.slots.cold_mut(slot);
            cold.listing = Arc::new(cold.listing.with(lobby, &cold.listing.block));
            self.slots.hot_mut(slot).prints = [0; 2];
        }
    }

    /// Notes where a server is and how it is reached. Says which of its endpoints have to be checked now: those of which the
    /// lobby knows nothing in their new place or transport, those that are to be checked in a new way (W14), and the one
    /// that registers if it is not listed.
    pub(super) fn set_endpoint(
        &mut self,
        now: Instant,
        slot: u32,
        family: Family,
        new: EndpointEntry,
        registration: &Registration<'_>,
    ) -> [bool; 2] {
        let (old, state) = (self.slots.cold(slot).endpoints[family], self.slots.hot(slot).states[family]);
        self.drop_endpoint(slot, family);
        let is_other_transport = self.change_transport(now, slot, registration.transport());
        self.slots.bind((new.outside, registration.transport()), slot);
        self.count_home(slot, new.inside.ip);
        let cold = self.slots.cold_mut(slot);
        cold.endpoints[family] = Some(new);
        // Who did not register was asked by whoever brought it here.
        let probe = Probe::of(registration).filter(|_| cold.listing.origin == ListingOrigin::Registered);
        let is_other_probe = std::mem::replace(&mut cold.probe, probe) != probe;
        let is_other_place = old.is_none_or(|old| old.inside != new.inside);
        if is_other_place {
            cold.asks[family] = None;
        }
        let states = &mut self.slots.hot_mut(slot).states;
        states[family] = if is_other_place { State::Checking } else { state };
        for state in states.iter_mut().filter(|state| **state != State::None && is_other_transport) {
            *state = State::Checking;
        }
        [V4, V6].map(|at| match states[at] {
            State::None => false,
            State::Listed => is_other_probe,
            State::Checking | State::Unreachable => is_other_probe || at == family,
        })
    }

    /// One more endpoint of a source, if it is charged for it.
    pub(super) fn count_home(&mut self, slot: u32, source: IpAddr) {
        if self.slots.cold(slot).listing.origin.is_charged() {
            *self.per_home.entry(Lan::of(source)).or_default() += 1;
        }
    }

    /// The transport is the server's, not the endpoint's: an endpoint of the other family goes along, unless another server
    /// has registered that place with the new transport, or nobody may. Says whether it is another one.
    fn change_transport(&mut self, now: Instant, slot: u32, transport: Transport) -> bool {
        let cold = self.slots.cold(slot);
        let old = cold.transport;
        if old == transport {
            return false;
        }
        let endpoints = cold.endpoints;
        for (family, endpoint) in endpoints.iter().enumerate() {
            let Some(EndpointEntry { outside, .. }) = *endpoint else { continue };
            let place = (outside, transport);
            if self.slots.at_endpoint(place).is_some() || self.is_place_banned(now, place) {
                self.drop_endpoint(slot, family);
            } else {
                self.slots.unbind((outside, old), slot);
                self.slots.bind(place, slot);
            }
        }
        self.slots.cold_mut(slot).transport = transport;
        true
    }

    /// Finds out whether an endpoint can be reached. One that is listed stays so until that is known. Says whether it had to
    /// be put off.
    fn check(&mut self, now: Instant, slot: u32, family: Family) -> bool {
        let Some(target) = self.target(slot, family) else {
            self.slots.hot_mut(slot).states[family] = State::Listed;
            return false;
        };
        let waiter = (slot, self.slots.cold(slot).serial);
        let returns = self.count_return(now, slot, family);
        match self.checks.ask(now, &self.wheel, &self.config.checks, target, (waiter, returns)) {
            Answer::Known(verdict) => {
                self.apply(slot, family, verdict);
                return false;
            }
            Answer::Wait | Answer::Busy if self.slots.hot(slot).states[family] == State::Listed => return false,
            Answer::Wait => {
                self.slots.hot_mut(slot).states[family] = State::Checking;
                return false;
            }
            Answer::Busy => {}
        }
        // With no fingerprint the next registration comes here again.
        let hot = self.slots.hot_mut(slot);
        hot.states[family] = State::Checking;
        hot.prints[family] = 0;
        true
    }

    /// The same registration again, of an endpoint that waits for its check: it comes further in front, or finds out that
    /// the verdict is known.
    #[cold]
    pub(super) fn ask_again(&mut self, now: Instant, slot: u32, family: Family) -> RegistrationOutcome {
        let was_listed = self.slots.cold(slot).place.is_some();
        let is_busy = self.check(now, slot, family);
        let outcome = match self.slots.hot(slot).states[family] {
            State::Checking if is_busy => RegistrationOutcome::CheckBusy,
            State::Checking => return RegistrationOutcome::Checking,
            State::Listed if was_listed => RegistrationOutcome::Changed,
            State::Listed => RegistrationOutcome::Listed,
            State::Unreachable | State::None => RegistrationOutcome::Unreachable,
        };
        self.relist(now, slot, None, UnlistReason::Unreachable);
        if let Some(EndpointEntry { inside, .. }) = self.slots.cold(slot).endpoints[family] {
            self.past.record(now, inside.ip, outcome, Some(inside.port.get()), None);
        }
        outcome
    }

    /// How often an endpoint has come back for its check. What comes sooner than any server does is no return.
    fn count_return(&mut self, now: Instant, slot: u32, family: Family) -> u8 {
        let now = self.wheel.tick(now);
        let asks = &mut self.slots.cold_mut(slot).asks[family];
        let (at, returns) = asks.get_or_insert((now, 0));
        if now >= at.plus(RETURN_AFTER) {
            (*at, *returns) = (now, returns.saturating_add(1));
        }
        *returns
    }

    /// A listed endpoint stays listed while its verdict is renewed in the background (L12).
    pub(super) fn renew_checks(&mut self, now: Instant, slot: u32) {
        for family in [V4, V6] {
            let is_listed = self.slots.hot(slot).states[family] == State::Listed;
            let Some(target) = self.target(slot, family).filter(|_| is_listed) else { continue };
            let waiter = (slot, self.slots.cold(slot).serial);
            if let Answer::Known(_) = self.checks.ask(now, &self.wheel, &self.config.checks, target, (waiter, 0))
                && let Some(until) = self.checks.until(&target)
            {
                self.wheel.schedule(slot, until);
            }
        }
    }

    /// A verdict has come in.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        slot: u32,
        family: Family,
        target: CheckTarget,
        verdict: CheckResult,
    ) {
        if verdict == CheckResult::Unknown {
            return self.put_off(now, slot, family);
        }
        let before = self.slots.hot(slot).states[family];
        self.apply(slot, family, verdict);
        self.relist(now, slot, None, UnlistReason::Unreachable);
        if let (State::Listed, Some(until)) = (self.slots.hot(slot).states[family], self.checks.until(&target)) {
            self.wheel.schedule(slot, until);
        }
        let after = self.slots.hot(slot).states[family];
        if let Some(endpoint) = self.slots.cold(slot).endpoints[family].filter(|_| before != after) {
            let outcome =
                if after == State::Listed { RegistrationOutcome::Listed } else { RegistrationOutcome::Unreachable };
            let port = Some(endpoint.inside.port.get());
            self.past.record(now, endpoint.inside.ip, outcome, port, None);
            self.refusals.note(endpoint.inside.ip, outcome, port, None);
        }
    }

    /// The lobby could not find out. One that is listed stays so, and is checked again soon; another one is checked when it
    /// registers again, whether or not it has anything new to say.
    fn put_off(&mut self, now: Instant, slot: u32, family: Family) {
        let retry = self.wheel.deadline(now, self.config.checks.retry);
        let hot = self.slots.hot_mut(slot);
        if hot.states[family] == State::Listed {
            return self.wheel.schedule(slot, retry);
        }
        hot.prints[family] = 0;
        if let Some(endpoint) = self.slots.cold(slot).endpoints[family] {
            let port = Some(endpoint.inside.port.get());
            self.past.record(now, endpoint.inside.ip, RegistrationOutcome::CheckBusy, port, None);
            self.refusals.note(endpoint.inside.ip, RegistrationOutcome::CheckBusy, port, None);
        }
    }

    fn apply(&mut self, slot: u32, family: Family, verdict: CheckResult) {
        let state = match verdict {
            CheckResult::Reachable(latency) => {
                self.slots.cold(slot).listing.set_latency(latency);
                State::Listed
            }
            CheckResult::Unreachable => State::Unreachable,
            CheckResult::Unknown => return,
        };
        self.slots.hot_mut(slot).states[family] = state;
    }

    /// What to check for an endpoint, if it is to be checked at all.
    pub(super) fn target(&self, slot: u32, family: Family) -> Option<CheckTarget> {
        target(&self.slots, &self.config, slot, family)
    }

    /// Brings the list in line with the entry, and the entry with what its server says now. Says whether that changed
    /// anything that is shown.
    pub(super) fn relist(
        &mut self,
        now: Instant,
        slot: u32,
        new: Option<&Registration<'_>>,
        why: UnlistReason,
    ) -> bool {
        let ((v4, v6), inside) = (self.shown_endpoints(slot), self.inside_endpoints(slot));
        let cold = self.slots.cold_mut(slot);
        let shown = cold.listing.block();
        let is_moved = inside != cold.listing.inside;
        if new.is_some() || (shown.v4, shown.v6) != (v4, v6) || is_moved {
            self.scratch.clear();
            new.map_or(ListBlock { v4, v6, ..shown }, |new| block(new, v4, v6)).emit(&mut self.scratch);
            if *self.scratch != *cold.listing.block || is_moved {
                self.memory -= cold.listing.memory();
                let listing = cold.listing.with(cold.listing.lobby_id, &self.scratch);
                cold.listing = Arc::new(listing.at(inside));
                self.memory += cold.listing.memory();
                if new.is_some() {
                    // The last registration counts: what the other family sent before is no refresh of it (L8).
                    self.slots.hot_mut(slot).prints = [0; 2];
                }
            }
        }
        if v4.is_none() && v6.is_none() {
            let was_listed = self.slots.cold(slot).place.is_some();
            self.unlist(now, slot, why);
            return was_listed;
        }
        let cold = self.slots.cold_mut(slot);
        let listing = cold.listing.clone();
        match cold.place {
            None => {
                cold.place = Some(self.lists.insert(slot, listing.clone()));
                self.stats.listed += 1;
                self.tell(now, Event::Listed(listing));
                true
            }
            Some(place) if !Arc::ptr_eq(self.lists.at(place), &listing) => {
                self.lists.replace(place, listing.clone());
                self.tell(now, Event::Changed(listing));
                true
            }
            Some(_) => false,
        }
    }

    /// Where those of an entry's endpoints are that the list has under another address.
    pub(super) fn inside_endpoints(&self, slot: u32) -> Option<Box<Inside>> {
        let (hot, cold) = (self.slots.hot(slot), self.slots.cold(slot));
        let inside = [V4, V6].map(|family| {
            let listed = cold.endpoints[family].filter(|_| hot.states[family] == State::Listed);
            listed.filter(|at| at.inside != at.outside).map(|at| at.inside)
        });
        (inside != Inside::default()).then(|| Box::new(inside))
    }

    /// The endpoints of an entry that the list has.
    pub(super) fn shown_endpoints(&self, slot: u32) -> (Option<Endpoint<Ipv4Addr>>, Option<Endpoint<Ipv6Addr>>) {
        let (hot, cold) = (self.slots.hot(slot), self.slots.cold(slot));
        let outside = |family: Family| {
            cold.endpoints[family].filter(|_| hot.states[family] == State::Listed).map(|endpoint| endpoint.outside)
        };
        let v4 = outside(V4).and_then(|Addr { ip, port }| match ip {
            IpAddr::V4(ip) => Some(Endpoint { ip, port }),
            IpAddr::V6(_) => None,
        });
        let v6 = outside(V6).and_then(|Addr { ip, port }| match ip {
            IpAddr::V6(ip) => Some(Endpoint { ip, port }),
            IpAddr::V4(_) => None,
        });
        (v4, v6)
    }
}

/// What to check for an endpoint, if it is to be checked at all.
pub(super) fn target(slots: &Slots, config: &Config, slot: u32, family: Family) -> Option<CheckTarget> {
    let cold = slots.get(slot)?;
    let (endpoint, probe) = (cold.endpoints[family]?, cold.probe?);
    let is_checked = config.checks.enabled && !config.checks.exempt.contains(endpoint.inside.ip);
    is_checked.then(|| probe.target(endpoint.inside))
}

/// What the list shows of a server.
fn block<'a>(new: &Registration<'a>, v4: Option<Endpoint<Ipv4Addr>>, v6: Option<Endpoint<Ipv6Addr>>) -> ListBlock<'a> {
    ListBlock { transport: new.transport(), v4, v6, occupancy: new.occupancy(), table: new.table() }
}
