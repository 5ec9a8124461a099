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
use crate::{
    CheckTarget, RegistrationOutcome, UnlistReason,
    entry::{Family, Trust},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_limit::{Lan, Site};
use rank::Rank;
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// Interval between registrations that counts as a return. A server registers every 30 seconds.
pub(super) const RETURN_AFTER: Duration = Duration::from_secs(10);

/// Entries of a chain that are examined.
const MAX_EXAMINED: usize = 64;

/// Entries of the whole registry that are sampled: a network with a tenth of them is missed once in 29 times.
const SAMPLE: usize = 32;

/// The same for the first registration of a server, which costs its sender least.
const SMALL_SAMPLE: usize = 8;

/// Entries from which on a registration evicts no more. A large registration can need the memory of several.
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
        while let Some(cap) = self.find_cap_reached(&request, &victims) {
            let tick = self.wheel.tick(now);
            let held = *priority.get_or_insert_with(|| self.priority_of(tick, &request));
            if held == Priority::Former && !request.is_former {
                request.is_former = true;
                continue;
            }
            if victims.0.len() >= MAX_EVICTIONS || !self.choose_victims(tick, cap, &request, held, &mut victims) {
                self.note_refused(now, &request, held);
                return Err(cap.outcome());
            }
        }
        for (slot, cap) in victims.0 {
            self.evict(now, slot, cap);
        }
        Ok(priority)
    }

    fn priority_of(&mut self, now: Tick, request: &SpaceRequest) -> Priority {
        if request.own_target().is_some_and(|target| self.checks.was_reachable(&target)) {
            return Priority::Former;
        }
        self.seen.priority(now, request.key)
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
                self.pick_newest(now, (Chain::Source(Family::of(ip)), newest), request, priority, victims)
            }
            Cap::Network(ip) => {
                let newest = self.usage.networks.get(&Site::of(ip)).and_then(|network| network.newest);
                self.pick_newest(now, (Chain::Network(Family::of(ip)), newest), request, priority, victims)
            }
            Cap::Lobby(lobby) => {
                let newest = self.usage.lobbies.newest(lobby);
                self.pick_newest(now, (Chain::Lobby, newest), request, priority, victims)
            }
            Cap::Total | Cap::Memory => self.pick_sampled(now, request, priority, victims),
            Cap::Lobbies => return self.pick_lobby(now, request, priority, victims),
            Cap::LobbiesOfNetwork => None,
        };
        victims.0.extend(victim.map(|slot| (slot, cap)));
        victim.is_some()
    }

    /// The newest entry of a chain that has to give way: to a server that was listed there before any unproven one, to one
    /// that has returned only those that have not.
    fn pick_newest(
        &self,
        now: Tick,
        (chain, newest): (Chain, Option<SlotIndex>),
        request: &SpaceRequest,
        priority: Priority,
        victims: &Victims,
    ) -> Option<SlotIndex> {
        let mut known = None;
        let is_other = |&slot: &SlotIndex| !request.is_own(slot) && !victims.contains(slot);
        for slot in self.slots.chain(chain, newest).take(MAX_EXAMINED).filter(is_other) {
            let is_unproven = self.trust(now, slot) == Trust::Unproven;
            match priority {
                Priority::Former if is_unproven => return Some(slot),
                Priority::Former => known = known.or(Some(slot)),
                Priority::Returning if is_unproven && !self.has_returned(slot) => return Some(slot),
                Priority::Returning => {}
                Priority::New => return None,
            }
        }
        known
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
        let is_other = |&slot: &SlotIndex| !request.is_own(slot) && !victims.contains(slot);
        let sample: Vec<_> = self.usage.unproven.sample(count).filter(is_other).collect();
        let own_size = request.source.map_or(0, |ip| self.network_size(ip));
        let ranks = sample.into_iter().map(|slot| (self.rank(now, slot, own_size), slot));
        let (rank, slot) = ranks.min_by_key(|&(rank, _)| rank)?;
        (matches!(rank, Rank::Large(_)) || priority >= Priority::Returning).then_some(slot)
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
        self.remove(now, slot, UnlistReason::Evicted);
    }

    /// Evicts the newest unproven entry of a source, other than `keep`, if the source has more endpoints than its cap.
    pub(super) fn trim_source(&mut self, now: Instant, ip: IpAddr, keep: SlotIndex) {
        let lan = Lan::of(ip);
        if self.usage.endpoints(lan) <= self.config.caps.per_address {
            return;
        }
        let newest = self.usage.sources.get(&lan).and_then(|source| source.newest);
        let victim =
            self.slots.chain(Chain::Source(Family::of(ip)), newest).take(MAX_EXAMINED).find(|&slot| slot != keep);
        if let Some(victim) = victim {
            self.evict(now, victim, Cap::Address(ip));
        }
    }
}
