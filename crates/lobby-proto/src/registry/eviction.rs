//! Which servers give way when a cap is reached (W45).
//!
//! A registration costs one datagram, and its source can be forged: without this, the sender of the most datagrams would hold
//! all places. An honest server differs: it replies to checks, it was listed before, or it returns every 30 seconds. A server that is *proven*
//! never gives way. The others give way to a server with a better claim than a first registration. Nothing is searched: the
//! entries of a full source, network or lobby are examined from the newest on, up to a fixed number, and those of a full
//! registry are sampled at random.

use super::{
    Registry,
    capacity::{Cap, SpaceRequest},
    chains::Chain,
    seen_filter::SeenFilter,
};
use crate::{
    CheckTarget, ListingOrigin, RegistrationOutcome, UnlistReason,
    entry::{Addr, EndpointState, Family, Standing},
    hash::KeyedHash,
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::{LobbyId, Transport};
use std::{
    cmp::Reverse,
    hash::BuildHasher,
    net::IpAddr,
    time::{Duration, Instant},
};

/// How long a server that was listed at an endpoint gives a claim to it, and how long such a claim protects the entry.
const KNOWN_FOR: Duration = Duration::from_secs(10 * 60);

/// Interval between registrations that counts as a return. A server registers every 30 seconds.
const RETURN_AFTER: Duration = Duration::from_secs(10);

/// Entries of a chain that are examined.
const MAX_EXAMINED: usize = 64;

/// Entries of the whole registry that are sampled: a network with a tenth of them is missed once in 29 times.
const SAMPLE: usize = 32;

/// The same for the first registration of a server, which costs its sender least.
const SMALL_SAMPLE: usize = 8;

/// A network with more than this fraction (1/16) of all servers or all memory is large: its unproven entries give way to any
/// smaller network.
const LARGE_SHARE: usize = 16;

/// Servers and bytes of memory up to which a network is not large, however low the caps are.
const MAX_SMALL: (usize, usize) = (64, 1 << 20);

/// Entries that one registration can evict. A large registration can need the memory of several.
const MAX_EVICTIONS: usize = 16;

/// Servers of a lobby that can be evicted to close it.
const MAX_LOBBY: usize = 16;

/// The claim of a server that needs space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// It registers for the first time.
    New,
    /// It was refused some time ago, and has returned.
    Returning,
    /// A server was listed at its endpoint before, or has replied there to a check.
    Former,
}

/// An endpoint in the list.
pub(super) type EndpointKey = (Addr, Transport);

/// Endpoints that were seen some time ago.
#[derive(Debug)]
pub(super) struct SeenEndpoints {
    keyed: KeyedHash,
    /// Endpoints of servers that were removed from the list.
    listed: SeenFilter,
    /// Endpoints of servers that were refused because of a cap.
    refused: SeenFilter,
}

/// Periods of [`SeenEndpoints::refused`] after which a server has returned: 15 to 30 seconds.
const RETURNED: u32 = 2;

impl SeenEndpoints {
    pub fn new(keyed: KeyedHash) -> Self {
        let minute = Duration::from_secs(60);
        let quarter = Duration::from_secs(15);
        Self { keyed, listed: SeenFilter::new(minute, 10), refused: SeenFilter::new(quarter, 5) }
    }

    /// Frees the memory of endpoints that are not remembered any more.
    pub fn forget_expired(&mut self, now: Tick) {
        self.listed.advance(now);
        self.refused.advance(now);
    }

    fn note_listed(&mut self, now: Tick, key: EndpointKey) {
        self.listed.insert(now, now, self.keyed.hash_one(key));
    }

    fn note_refused(&mut self, now: Tick, first_seen: Tick, key: EndpointKey) {
        self.refused.insert(now, first_seen, self.keyed.hash_one(key));
    }

    fn claim(&mut self, now: Tick, key: EndpointKey) -> Claim {
        let hash = self.keyed.hash_one(key);
        if self.listed.contains(now, hash, 0) {
            Claim::Former
        } else if self.refused.contains(now, hash, RETURNED) {
            Claim::Returning
        } else {
            Claim::New
        }
    }
}

/// A server that needs space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applicant {
    pub key: EndpointKey,
    /// How its endpoint is checked, if it is.
    pub target: Option<CheckTarget>,
    /// Its own entry.
    pub known: Option<SlotIndex>,
    /// The entry that it replaces.
    pub replaced: Option<SlotIndex>,
}

impl Applicant {
    fn is_own(&self, slot: SlotIndex) -> bool {
        self.known == Some(slot) || self.replaced == Some(slot)
    }
}

/// Order in which entries of the whole registry give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// In a large network. The largest one loses an entry.
    Large(Reverse<usize>),
    /// It has not returned.
    New,
    Returned,
    /// A server was listed at its endpoint before.
    Known,
    /// It has been registered for ten minutes.
    Established,
}

impl Registry {
    /// Makes room for a server by evicting others, if its claim is better than theirs: its own one, if none is given. Returns
    /// the claim, if it was needed.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        mut request: SpaceRequest,
        applicant: Applicant,
        mut claim: Option<Claim>,
    ) -> Result<Option<Claim>, RegistrationOutcome> {
        let Applicant { key, known, replaced, .. } = applicant;
        for _ in 0..=MAX_EVICTIONS {
            let Some(cap) = self.find_cap_reached(&request, known, replaced) else { return Ok(claim) };
            let tick = self.wheel.tick(now);
            let held = *claim.get_or_insert_with(|| self.claim_of(tick, applicant));
            if held == Claim::Former && !request.is_former {
                request.is_former = true;
                continue;
            }
            if !self.evict_for(now, cap, &request, held, applicant) {
                self.seen.note_refused(tick, tick, key);
                return Err(cap.outcome());
            }
        }
        Err(RegistrationOutcome::MemoryFull)
    }

    fn claim_of(&mut self, now: Tick, applicant: Applicant) -> Claim {
        let Applicant { key: (addr, transport), target, .. } = applicant;
        // Several servers can name the same port for queries, so that port proves only the server that has it itself.
        let is_own_port = |target: &CheckTarget| target.addr.port() == addr.port.get();
        if target.filter(is_own_port).is_some_and(|target| self.checks.was_reachable(&target)) {
            return Claim::Former;
        }
        self.seen.claim(now, (addr, transport))
    }

    /// Gives a new entry the standing of the claim by which it was admitted.
    pub(super) fn grant_claim(&mut self, slot: SlotIndex, claim: Option<Claim>) {
        let cold = self.slots.cold_mut(slot);
        match claim {
            Some(Claim::Former) => cold.standing = Standing::Known,
            // It has returned already: see `has_returned`.
            Some(Claim::Returning) => cold.admitted = cold.admitted.minus(RETURN_AFTER),
            Some(Claim::New) | None => {}
        }
    }

    /// Evicts an entry whose space a request needs. Returns whether there is one that has to give way.
    fn evict_for(
        &mut self,
        now: Instant,
        cap: Cap,
        request: &SpaceRequest,
        claim: Claim,
        applicant: Applicant,
    ) -> bool {
        let victim = match cap {
            Cap::Address(ip) => {
                let newest = self.usage.sources.get(&Lan::of(ip)).and_then(|source| source.newest);
                self.pick_newest(now, Chain::Source(Family::of(ip)), newest, claim, applicant)
            }
            Cap::Network(ip) => {
                let newest = self.usage.networks.get(&Site::of(ip)).and_then(|network| network.newest);
                self.pick_newest(now, Chain::Network(Family::of(ip)), newest, claim, applicant)
            }
            Cap::Lobby(lobby) => {
                let newest = self.usage.lobbies.newest(lobby);
                self.pick_newest(now, Chain::Lobby, newest, claim, applicant)
            }
            Cap::Total | Cap::Memory => self.pick_sampled(now, request.source, claim, applicant),
            Cap::Lobbies => return self.close_lobby_for(now, claim, applicant),
            Cap::LobbiesOfNetwork => None,
        };
        victim.map(|slot| self.evict(now, slot, cap)).is_some()
    }

    /// The newest entry of a chain that has to give way: to a server that was listed there before any unproven one, to one
    /// that has returned only those that have not.
    fn pick_newest(
        &self,
        now: Instant,
        chain: Chain,
        newest: Option<SlotIndex>,
        claim: Claim,
        applicant: Applicant,
    ) -> Option<SlotIndex> {
        let now = self.wheel.tick(now);
        let mut known = None;
        for slot in self.slots.chain(chain, newest).take(MAX_EXAMINED).filter(|&slot| !applicant.is_own(slot)) {
            let is_unproven = self.standing(now, slot) == Standing::Unproven;
            match claim {
                Claim::Former if is_unproven => return Some(slot),
                Claim::Former => known = known.or(Some(slot)),
                Claim::Returning if is_unproven && !self.has_returned(slot) => return Some(slot),
                Claim::Returning => {}
                Claim::New => return None,
            }
        }
        known
    }

    /// An entry of the whole registry that has to give way to a server with this claim.
    fn pick_sampled(
        &mut self,
        now: Instant,
        source: Option<IpAddr>,
        claim: Claim,
        applicant: Applicant,
    ) -> Option<SlotIndex> {
        let now = self.wheel.tick(now);
        let count = if claim == Claim::New { SMALL_SAMPLE } else { SAMPLE };
        let sample: Vec<_> = self.usage.unproven.sample(count).filter(|&slot| !applicant.is_own(slot)).collect();
        let own_size = source.map_or(0, |ip| self.network_size(ip));
        let tiers = sample.into_iter().map(|slot| (self.tier(now, slot, own_size), slot));
        let (tier, slot) = tiers.min_by_key(|&(tier, _)| tier)?;
        (matches!(tier, Tier::Large(_)) || claim >= Claim::Returning).then_some(slot)
    }

    fn tier(&self, now: Tick, slot: SlotIndex, own_size: usize) -> Tier {
        let endpoints = self.slots.cold(slot).endpoints;
        let size =
            endpoints.iter().flatten().map(|endpoint| self.network_size(endpoint.internal.ip)).max().unwrap_or(0);
        if size > PERMILLE / LARGE_SHARE && size > own_size {
            return Tier::Large(Reverse(size));
        }
        match self.standing(now, slot) {
            Standing::Unproven if !self.has_returned(slot) => Tier::New,
            Standing::Unproven if now < self.slots.cold(slot).admitted.plus(KNOWN_FOR) => Tier::Returned,
            Standing::Unproven => Tier::Established,
            Standing::Known | Standing::Proven => Tier::Known,
        }
    }

    /// The share of a network in the caps on servers and memory, whichever is greater, in permille; 0 for a small network.
    fn network_size(&self, ip: IpAddr) -> usize {
        let caps = &self.config.caps;
        let (max_servers, max_memory) = MAX_SMALL;
        self.usage.networks.get(&Site::of(ip)).map_or(0, |network| {
            let count = network.endpoints as usize;
            if count <= max_servers && network.memory <= max_memory {
                return 0;
            }
            let servers = PERMILLE * count / caps.total;
            servers.max(PERMILLE * (network.memory / 1_024) / (caps.memory / 1_024))
        })
    }

    /// Closes a small lobby without proven servers, if one has to give way.
    fn close_lobby_for(&mut self, now: Instant, claim: Claim, applicant: Applicant) -> bool {
        if claim < Claim::Returning {
            return false;
        }
        let tick = self.wheel.tick(now);
        let sample: Vec<_> = self.usage.lobbies.sample(SAMPLE).collect();
        let rank = |lobby: LobbyId| Some((self.lobby_rank(tick, lobby, applicant)?, lobby));
        let Some((_, lobby)) = sample.into_iter().filter_map(rank).min_by_key(|&(rank, _)| rank) else { return false };
        let newest = self.usage.lobbies.newest(lobby);
        let servers: Vec<_> = self.slots.chain(Chain::Lobby, newest).collect();
        servers.into_iter().for_each(|slot| self.evict(now, slot, Cap::Lobbies));
        true
    }

    /// The order in which lobbies give way: by the best of their servers, then by their number. `None` if a lobby stays.
    fn lobby_rank(&self, now: Tick, lobby: LobbyId, applicant: Applicant) -> Option<(Tier, usize)> {
        let count = self.usage.lobbies.servers(lobby)?;
        let newest = self.usage.lobbies.newest(lobby);
        let servers: Vec<_> = self.slots.chain(Chain::Lobby, newest).take(MAX_LOBBY + 1).collect();
        // A proven server is not in the chain.
        if servers.len() != count || count > MAX_LOBBY || servers.iter().any(|&slot| applicant.is_own(slot)) {
            return None;
        }
        let best = servers.into_iter().map(|slot| self.tier(now, slot, usize::MAX)).max()?;
        Some((best, count))
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

    /// The evidence that a server is real. That its endpoint was known before it registered counts for ten minutes: after that
    /// its own registrations are evidence enough, and a restart must not protect all entries for ever.
    pub(super) fn standing(&self, now: Tick, slot: SlotIndex) -> Standing {
        let cold = self.slots.cold(slot);
        match cold.standing {
            Standing::Known if now >= cold.admitted.plus(KNOWN_FOR) => Standing::Unproven,
            standing => standing,
        }
    }

    /// Whether a server has registered again, at least ten seconds after its first registration. A refresh extends the lease
    /// and nothing else, so this is read off the lease.
    fn has_returned(&self, slot: SlotIndex) -> bool {
        let hot = self.slots.hot(slot);
        let first = self.slots.cold(slot).admitted.plus(self.config.lease);
        let returned = first.plus(RETURN_AFTER);
        let is_later = |family| hot.states[family] != EndpointState::Absent && hot.deadlines[family] >= returned;
        Family::ALL.into_iter().any(is_later)
    }

    /// Remembers the endpoint of a listed server that leaves it, if there is more evidence than one registration that the
    /// server is real.
    pub(super) fn note_departure(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let cold = self.slots.cold(slot);
        let is_listed = self.slots.hot(slot).states[family] == EndpointState::Listed;
        let is_remembered = is_listed && (cold.standing > Standing::Unproven || self.has_returned(slot));
        if let Some(endpoint) = cold.endpoints[family].filter(|_| is_remembered) {
            self.seen.note_listed(self.wheel.tick(now), (endpoint.external, cold.transport));
        }
    }

    /// Remembers the endpoint of a listed server that is replaced, whatever else is known about it: if the new ID is forged, the
    /// server returns.
    pub(super) fn note_replaced(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let cold = self.slots.cold(slot);
        let is_listed = self.slots.hot(slot).states[family] == EndpointState::Listed;
        if let Some(endpoint) = cold.endpoints[family].filter(|_| is_listed) {
            self.seen.note_listed(self.wheel.tick(now), (endpoint.external, cold.transport));
        }
    }

    /// Records that a server has replied, so that it does not give way any more.
    pub(super) fn prove(&mut self, slot: SlotIndex) {
        if self.slots.cold(slot).standing == Standing::Proven {
            return;
        }
        self.unlink_entry(slot);
        let cold = self.slots.cold(slot);
        if cold.server.origin.is_charged() {
            let endpoints = cold.endpoints;
            for endpoint in endpoints.iter().flatten() {
                self.usage.unlink(&mut self.slots, slot, endpoint.internal.ip);
            }
        }
        self.slots.cold_mut(slot).standing = Standing::Proven;
    }

    /// Makes a server that has registered at another address or port prove itself there. Otherwise IDs that an attacker has
    /// proven at its own address would hold places at the addresses of others, and displace proven servers for good.
    pub(super) fn withdraw_proof(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold_mut(slot);
        if cold.standing < Standing::Proven || cold.server.origin != ListingOrigin::Registered {
            return;
        }
        cold.standing = Standing::Unproven;
        let endpoints = cold.endpoints;
        self.link_entry(slot);
        for endpoint in endpoints.iter().flatten() {
            self.usage.link(&mut self.slots, slot, endpoint.internal.ip);
        }
    }

    /// Adds a new entry that is not proven to those that can give way.
    pub(super) fn link_entry(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold(slot);
        if cold.standing < Standing::Proven {
            let lobby = cold.server.lobby_id;
            self.usage.unproven.insert(&mut self.slots, slot);
            self.usage.lobbies.link(&mut self.slots, lobby, slot);
        }
    }

    /// Removes an entry from those that can give way, before it is removed or proven.
    pub(super) fn unlink_entry(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold(slot);
        if cold.standing < Standing::Proven {
            let lobby = cold.server.lobby_id;
            self.usage.unproven.remove(&mut self.slots, slot);
            self.usage.lobbies.unlink(&mut self.slots, lobby, slot);
        }
    }
}

const PERMILLE: usize = 1_000;
