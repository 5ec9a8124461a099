//! A registration that is not a mere refresh: the rules of who replaces whom, who is checked, and what is shown.

use super::{Event, Registry};
use crate::{
    CheckKind, Gone, Listing, Outcome, PublicId, Verdict,
    addresses::is_public,
    checks::Answer,
    entry::{Addr, Cold, EndpointEntry, Family, State, V4, V6, family_of},
};
use rallypoint_wire::lobby::{Endpoint, ListBlock, Registration, Transport};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};

impl Registry {
    pub(super) fn register(&mut self, now: Instant, source: IpAddr, new: &Registration<'_>, print: u64) -> Outcome {
        if self.config.bans.of_name(now, new.name()).is_some() {
            return Outcome::Banned;
        }
        if self.tombstones.contains(now, new.server_id()) {
            return Outcome::JustUnregistered;
        }
        let endpoint = self.endpoint(source, new);
        if !self.config.allow_private && !is_public(endpoint.outside.ip) {
            return Outcome::PrivateSource;
        }
        let known = self.slots.find(new.server_id());
        let owner = self.slots.at_endpoint((endpoint.outside, new.transport()));
        let replaced = owner.filter(|&slot| Some(slot) != known);
        if let Some(refused) = self.at_cap(source, new, known, replaced) {
            return refused;
        }
        // L8: a restarted server has a new ID, and must be visible at once.
        if let Some(old) = replaced {
            self.remove(now, old, Gone::Replaced);
        }
        let slot = known.unwrap_or_else(|| self.create(now, new));
        self.move_lobby(now, slot, new);
        self.change_transport(now, slot, new.transport());
        let was_listed = self.slots.cold(slot).place.is_some();
        self.set_endpoint(slot, endpoint);
        self.set_data(slot, new);
        let family = family_of(source);
        let lease = self.wheel.deadline(now, self.config.lease);
        let hot = self.slots.hot_mut(slot);
        hot.prints[family] = print;
        hot.deadlines[family] = lease;
        if known.is_none() {
            self.wheel.insert(slot, lease);
        }
        let busy = self.check(now, slot, family);
        let changed = self.relist(now, slot, Gone::Unreachable);
        match self.slots.hot(slot).states[family] {
            State::Listed if !was_listed => Outcome::Listed,
            State::Listed if changed => Outcome::Changed,
            State::Listed => Outcome::Refreshed,
            State::Checking if busy => Outcome::CheckBusy,
            State::Checking => Outcome::Checking,
            State::Unreachable | State::None => Outcome::Unreachable,
        }
    }

    /// What a registration says about where the server is, and how it is to be checked.
    fn endpoint(&self, source: IpAddr, new: &Registration<'_>) -> EndpointEntry {
        let port = new.port().get();
        let outside = self.config.address_map.outside(SocketAddr::new(source, port));
        let checks = &self.config.checks;
        let check = match new.transport() {
            _ if !checks.enabled || checks.exempt.contains(source) => None,
            Transport::Tcp => Some((CheckKind::Connect, port)),
            Transport::Udp => new.table().get(b"x-query").and_then(|query| CheckKind::from_x_query(query, port)),
        };
        EndpointEntry { source, outside: Addr { ip: outside.ip(), port: outside.port() }, check }
    }

    /// Whether there is room, counting what this registration would free.
    fn at_cap(
        &self,
        source: IpAddr,
        new: &Registration<'_>,
        known: Option<u32>,
        replaced: Option<u32>,
    ) -> Option<Outcome> {
        let caps = &self.config.caps;
        let lobby_of = |slot| self.slots.cold(slot).listing.lobby_id;
        let has_source = |slot| self.slots.cold(slot).endpoints.iter().flatten().any(|e| e.source == source);
        let mut ours = known.into_iter().chain(replaced);
        if known.is_none() && replaced.is_none() && self.slots.len() >= caps.total {
            return Some(Outcome::RegistryFull);
        }
        if !ours.clone().any(|slot| lobby_of(slot) == new.lobby_id()) {
            match self.per_lobby.get(&new.lobby_id()) {
                Some(&count) if count >= caps.per_lobby => return Some(Outcome::LobbyFull),
                None if self.per_lobby.len() >= caps.lobbies => return Some(Outcome::TooManyLobbies),
                _ => {}
            }
        }
        let from_here = self.per_address.get(&source).copied().unwrap_or(0);
        (from_here >= caps.per_address && !ours.any(has_source)).then_some(Outcome::AddressFull)
    }

    fn create(&mut self, now: Instant, new: &Registration<'_>) -> u32 {
        *self.per_lobby.entry(new.lobby_id()).or_default() += 1;
        let listing = Listing {
            public_id: PublicId::of(new.server_id(), &self.seed.public_ids),
            lobby_id: new.lobby_id(),
            since: now,
            latency: None,
            block: block(new, None, None),
        };
        let listing = Arc::new(listing);
        let cold = Cold { transport: new.transport(), endpoints: [None; 2], listing, place: None };
        self.slots.insert(new.server_id(), cold)
    }

    /// A known server that names another lobby moves there.
    fn move_lobby(&mut self, now: Instant, slot: u32, new: &Registration<'_>) {
        let old = self.slots.cold(slot).listing.lobby_id;
        if old == new.lobby_id() {
            return;
        }
        self.unlist(now, slot, Gone::Moved);
        super::uncount(&mut self.per_lobby, old);
        *self.per_lobby.entry(new.lobby_id()).or_default() += 1;
    }

    /// The transport is the server's, not the endpoint's: the endpoint of the other family is found under the new one.
    fn change_transport(&mut self, now: Instant, slot: u32, transport: Transport) {
        let cold = self.slots.cold_mut(slot);
        let old = std::mem::replace(&mut cold.transport, transport);
        if old == transport {
            return;
        }
        for endpoint in cold.endpoints.into_iter().flatten() {
            self.slots.unbind((endpoint.outside, old), slot);
            if let Some(other) = self.slots.at_endpoint((endpoint.outside, transport)) {
                self.remove(now, other, Gone::Replaced);
            }
            self.slots.bind((endpoint.outside, transport), slot);
        }
    }

    fn set_endpoint(&mut self, slot: u32, new: EndpointEntry) {
        let family = family_of(new.source);
        let is_same_place = |old: &EndpointEntry| (old.source, old.outside) == (new.source, new.outside);
        if self.slots.cold(slot).endpoints[family].as_ref().is_some_and(is_same_place) {
            // The address is as good as before: another kind of check takes its turn in the background.
            self.slots.cold_mut(slot).endpoints[family] = Some(new);
            if new.check.is_none() {
                self.slots.hot_mut(slot).states[family] = State::Listed;
            }
            return;
        }
        self.drop_endpoint(slot, family);
        let transport = self.slots.cold(slot).transport;
        self.slots.bind((new.outside, transport), slot);
        *self.per_address.entry(new.source).or_default() += 1;
        self.slots.cold_mut(slot).endpoints[family] = Some(new);
        let state = if new.check.is_some() { State::Checking } else { State::Listed };
        self.slots.hot_mut(slot).states[family] = state;
    }

    fn set_data(&mut self, slot: u32, new: &Registration<'_>) {
        let cold = self.slots.cold_mut(slot);
        let shown = cold.listing.block();
        let block = block(new, shown.v4, shown.v6);
        if *block != *cold.listing.block || cold.listing.lobby_id != new.lobby_id() {
            let old = &cold.listing;
            let lobby_id = new.lobby_id();
            let (public_id, since, latency) = (old.public_id, old.since, old.latency);
            cold.listing = Arc::new(Listing { public_id, lobby_id, since, latency, block });
            // What is in the list is what was there before, until `relist` compares the two.
        }
    }

    /// Finds out whether an endpoint that is not listed can be reached. Says whether that had to be put off.
    fn check(&mut self, now: Instant, slot: u32, family: Family) -> bool {
        let target = self.slots.cold(slot).endpoints[family].and_then(|endpoint| endpoint.target());
        let hot = self.slots.hot(slot);
        let (Some(target), State::Checking | State::Unreachable) = (target, hot.states[family]) else { return false };
        let waiter = (slot, hot.generation);
        match self.checks.ask(now, &self.wheel, &self.config.checks, target, waiter) {
            Answer::Known(verdict) => self.apply(slot, family, verdict),
            Answer::Wait => self.slots.hot_mut(slot).states[family] = State::Checking,
            Answer::Busy => {
                // With no fingerprint the next registration comes here again.
                let hot = self.slots.hot_mut(slot);
                hot.states[family] = State::Checking;
                hot.prints[family] = 0;
                return true;
            }
        }
        false
    }

    /// A listed endpoint stays listed while its verdict is renewed in the background (L12).
    pub(super) fn renew_checks(&mut self, now: Instant, slot: u32) {
        for family in [V4, V6] {
            let hot = self.slots.hot(slot);
            let (State::Listed, waiter) = (hot.states[family], (slot, hot.generation)) else { continue };
            let target = self.slots.cold(slot).endpoints[family].and_then(|endpoint| endpoint.target());
            if let Some(target) = target {
                self.checks.ask(now, &self.wheel, &self.config.checks, target, waiter);
            }
        }
    }

    /// A verdict has come in.
    pub(super) fn settle(&mut self, now: Instant, slot: u32, family: Family, verdict: Verdict) {
        let before = self.slots.hot(slot).states[family];
        self.apply(slot, family, verdict);
        self.relist(now, slot, Gone::Unreachable);
        let after = self.slots.hot(slot).states[family];
        let cold = self.slots.cold(slot);
        if let Some(endpoint) = cold.endpoints[family].filter(|_| before != after) {
            let outcome = if after == State::Listed { Outcome::Listed } else { Outcome::Unreachable };
            self.past.record(now, endpoint.source, outcome, Some(endpoint.outside.port));
        }
    }

    fn apply(&mut self, slot: u32, family: Family, verdict: Verdict) {
        let state = match verdict {
            Verdict::Reachable(latency) => {
                self.set_latency(slot, latency);
                State::Listed
            }
            Verdict::Unreachable => State::Unreachable,
        };
        self.slots.hot_mut(slot).states[family] = state;
    }

    fn set_latency(&mut self, slot: u32, latency: Duration) {
        let cold = self.slots.cold_mut(slot);
        let Listing { public_id, lobby_id, since, block, .. } = &*cold.listing;
        let (public_id, lobby_id, since, block) = (*public_id, *lobby_id, *since, block.clone());
        cold.listing = Arc::new(Listing { public_id, lobby_id, since, latency: Some(latency), block });
    }

    /// Brings the list in line with the entry. Says whether that changed anything that is shown.
    pub(super) fn relist(&mut self, now: Instant, slot: u32, why: Gone) -> bool {
        let hot = self.slots.hot(slot);
        let is_listed = |family| hot.states[family] == State::Listed;
        let (v4_listed, v6_listed) = (is_listed(V4), is_listed(V6));
        if !v4_listed && !v6_listed {
            let was_listed = self.slots.cold(slot).place.is_some();
            self.unlist(now, slot, why);
            return was_listed;
        }
        let cold = self.slots.cold(slot);
        let outside = |family: Family, listed: bool| cold.endpoints[family].filter(|_| listed).map(|e| e.outside);
        let v4 = outside(V4, v4_listed).and_then(|addr| match addr.ip {
            IpAddr::V4(ip) => NonZeroU16::new(addr.port).map(|port| Endpoint { ip, port }),
            IpAddr::V6(_) => None,
        });
        let v6 = outside(V6, v6_listed).and_then(|addr| match addr.ip {
            IpAddr::V6(ip) => NonZeroU16::new(addr.port).map(|port| Endpoint { ip, port }),
            IpAddr::V4(_) => None,
        });
        let shown = cold.listing.block();
        if (shown.v4, shown.v6) != (v4, v6) {
            let mut block = Vec::new();
            ListBlock { v4, v6, ..shown }.emit(&mut block);
            let Listing { public_id, lobby_id, since, latency, .. } = *cold.listing;
            let listing = Arc::new(Listing { public_id, lobby_id, since, latency, block: block.into() });
            self.slots.cold_mut(slot).listing = listing;
        }
        let cold = self.slots.cold(slot);
        let listing = cold.listing.clone();
        match cold.place {
            None => {
                let place = self.lists.insert(slot, listing.clone());
                self.slots.cold_mut(slot).place = Some(place);
                self.stats.listed += 1;
                self.tell(now, Event::Listed(listing));
                true
            }
            Some(place) if self.lists.differs(place, &listing) => {
                self.lists.replace(place, listing.clone());
                self.tell(now, Event::Changed(listing));
                true
            }
            Some(_) => false,
        }
    }
}

fn block(
    new: &Registration<'_>,
    v4: Option<Endpoint<std::net::Ipv4Addr>>,
    v6: Option<Endpoint<std::net::Ipv6Addr>>,
) -> Box<[u8]> {
    let mut block = Vec::new();
    let (transport, occupancy, table) = (new.transport(), new.occupancy(), new.table());
    ListBlock { transport, v4, v6, occupancy, table }.emit(&mut block);
    block.into()
}
