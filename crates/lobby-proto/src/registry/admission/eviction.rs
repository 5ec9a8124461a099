//! Which servers give way when a cap is reached (W45).
//!
//! A registration costs one datagram, and its source can be forged: without this, the sender of the most datagrams would hold
//! all places. What nothing has proven is therefore on probation: it has a place until the group that is full, be it a source, a
//! network, a list or the whole registry, needs that for a server with more [`Evidence`]. A server that is proven never gives
//! way. Nothing is searched: a few members of the group on probation are drawn by chance, and one with the least evidence goes.

use super::{
    Admission, Entries, Evidence, Group,
    space::{Cap, SpaceRequest},
};
use crate::{CheckTarget, RegistrationOutcome, index::SlotIndex, wheel::Tick};
use rallypoint_limit::Lan;
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, hash::BuildHasher, net::IpAddr, time::Instant};

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

/// An entry that has to give way, and the cap that is the reason.
#[derive(Clone, Copy, Debug)]
pub(in crate::registry) struct Victim {
    pub slot: SlotIndex,
    pub cap: Cap,
}

/// The entries that have to give way to a registration. They are evicted when they make enough room for it, and not before: a
/// registration that is refused in the end evicts none.
#[derive(Debug, Default)]
pub(super) struct Victims(Vec<Victim>);

impl Victims {
    pub fn slots(&self) -> impl Iterator<Item = SlotIndex> {
        self.0.iter().map(|victim| victim.slot)
    }

    fn contains(&self, slot: SlotIndex) -> bool {
        self.slots().any(|victim| victim == slot)
    }
}

/// The room for a server.
#[derive(Debug)]
pub(in crate::registry) enum Room {
    /// There is room when these entries have given way. It took this evidence.
    Yes(Evidence, Vec<Victim>),
    /// There is none. A server that has returned, and still finds none, is checked if that is possible: entries that only
    /// register cannot keep out a server that replies.
    No(RegistrationOutcome, Option<CheckTarget>),
}

impl Admission {
    /// Looks for room for a server, for which others give way if there is more evidence for it than for them.
    pub fn find_room(
        &mut self,
        now: Instant,
        entries: &Entries,
        mut request: SpaceRequest,
        was_reachable: impl Fn(&CheckTarget) -> bool,
    ) -> Room {
        let tick = self.clock.tick(now);
        let mut victims = Victims::default();
        let mut needed = Evidence::First;
        while let Some(cap) = self.find_cap_reached(entries, &request, &victims) {
            let Some(evidence) = request.evidence else {
                // It may raise the cap.
                let is_proven = request.own_target().is_some_and(|target| was_reachable(&target));
                let known = if is_proven { Evidence::Proven } else { self.seen.evidence(tick, request.key) };
                request.evidence = Some(known);
                continue;
            };
            let source = request.source.filter(|_| cap == Cap::Source && evidence < Evidence::Known);
            let is_resident =
                source.is_some_and(|ip| self.seen.is_resident(tick, request.key, Lan::of(ip), request.id));
            let evidence_here = if is_resident { Evidence::Known } else { evidence };
            let is_exhausted = victims.0.len() >= MAX_EVICTIONS;
            if is_exhausted || !self.choose_victims(tick, entries, cap, &request, evidence_here, &mut victims) {
                self.seen.note_refused(tick, tick, request.key);
                let target = request.own_target().filter(|_| evidence == Evidence::Returned);
                return Room::No(cap.outcome(), target);
            }
            needed = needed.max(evidence_here);
        }
        Room::Yes(needed, victims.0)
    }

    /// Chooses entries whose space a request needs. Returns whether there are any that have to give way.
    fn choose_victims(
        &mut self,
        now: Tick,
        entries: &Entries,
        cap: Cap,
        request: &SpaceRequest,
        evidence: Evidence,
        victims: &mut Victims,
    ) -> bool {
        let before = victims.0.len();
        if let Some(group) = request.group(cap) {
            let victim = self.pick(now, entries, group, request, evidence, victims);
            victims.0.extend(victim.map(|slot| Victim { slot, cap }));
        } else if cap == Cap::Lists
            && let Some(list) = self.pick_list(now, entries, request, evidence, victims)
        {
            let servers = entries.on_probation(Group::List(list));
            victims.0.extend(servers.iter().map(|&slot| Victim { slot, cap }));
        }
        victims.0.len() > before
    }

    /// A member of a full group that has to give way, if there is one: one with the least evidence.
    fn pick(
        &mut self,
        now: Tick,
        entries: &Entries,
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
        let count = if evidence == Evidence::First { SMALL_SAMPLE } else { SAMPLE };
        let sample = self.draw(entries.on_probation(group), count);
        let own_size = request.source.map_or(0, |ip| self.network_size(entries, ip));
        // Servers that only register, of a few networks that fill the registry together, evict each other and no others.
        let least = if is_whole && is_large(own_size) && evidence < Evidence::Proven { own_size } else { 0 };
        let rank = |slot| {
            let size = if is_whole { self.network_size_of(entries, slot) } else { 0 };
            let excess = if is_large(size) && size > own_size { size } else { 0 };
            let is_eligible = !request.is_own(slot) && !victims.contains(slot) && size >= least;
            is_eligible.then(|| (Reverse(excess), entries.evidence(now, slot), slot))
        };
        let (Reverse(excess), least_evidence, slot) =
            sample.filter_map(rank).min_by_key(|&(excess, evidence, _)| (excess, evidence))?;
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

    /// Picks a small list without proven servers, if one has to be closed: by the best of its servers, then by their number.
    fn pick_list(
        &mut self,
        now: Tick,
        entries: &Entries,
        request: &SpaceRequest,
        evidence: Evidence,
        victims: &Victims,
    ) -> Option<ListId> {
        if evidence < Evidence::Returned {
            return None;
        }
        let rank = |list| {
            let count = entries.usage(Group::List(list)).servers;
            let servers = entries.on_probation(Group::List(list));
            let is_kept = |&slot: &SlotIndex| request.is_own(slot) || victims.contains(slot);
            let can_close = servers.len() == count && count <= MAX_CLOSED && !servers.iter().any(is_kept);
            let best = servers.iter().filter(|_| can_close).map(|&slot| entries.evidence(now, slot)).max()?;
            Some(((best, count), list))
        };
        let (_, list) = self.draw(entries.unnamed_lists(), SAMPLE).filter_map(rank).min_by_key(|&(rank, _)| rank)?;
        Some(list)
    }

    /// Up to `count` elements, in an order that cannot be predicted without the secret key: all of them if there are no more,
    /// otherwise random ones, which may repeat.
    fn draw<'a, T: Copy>(&mut self, all: &'a [T], count: usize) -> impl Iterator<Item = T> + use<'a, T> {
        let (keyed, drawn, len) = (self.keyed, self.drawn, all.len());
        self.drawn += count as u64;
        let random = move |number: usize| (keyed.hash_one(drawn + number as u64) % len.max(1) as u64) as usize;
        let first = random(0);
        let index = move |number| if len <= count { (first + number) % len } else { random(number) };
        (0..count.min(len)).map(move |number| all[index(number)])
    }

    /// The size of the network of an entry: the larger one, if its endpoints are in two.
    fn network_size_of(&self, entries: &Entries, slot: SlotIndex) -> usize {
        let endpoints = entries.cold(slot).endpoints;
        endpoints.iter().flatten().map(|endpoint| self.network_size(entries, endpoint.internal.ip)).max().unwrap_or(0)
    }

    /// The share of a network in the caps on servers and memory, whichever is greater, in permille; 0 for a small network.
    fn network_size(&self, entries: &Entries, ip: IpAddr) -> usize {
        let caps = &self.config.caps;
        let (max_servers, max_memory) = MAX_SMALL;
        let usage = entries.usage(Group::network(ip));
        if usage.servers <= max_servers && usage.memory <= max_memory {
            return 0;
        }
        let servers = PERMILLE * usage.servers / caps.total;
        servers.max(PERMILLE * (usage.memory / 1_024) / (caps.memory / 1_024))
    }

    /// Whether the source of an entry has more endpoints than its cap.
    pub fn exceeds_source(&self, entries: &Entries, ip: IpAddr) -> bool {
        entries.usage(Group::source(ip)).servers > self.config.caps.per_address
    }

    /// The unproven entry of a source, other than `keep`, that gives way to a displaced server: to a proven one any of them,
    /// otherwise one that has not returned.
    pub fn pick_at_source(
        &mut self,
        now: Instant,
        entries: &Entries,
        ip: IpAddr,
        keep: SlotIndex,
        is_for_proven: bool,
    ) -> Option<Victim> {
        let cold = entries.cold(keep);
        let key = cold.endpoint_key(crate::entry::Family::of(ip))?;
        let request = SpaceRequest { known: Some(keep), ..SpaceRequest::new(key, cold.server.list_id) };
        let evidence = if is_for_proven { Evidence::Proven } else { Evidence::Returned };
        let tick = self.clock.tick(now);
        let slot = self.pick(tick, entries, Group::source(ip), &request, evidence, &Victims::default())?;
        Some(Victim { slot, cap: Cap::Source })
    }
}

/// Whether a network of this size is large.
const fn is_large(size: usize) -> bool {
    size > PERMILLE / LARGE_SHARE
}
