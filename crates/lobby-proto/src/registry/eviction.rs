//! Which servers give way when a cap is reached (W45).
//!
//! A registration costs one datagram, and its source can be forged: without this, the sender of the most datagrams would hold
//! all places. An honest server differs: it replies to checks, it was listed before, or it returns every 30 seconds. A server
//! that is *proven* never gives way. The others give way to a registration with a higher [`Priority`] than a first one. Nothing
//! is searched: the entries of a full source, network or lobby are examined from the newest on, up to a fixed number, and those
//! of a full registry are sampled at random.

mod rank;

use super::{
    Registry,
    capacity::{Cap, SpaceRequest},
    chains::Chain,
    seen_endpoints::Priority,
};
use crate::{CheckTarget, RegistrationOutcome, UnlistReason, entry::Family, index::SlotIndex, wheel::Tick};
use rallypoint_limit::{Lan, Site};
use rank::{Among, is_large};
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// Interval between registrations that counts as a return. A server registers every 30 seconds.
pub(super) const RETURN_AFTER: Duration = Duration::from_secs(10);

/// Entries of a chain that are examined, the newest first.
const MAX_EXAMINED: usize = 64;

/// Entries of the whole registry that are sampled: a network with a tenth of them is missed once in 29 times.
const SAMPLE: usize = 32;

/// The same for the first registration of a server, which costs its sender least.
const SMALL_SAMPLE: usize = 8;

/// Maximum number of entries that a registration evicts. A large registration can need the memory of several.
const MAX_EVICTIONS: usize = 16;

/// The entries that have to give way to a registration, each with the cap that is the reason. They are evicted when they make
/// enough room for it, and not before: a registration that is refused in the end evicts none.
#[derive(Debug, Default)]
pub(super) struct Victims(Vec<(SlotIndex, Cap)>);

impl Victims {
    pub fn contains(&self, slot: SlotIndex) -> bool {
        self.slots().any(|victim| victim == slot)
    }

    pub fn slots(&self) -> impl Iterator<Item = SlotIndex> {
        self.0.iter().map(|&(slot, _)| slot)
    }
}

impl Registry {
    /// Makes room for a server by evicting others, if its priority is higher than theirs: its own one, if none is given. Returns
    /// the priority, if it was needed.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        mut request: SpaceRequest,
        mut priority: Option<Priority>,
    ) -> Result<Option<Priority>, RegistrationOutcome> {
        let mut victims = Victims::default();
        let mut needed = None;
        while let Some(cap) = self.find_cap_reached(&request, &victims) {
            let tick = self.wheel.tick(now);
            let held = match priority {
                Some(held) => held,
                None => {
                    request.has_replied = request.own_target().is_some_and(|target| self.checks.was_reachable(&target));
                    let own =
                        if request.has_replied { Priority::Former } else { self.seen.priority(tick, request.key) };
                    *priority.insert(own)
                }
            };
            if held == Priority::Former && !request.is_former {
                request.is_former = true;
                continue;
            }
            let held_here = match cap {
                Cap::Address(ip) if self.seen.is_resident(tick, request.key, Lan::of(ip), request.id) => {
                    Priority::Former
                }
                _ => held,
            };
            if victims.0.len() >= MAX_EVICTIONS || !self.choose_victims(tick, cap, &request, held_here, &mut victims) {
                self.note_refused(now, &request, held);
                return Err(cap.outcome());
            }
            needed = needed.max(Some(held_here));
        }
        for (slot, cap) in victims.0 {
            self.evict(now, slot, cap);
        }
        Ok(needed)
    }

    /// Remembers that a server was refused, so that it can return. One that has returned, and still finds no room, is checked if
    /// that is possible: entries that only register cannot keep out a server that replies.
    fn note_refused(&mut self, now: Instant, request: &SpaceRequest, priority: Priority) {
        let tick = self.wheel.tick(now);
        self.seen.note_refused(tick, tick, request.key);
        let is_checked = |target: &CheckTarget| {
            priority == Priority::Returning
                && self.config.checks.enabled
                && !self.config.checks.exempt.contains(target.addr.ip())
        };
        if let Some(target) = request.own_target().filter(is_checked) {
            // If no check can be made now, its next registration requests one again.
            let _ = self.checks.request(now, &self.wheel, &self.config.checks, target, (None, 1));
        }
    }

    /// Chooses entries whose space a request needs. Returns whether there are any that have to give way.
    fn choose_victims(
        &mut self,
        now: Tick,
        cap: Cap,
        request: &SpaceRequest,
        priority: Priority,
        victims: &mut Victims,
    ) -> bool {
        let victim = match cap {
            Cap::Address(ip) => {
                let newest = self.usage.sources.get(&Lan::of(ip)).and_then(|source| source.newest);
                self.pick_neighbour(now, (Chain::Source(Family::of(ip)), newest), request, priority, victims)
            }
            Cap::Network(ip) => {
                let newest = self.usage.networks.get(&Site::of(ip)).and_then(|network| network.newest);
                self.pick_neighbour(now, (Chain::Network(Family::of(ip)), newest), request, priority, victims)
            }
            Cap::Lobby(lobby) => {
                let newest = self.usage.lobbies.newest(lobby);
                self.pick_neighbour(now, (Chain::Lobby, newest), request, priority, victims)
            }
            Cap::Total | Cap::Memory => self.pick_sampled(now, request, priority, victims),
            Cap::Lobbies => return self.pick_lobby(now, request, priority, victims),
            Cap::LobbiesOfNetwork => None,
        };
        victims.0.extend(victim.map(|slot| (slot, cap)));
        victim.is_some()
    }

    /// An entry of a chain that has to give way: the newest of the lowest rank.
    fn pick_neighbour(
        &mut self,
        now: Tick,
        (chain, newest): (Chain, Option<SlotIndex>),
        request: &SpaceRequest,
        priority: Priority,
        victims: &Victims,
    ) -> Option<SlotIndex> {
        // The usual case at a full address.
        if priority == Priority::New {
            return None;
        }
        let is_other = |&slot: &SlotIndex| !request.is_own(slot) && !victims.contains(slot);
        let examined = self.slots.chain(chain, newest).take(MAX_EXAMINED).filter(is_other);
        let ranked: Vec<_> = examined.map(|slot| (self.rank(now, slot, usize::MAX), slot)).collect();
        let &(rank, slot) = ranked.iter().min_by_key(|(rank, _)| *rank)?;
        if !rank.gives_way(priority, Among::Neighbours) {
            return None;
        }
        if !rank.is_by_chance() {
            return Some(slot);
        }
        self.usage.random.draw(ranked.len(), 1).next().map(|at| ranked[at].1)
    }

    /// An entry of the whole registry that has to give way.
    fn pick_sampled(
        &mut self,
        now: Tick,
        request: &SpaceRequest,
        priority: Priority,
        victims: &Victims,
    ) -> Option<SlotIndex> {
        let count = if priority == Priority::New { SMALL_SAMPLE } else { SAMPLE };
        let own_size = request.source.map_or(0, |ip| self.network_size(ip));
        // Servers that only register, of a few networks that fill the registry together, evict each other and no others.
        let least = if is_large(own_size) && !request.has_replied { own_size } else { 0 };
        let sample: Vec<_> = self.usage.unproven.sample(count).collect();
        let is_eligible = |&slot: &SlotIndex| {
            !request.is_own(slot) && !victims.contains(slot) && (least == 0 || self.size_of_network(slot) >= least)
        };
        let sample: Vec<_> = sample.into_iter().filter(is_eligible).collect();
        let ranks = sample.into_iter().map(|slot| (self.rank(now, slot, own_size), slot));
        let (rank, slot) = ranks.min_by_key(|&(rank, _)| rank)?;
        rank.gives_way(priority, Among::All).then_some(slot)
    }

    /// Picks all servers of a small lobby without proven ones, if one has to be closed. Returns whether there is one.
    fn pick_lobby(&mut self, now: Tick, request: &SpaceRequest, priority: Priority, victims: &mut Victims) -> bool {
        if priority < Priority::Returning {
            return false;
        }
        let sample: Vec<_> = self.usage.lobbies.sample(SAMPLE).collect();
        let rank = |lobby| Some((self.lobby_rank(now, lobby, request, victims)?, lobby));
        let Some((_, lobby)) = sample.into_iter().filter_map(rank).min_by_key(|&(rank, _)| rank) else { return false };
        let newest = self.usage.lobbies.newest(lobby);
        victims.0.extend(self.slots.chain(Chain::Lobby, newest).map(|slot| (slot, Cap::Lobbies)));
        true
    }

    /// Removes an entry that has to give way. Its owner can find out why.
    pub(super) fn evict(&mut self, now: Instant, slot: SlotIndex, cap: Cap) {
        let cold = self.slots.cold(slot);
        let tick = self.wheel.tick(now);
        for endpoint in cold.endpoints.iter().flatten() {
            // Its next registration counts as a return, if it is not too soon.
            self.seen.note_refused(tick, cold.admitted, (endpoint.external, cold.transport));
            let port = endpoint.internal.port.get();
            self.outcomes.record_for_owner(now, endpoint.internal.ip, cap.outcome(), port, None);
        }
        if matches!(cap, Cap::Address(_)) {
            for family in Family::ALL {
                self.note_resident(now, slot, family);
            }
        }
        if self.slots.cold(slot).displaced.as_ref().is_some_and(|displaced| !displaced.is_proven()) {
            // It is not proven either, and two entries at one endpoint must not take longer to evict than one.
            self.take_displaced(slot);
        }
        self.remove(now, slot, UnlistReason::Evicted);
    }

    /// Evicts an unproven entry of a source, other than `keep`, if the source has more endpoints than its cap: for a proven
    /// server any of them, otherwise one that has not returned. Returns whether the cap is kept.
    pub(super) fn trim_source(&mut self, now: Instant, ip: IpAddr, keep: SlotIndex, is_for_proven: bool) -> bool {
        let lan = Lan::of(ip);
        if self.usage.endpoints(lan) <= self.config.caps.per_address {
            return true;
        }
        let newest = self.usage.sources.get(&lan).and_then(|source| source.newest);
        let chain = (Chain::Source(Family::of(ip)), newest);
        let cold = self.slots.cold(keep);
        let Some(endpoint) = cold.endpoints[Family::of(ip)] else { return false };
        let key = (endpoint.external, cold.transport);
        let request = SpaceRequest { known: Some(keep), ..SpaceRequest::new(key, cold.server.lobby_id) };
        let tick = self.wheel.tick(now);
        let priority = if is_for_proven { Priority::Former } else { Priority::Returning };
        if let Some(victim) = self.pick_neighbour(tick, chain, &request, priority, &Victims::default()) {
            self.evict(now, victim, Cap::Address(ip));
        }
        self.usage.endpoints(lan) <= self.config.caps.per_address
    }
}
