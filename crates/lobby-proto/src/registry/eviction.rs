//! Which servers give way when a cap is reached (W45).
//!
//! A registration costs one datagram, and its source can be forged: without this, the sender of the most datagrams would hold
//! all places. What nothing has proven is therefore on probation: it has a place until the group that is full, be it a source, a
//! network, a list or the whole registry, needs that for a server with more [`Evidence`]. A server that is proven never gives
//! way. Nothing is searched: a few members of the group on probation are drawn by chance, and one with the least evidence goes.

use super::{
    Registry,
    capacity::{Cap, SpaceRequest},
    evidence::Evidence,
    groups::Group,
};
use crate::{CheckTarget, RegistrationOutcome, UnlistReason, entry::Family, index::SlotIndex, wheel::Tick};
use rallypoint_limit::Lan;
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, net::IpAddr, time::Instant};

/// Members of a group that are drawn: those of a network with a tenth of the registry are missed once in 29 times.
const SAMPLE: usize = 32;

/// Entries drawn for the first registration of a server, which costs its sender least.
const SMALL_SAMPLE: usize = 8;

/// Maximum number of entries that a registration evicts. A large registration can need the memory of several.
const MAX_EVICTIONS: usize = 16;

/// Servers of a list that can be evicted to close it.
const MAX_CLOSED: usize = 16;

/// A network with more than this fraction (1/16) of all servers or all memory is large: its unproven entries give way to any
/// smaller network.
const LARGE_SHARE: usize = 16;

/// Servers and bytes of memory up to which a network is not large, however low the caps are.
const MAX_SMALL: (usize, usize) = (64, 1 << 20);

const PERMILLE: usize = 1_000;

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
    /// Makes room for a server by evicting others, if there is more evidence for it than for them. Returns the evidence that was
    /// needed.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        mut request: SpaceRequest,
    ) -> Result<Evidence, RegistrationOutcome> {
        let tick = self.entries.wheel.tick(now);
        let mut victims = Victims::default();
        let mut needed = Evidence::First;
        while let Some(cap) = self.find_cap_reached(&request, &victims) {
            let Some(evidence) = request.evidence else {
                // It may raise the cap.
                request.evidence = Some(self.evidence_for(tick, &request));
                continue;
            };
            let source = request.source.filter(|_| cap == Cap::Source && evidence < Evidence::Known);
            let seen = &mut self.admission.seen;
            let is_resident = source.is_some_and(|ip| seen.is_resident(tick, request.key, Lan::of(ip), request.id));
            let evidence_here = if is_resident { Evidence::Known } else { evidence };
            if victims.0.len() >= MAX_EVICTIONS
                || !self.choose_victims(tick, cap, &request, evidence_here, &mut victims)
            {
                self.note_refused(now, &request, evidence);
                return Err(cap.outcome());
            }
            needed = needed.max(evidence_here);
        }
        for (slot, cap) in victims.0 {
            self.evict(now, slot, cap);
        }
        Ok(needed)
    }

    /// The evidence for a server that has no place.
    fn evidence_for(&mut self, now: Tick, request: &SpaceRequest) -> Evidence {
        match request.own_target() {
            Some(target) if self.checks.was_reachable(&target) => Evidence::Proven,
            _ => self.admission.seen.evidence(now, request.key),
        }
    }

    /// Remembers that a server was refused, so that it can return. One that has returned, and still finds no room, is checked if
    /// that is possible: entries that only register cannot keep out a server that replies.
    fn note_refused(&mut self, now: Instant, request: &SpaceRequest, evidence: Evidence) {
        let tick = self.entries.wheel.tick(now);
        self.admission.seen.note_refused(tick, tick, request.key);
        let is_checked = |target: &CheckTarget| {
            evidence == Evidence::Returned
                && self.config.checks.enabled
                && !self.config.checks.exempt.contains(target.addr.ip())
        };
        if let Some(target) = request.own_target().filter(is_checked) {
            // If no check can be made now, its next registration requests one again.
            let _ = self.checks.request(now, &self.entries.wheel, &self.config.checks, target, (None, 1));
        }
    }

    /// Chooses entries whose space a request needs. Returns whether there are any that have to give way.
    fn choose_victims(
        &mut self,
        now: Tick,
        cap: Cap,
        request: &SpaceRequest,
        evidence: Evidence,
        victims: &mut Victims,
    ) -> bool {
        match request.group(cap) {
            Some(group) => {
                let victim = self.pick(now, group, request, evidence, victims);
                victims.0.extend(victim.map(|slot| (slot, cap)));
                victim.is_some()
            }
            None => cap == Cap::Lists && self.pick_list(now, request, evidence, victims),
        }
    }

    /// A member of a full group that has to give way, if there is one: one with the least evidence.
    fn pick(
        &mut self,
        now: Tick,
        group: Group,
        request: &SpaceRequest,
        evidence: Evidence,
        victims: &Victims,
    ) -> Option<SlotIndex> {
        let is_whole = group == Group::All;
        // The usual case at a full address.
        if evidence == Evidence::First && !is_whole {
            return None;
        }
        let sample =
            self.admission.groups.sample(group, if evidence == Evidence::First { SMALL_SAMPLE } else { SAMPLE });
        let own_size = request.source.map_or(0, |ip| self.network_size(ip));
        // Servers that only register, of a few networks that fill the registry together, evict each other and no others.
        let least = if is_whole && is_large(own_size) && evidence < Evidence::Proven { own_size } else { 0 };
        let rank = |slot| {
            let size = if is_whole { self.network_size_of(slot) } else { 0 };
            let excess = if is_large(size) && size > own_size { size } else { 0 };
            let is_eligible = !request.is_own(slot) && !victims.contains(slot) && size >= least;
            is_eligible.then(|| (Reverse(excess), self.evidence(now, slot), slot))
        };
        let (Reverse(excess), least_evidence, slot) =
            sample.into_iter().filter_map(rank).min_by_key(|&(excess, evidence, _)| (excess, evidence))?;
        let gives_way = match evidence {
            _ if excess > 0 => true,
            Evidence::First => false,
            // Where a forger of few addresses can fill the group, servers that return would push out each other for ever. Of the
            // whole, newcomers and forgeries that return share the places by chance.
            Evidence::Returned => is_whole || least_evidence == Evidence::First,
            _ => true,
        };
        gives_way.then_some(slot)
    }

    /// Picks all servers of a small list without proven ones, if one has to be closed. Returns whether there is one.
    fn pick_list(&mut self, now: Tick, request: &SpaceRequest, evidence: Evidence, victims: &mut Victims) -> bool {
        if evidence < Evidence::Returned {
            return false;
        }
        let Self { admission, .. } = self;
        let lists = admission.lists.sample(&mut admission.groups, SAMPLE);
        let rank = |list| Some((self.list_rank(now, list, request, victims)?, list));
        let Some((_, list)) = lists.into_iter().filter_map(rank).min_by_key(|&(rank, _)| rank) else { return false };
        let servers = self.admission.groups.on_probation(Group::List(list));
        victims.0.extend(servers.iter().map(|&slot| (slot, Cap::Lists)));
        true
    }

    /// The order in which lists are closed: by the best of their servers, then by their number. `None` if a list stays.
    fn list_rank(
        &self,
        now: Tick,
        list: ListId,
        request: &SpaceRequest,
        victims: &Victims,
    ) -> Option<(Evidence, usize)> {
        let count = self.admission.groups.usage(Group::List(list)).servers;
        let servers = self.admission.groups.on_probation(Group::List(list));
        let is_kept = |&slot: &SlotIndex| request.is_own(slot) || victims.contains(slot);
        if servers.len() != count || count > MAX_CLOSED || servers.iter().any(is_kept) {
            return None;
        }
        let best = servers.iter().map(|&slot| self.evidence(now, slot)).max()?;
        Some((best, count))
    }

    /// The size of the network of an entry: the larger one, if its endpoints are in two.
    fn network_size_of(&self, slot: SlotIndex) -> usize {
        let endpoints = self.entries.slots.cold(slot).endpoints;
        endpoints.iter().flatten().map(|endpoint| self.network_size(endpoint.internal.ip)).max().unwrap_or(0)
    }

    /// The share of a network in the caps on servers and memory, whichever is greater, in permille; 0 for a small network.
    fn network_size(&self, ip: IpAddr) -> usize {
        let caps = &self.config.caps;
        let (max_servers, max_memory) = MAX_SMALL;
        let usage = self.admission.groups.usage(Group::network(ip));
        if usage.servers <= max_servers && usage.memory <= max_memory {
            return 0;
        }
        let servers = PERMILLE * usage.servers / caps.total;
        servers.max(PERMILLE * (usage.memory / 1_024) / (caps.memory / 1_024))
    }

    /// Removes an entry that has to give way. Its owner can find out why.
    pub(super) fn evict(&mut self, now: Instant, slot: SlotIndex, cap: Cap) {
        let cold = self.entries.slots.cold(slot);
        let tick = self.entries.wheel.tick(now);
        for endpoint in cold.endpoints.iter().flatten() {
            // Its next registration counts as a return, if it is not too soon.
            self.admission.seen.note_refused(tick, cold.admitted, (endpoint.external, cold.transport));
            let port = endpoint.internal.port.get();
            self.outcomes.record_for_owner(now, endpoint.internal.ip, cap.outcome(), port, None);
        }
        if cap == Cap::Source {
            for family in Family::ALL {
                self.note_resident(now, slot, family);
            }
        }
        if self.entries.slots.cold(slot).displaced.as_ref().is_some_and(|displaced| !displaced.is_proven()) {
            // It is not proven either, and two entries at one endpoint must not take longer to evict than one.
            self.take_displaced(slot);
        }
        self.remove(now, slot, UnlistReason::Evicted);
    }

    /// Evicts an unproven entry of a source, other than `keep`, if the source has more endpoints than its cap: for a proven
    /// server any of them, otherwise one that has not returned. Returns whether the cap is kept.
    pub(super) fn trim_source(&mut self, now: Instant, ip: IpAddr, keep: SlotIndex, is_for_proven: bool) -> bool {
        let group = Group::source(ip);
        let is_kept =
            |registry: &Self| registry.admission.groups.usage(group).servers <= registry.config.caps.per_address;
        if is_kept(self) {
            return true;
        }
        let cold = self.entries.slots.cold(keep);
        let Some(endpoint) = cold.endpoints[Family::of(ip)] else { return false };
        let key = (endpoint.external, cold.transport);
        let request = SpaceRequest { known: Some(keep), ..SpaceRequest::new(key, cold.server.list_id) };
        let tick = self.entries.wheel.tick(now);
        let evidence = if is_for_proven { Evidence::Proven } else { Evidence::Returned };
        if let Some(victim) = self.pick(tick, group, &request, evidence, &Victims::default()) {
            self.evict(now, victim, Cap::Source);
        }
        is_kept(self)
    }
}

/// Whether a network of this size is large.
const fn is_large(size: usize) -> bool {
    size > PERMILLE / LARGE_SHARE
}
