//! The part of the registry that has the entries: their slots, IDs, endpoints, leases and groups, and what is remembered of those
//! that left.

mod displaced;
mod endpoints;
mod gap;
mod groups;
mod id_index;
mod open_lists;
mod reserved_endpoints;
mod slots;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use displaced::DisplacedServer;
pub(super) use groups::{Group, Usage};
pub(super) use open_lists::OpenCount;

use super::{
    evidence::{Evidence, KNOWN_FOR, RETURN_AFTER},
    tombstones::{REORDERING_TIME, Tombstones},
};
use crate::{
    Config, ListedServer, ListingOrigin, PublicId,
    entry::{Addr, ColdEntry, EndpointEntry, EndpointState, Family, PerFamily},
    hash::{Fingerprinter, KeyedHash, KeyedMap},
    index::SlotIndex,
    listed_server::InternalAddrs,
    lists::ListPosition,
    wheel::{Clock, Tick, TimerWheel},
};
use gap::GapDetector;
use groups::Groups;
use open_lists::OpenLists;
use rallypoint_limit::Site;
use rallypoint_wire::lobby::{Endpoint, ListBlock, ListId, ServerId};
use reserved_endpoints::ReservedEndpoints;
use slots::Slots;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

/// Minimum lease of a server after a restart or a gap: servers refresh every 30 seconds.
pub(super) const MIN_LEASE: Duration = Duration::from_secs(35);

/// All entries with their leases.
#[derive(Debug)]
pub(crate) struct Entries {
    config: Arc<Config>,
    /// The lease of the configuration, kept here because every refresh needs it.
    lease: Duration,
    clock: Clock,
    slots: Slots,
    groups: Groups,
    lists: OpenLists,
    wheel: TimerWheel,
    fingerprinter: Fingerprinter,
    gaps: GapDetector,
    reserved: ReservedEndpoints,
    /// The entries that keep a displaced server, by the ID of that server.
    displaced: KeyedMap<PublicId, SlotIndex>,
    tombstones: Tombstones<ServerId>,
    /// For blocks of the list: a buffer that is reused between calls.
    block: Vec<u8>,
}

/// The entries can be read by everyone, and are changed by the methods of [`Entries`] only.
impl Deref for Entries {
    type Target = Slots;

    #[inline]
    fn deref(&self) -> &Slots {
        &self.slots
    }
}

impl Entries {
    pub fn new(config: &Arc<Config>, keyed: KeyedHash, clock: Clock, now: Instant) -> Self {
        Self {
            config: Arc::clone(config),
            lease: config.lease,
            clock,
            slots: Slots::new(keyed),
            groups: Groups::new(keyed),
            lists: OpenLists::new(keyed),
            wheel: TimerWheel::new(clock),
            fingerprinter: Fingerprinter::new(keyed),
            gaps: GapDetector::new(clock, now),
            reserved: ReservedEndpoints::new(keyed),
            displaced: keyed.map(),
            tombstones: Tombstones::new(keyed, REORDERING_TIME),
            block: Vec::new(),
        }
    }

    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.config = Arc::clone(config);
        self.lease = config.lease;
    }

    // What is known of entries, besides what the table of slots tells.

    pub fn state(&self, slot: SlotIndex, family: Family) -> EndpointState {
        self.hot(slot).states[family]
    }

    /// The endpoint of one family, if it is listed.
    pub fn listed_endpoint(&self, slot: SlotIndex, family: Family) -> Option<EndpointEntry> {
        self.cold(slot).endpoints[family].filter(|_| self.state(slot, family) == EndpointState::Listed)
    }

    /// The listed endpoint of one family, if this node of a cluster hears its server.
    pub fn local_endpoint(&self, slot: SlotIndex, family: Family) -> Option<EndpointEntry> {
        self.listed_endpoint(slot, family).filter(|_| !self.cold(slot).replica.is_remote[family])
    }

    /// The listed endpoints that this node heard within their leases.
    pub fn live_local_endpoints(&self, now: Instant, slot: SlotIndex) -> PerFamily<bool> {
        let reached = self.clock.tick(now);
        let is_live = |family| self.hot(slot).deadlines[family] > reached;
        PerFamily::from_fn(|family| is_live(family) && self.local_endpoint(slot, family).is_some())
    }

    /// Whether a server registers from this address.
    pub fn is_from(&self, slot: SlotIndex, source: IpAddr) -> bool {
        self.cold(slot).endpoints.iter().flatten().any(|endpoint| endpoint.internal.ip == source)
    }

    // Groups and lists.

    pub fn usage(&self, group: Group) -> Usage {
        self.groups.usage(group)
    }

    /// The members of a group that can give way.
    pub fn on_probation(&self, group: Group) -> &[SlotIndex] {
        self.groups.on_probation(group)
    }

    /// Number of open lists.
    pub fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// Numbers of open lists that count towards the caps, in total and of one network, not counting `without`.
    pub fn open_lists(&self, site: Option<Site>, without: impl Iterator<Item = ListId>) -> OpenCount {
        self.lists.open_without(site, without)
    }

    /// The open lists that count towards the caps.
    pub fn unnamed_lists(&self) -> &[ListId] {
        self.lists.unnamed()
    }

    // Adding, changing and removing entries.

    /// Adds an entry without endpoints, which opens its list if it is the first one there; `opener` is charged for that.
    pub fn insert(&mut self, now: Instant, opener: Option<Site>, id: ServerId, entry: ColdEntry) -> SlotIndex {
        if self.len() == 0 {
            // Without entries there is no timeout.
            self.gaps.touch(now);
        }
        let slot = self.slots.insert(id, entry);
        self.groups.join(Group::All, slot, self.slots.cold(slot));
        self.join_list(slot, opener);
        slot
    }

    /// Removes an entry. Returns the server that it has displaced, if there is one.
    pub fn remove(&mut self, now: Instant, slot: SlotIndex) -> Option<Box<DisplacedServer>> {
        let displaced = self.take_displaced(slot);
        for family in Family::ALL {
            self.drop_endpoint(now, slot, family);
        }
        self.leave_list(slot);
        self.groups.leave(Group::All, slot, self.slots.cold(slot));
        self.slots.remove(slot);
        displaced
    }

    fn join_list(&mut self, slot: SlotIndex, opener: Option<Site>) {
        let cold = self.slots.cold(slot);
        let list = cold.server.list_id;
        if self.groups.usage(Group::List(list)).servers == 0 {
            self.lists.open(list, self.config.named_lists.contains(&list), opener);
        }
        self.groups.join(Group::List(list), slot, cold);
    }

    fn leave_list(&mut self, slot: SlotIndex) {
        let cold = self.slots.cold(slot);
        let list = cold.server.list_id;
        self.groups.leave(Group::List(list), slot, cold);
        if self.groups.usage(Group::List(list)).servers == 0 {
            self.lists.close(list);
        }
    }

    /// Moves an entry to another list; `opener` is charged if that is new.
    pub fn move_list(&mut self, slot: SlotIndex, opener: Option<Site>, list: ListId) {
        self.leave_list(slot);
        let cold = self.slots.cold_mut(slot);
        cold.server = Arc::new(cold.server.updated(list, &cold.server.block));
        self.join_list(slot, opener);
        self.forget_fingerprints(slot);
    }

    /// Replaces the stand-in for an ID that was unknown here.
    pub fn adopt(&mut self, slot: SlotIndex, id: ServerId) {
        self.slots.set_id(slot, id);
        self.slots.cold_mut(slot).replica.has_stand_in_id = false;
    }

    /// Changes the evidence for an entry, which begins or ends its probation. Returns whether it is proven by this.
    pub fn set_evidence(&mut self, slot: SlotIndex, evidence: Evidence) -> bool {
        let cold = self.slots.cold_mut(slot);
        let was_on_probation = cold.is_on_probation();
        cold.evidence = evidence;
        let groups = cold.groups();
        match (was_on_probation, cold.is_on_probation()) {
            (true, false) => groups.for_each(|group| self.groups.end_probation(group, slot)),
            (false, true) => groups.for_each(|group| self.groups.begin_probation(group, slot)),
            _ => {}
        }
        was_on_probation && evidence == Evidence::Proven
    }

    /// Makes a server that has registered at another address or port prove itself there. Otherwise IDs that an attacker has
    /// proven at its own address would hold places at the addresses of others, and displace proven servers for good.
    pub fn withdraw_proof(&mut self, slot: SlotIndex) {
        let cold = self.cold(slot);
        if cold.evidence == Evidence::Proven && cold.server.origin == ListingOrigin::Registered {
            self.set_evidence(slot, Evidence::First);
        }
    }

    /// Records which server an entry has replaced.
    pub fn set_replaced(&mut self, slot: SlotIndex, replaced: ServerId) {
        self.slots.cold_mut(slot).replaced = Some(replaced);
    }

    /// Records the position in the list of an entry; `None` if it leaves the list.
    pub fn set_position(&mut self, slot: SlotIndex, position: Option<ListPosition>) -> Option<ListPosition> {
        std::mem::replace(&mut self.slots.cold_mut(slot).position, position)
    }

    /// Changes the data of a server.
    pub fn set_server(&mut self, slot: SlotIndex, server: Arc<ListedServer>) {
        let cold = self.slots.cold_mut(slot);
        let before = cold.usage();
        cold.server = server;
        let after = cold.usage();
        if before != after {
            for group in cold.groups() {
                self.groups.charge(group, after);
                self.groups.uncharge(group, before);
            }
        }
    }

    /// Updates the data of a server to its endpoints, and to a new registration, whose endpoints are ignored.
    pub fn update_server(&mut self, slot: SlotIndex, new: Option<ListBlock<'_>>) {
        let (v4, v6) = self.shown_endpoints(slot);
        let internal = self.internal_addrs(slot);
        let server = Arc::clone(&self.cold(slot).server);
        let shown = server.block();
        let is_moved = internal != server.internal;
        if new.is_none() && (shown.v4, shown.v6) == (v4, v6) && !is_moved {
            return;
        }
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        ListBlock { v4, v6, ..new.unwrap_or(shown) }.emit(&mut block);
        if *block != *server.block || is_moved {
            self.set_server(slot, Arc::new(server.updated(server.list_id, &block).with_internal(internal)));
            if new.is_some() {
                // The last registration counts: an earlier one of the other family is not a refresh of it (L8).
                self.forget_fingerprints(slot);
            }
        }
        self.block = block;
    }

    /// The endpoints of an entry that the list shows.
    pub fn shown_endpoints(&self, slot: SlotIndex) -> (Option<Endpoint<Ipv4Addr>>, Option<Endpoint<Ipv6Addr>>) {
        let external = |family| self.listed_endpoint(slot, family).map(|endpoint| endpoint.external);
        let v4 = external(Family::V4).and_then(|Addr { ip, port }| match ip {
            IpAddr::V4(ip) => Some(Endpoint { ip, port }),
            IpAddr::V6(_) => None,
        });
        let v6 = external(Family::V6).and_then(|Addr { ip, port }| match ip {
            IpAddr::V6(ip) => Some(Endpoint { ip, port }),
            IpAddr::V4(_) => None,
        });
        (v4, v6)
    }

    /// The addresses, before the address map, of those listed endpoints that the map has changed.
    pub fn internal_addrs(&self, slot: SlotIndex) -> Option<Box<InternalAddrs>> {
        let internal = PerFamily::from_fn(|family| {
            let listed = self.listed_endpoint(slot, family);
            listed.filter(|endpoint| endpoint.internal != endpoint.external).map(|endpoint| endpoint.internal)
        });
        (internal != InternalAddrs::default()).then(|| Box::new(internal))
    }

    // Leases.

    /// The fingerprint of a registration.
    #[inline]
    pub fn fingerprint(&self, source: IpAddr, bytes: &[u8]) -> u64 {
        self.fingerprinter.fingerprint(source, bytes)
    }

    /// Extends the lease if the registration is byte for byte, and from the same address, the one before, according to its
    /// fingerprint. Returns the state of the endpoint then.
    #[inline]
    pub fn refresh(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        family: Family,
        fingerprint: u64,
    ) -> Option<EndpointState> {
        let hot = self.slots.hot_mut(slot);
        if hot.fingerprints[family] != fingerprint {
            return None;
        }
        let state = hot.states[family];
        if matches!(state, EndpointState::Listed | EndpointState::Checking) {
            hot.deadlines[family] = self.clock.deadline(now, self.lease);
            return Some(state);
        }
        None
    }

    /// Begins a new lease of an endpoint, which may be shorter than that of the registration before.
    pub fn begin_lease(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let lease = self.clock.deadline(now, self.lease);
        self.slots.hot_mut(slot).deadlines[family] = lease;
        self.wheel.schedule(slot, lease);
    }

    /// Records by which fingerprint a refresh is recognised.
    pub fn set_fingerprint(&mut self, slot: SlotIndex, family: Family, fingerprint: u64) {
        self.slots.hot_mut(slot).fingerprints[family] = fingerprint;
    }

    /// Has the next registration of an endpoint processed in full.
    pub fn forget_fingerprint(&mut self, slot: SlotIndex, family: Family) {
        self.set_fingerprint(slot, family, 0);
    }

    pub fn forget_fingerprints(&mut self, slot: SlotIndex) {
        self.slots.hot_mut(slot).fingerprints = PerFamily::default();
    }

    /// Has the next registration of every server processed in full.
    pub fn invalidate_fingerprints(&mut self) {
        self.fingerprinter.invalidate();
    }

    /// Visits an entry at this time at the latest.
    pub fn schedule(&mut self, slot: SlotIndex, at: Tick) {
        self.wheel.schedule(slot, at);
    }

    /// Visits an entry when its next lease ends. Returns `false` if it has none.
    pub fn schedule_lease(&mut self, slot: SlotIndex) -> bool {
        let hot = self.slots.hot(slot);
        let leased = Family::ALL.into_iter().filter(|&family| hot.states[family] != EndpointState::Absent);
        let next = leased.map(|family| hot.deadlines[family]).min();
        next.into_iter().for_each(|next| self.wheel.schedule(slot, next));
        next.is_some()
    }

    /// Takes entries that are to be visited.
    pub fn take_due(&mut self, now: Instant) -> Vec<SlotIndex> {
        self.wheel.take_due(now)
    }

    /// When [`take_due`](Self::take_due) should be called next.
    pub fn next_due(&self) -> Option<Instant> {
        self.wheel.next()
    }

    /// The endpoints of an entry whose lease has ended, unless this is a time of grace, which extends it.
    pub fn ended_leases(&mut self, now: Instant, slot: SlotIndex) -> PerFamily<bool> {
        let reached = self.clock.tick(now);
        let grace = self.gaps.grace(reached);
        let hot = self.slots.hot_mut(slot);
        PerFamily::from_fn(|family| {
            if let Some(until) = grace {
                hot.deadlines[family] = hot.deadlines[family].max(until);
            }
            hot.states[family] != EndpointState::Absent && hot.deadlines[family] <= reached
        })
    }

    /// Keeps a listed endpoint whose lease has ended until then, as one that other nodes of a cluster hear.
    pub fn hold(&mut self, slot: SlotIndex, family: Family, until: Tick) -> bool {
        let is_listed = self.state(slot, family) == EndpointState::Listed;
        if is_listed {
            self.slots.hot_mut(slot).deadlines[family] = until;
            // The next registration is processed in full, and makes the endpoint local again.
            self.forget_fingerprint(slot, family);
            self.slots.cold_mut(slot).replica.is_remote[family] = true;
        }
        is_listed
    }

    /// Records that time is handled. Returns whether it is so late that a time of grace begins.
    pub fn detect_gap(&mut self, now: Instant) -> bool {
        self.gaps.detect(now, self.wheel.next())
    }

    /// Records that datagrams were lost.
    pub fn handle_lost_datagrams(&mut self, now: Instant) {
        self.gaps.handle_lost_datagrams(now);
    }

    /// Number of gaps so far.
    pub fn gaps(&self) -> u64 {
        self.gaps.count()
    }

    // What is known of servers.

    /// The evidence that the server of an entry is real. That its endpoint was known before it registered counts for ten minutes:
    /// after that its own registrations are evidence enough, and a restart must not protect all entries for ever.
    pub fn evidence(&self, now: Tick, slot: SlotIndex) -> Evidence {
        let cold = self.cold(slot);
        let is_new = now < cold.admitted.plus(KNOWN_FOR);
        match cold.evidence {
            Evidence::Proven => Evidence::Proven,
            Evidence::Known if is_new => Evidence::Known,
            _ if !self.has_returned(slot) => Evidence::First,
            _ if is_new => Evidence::Returned,
            _ => Evidence::Established,
        }
    }

    /// Whether a server has registered again, at least ten seconds after its first registration. A refresh extends the lease
    /// and nothing else, so this is read off the lease.
    pub fn has_returned(&self, slot: SlotIndex) -> bool {
        let hot = self.hot(slot);
        let cold = self.cold(slot);
        let returned = cold.admitted.plus(self.lease).plus(RETURN_AFTER);
        let is_later = |family| hot.states[family] != EndpointState::Absent && hot.deadlines[family] >= returned;
        cold.evidence == Evidence::Returned || Family::ALL.into_iter().any(is_later)
    }

    /// Whether an entry replaced the server with this ID shortly before, which now returns: a server that was restarted has
    /// ended, and does not (W100).
    pub fn is_contested(&self, now: Instant, holder: SlotIndex, id: ServerId) -> bool {
        let cold = self.cold(holder);
        cold.replaced == Some(id) && cold.admitted.plus(2 * self.lease) > self.clock.tick(now)
    }

    /// Records that a server has unregistered (L11).
    pub fn bury(&mut self, now: Instant, id: ServerId) {
        self.tombstones.insert(now, id);
    }

    /// Whether a server has just unregistered (L11).
    pub fn is_buried(&self, now: Instant, id: ServerId) -> bool {
        self.tombstones.contains(now, id)
    }

    /// Number of servers that have just unregistered.
    pub fn buried(&self) -> usize {
        self.tombstones.len()
    }

    /// Forgets what is not remembered any longer of servers that left.
    pub fn forget_expired(&mut self, now: Instant) {
        self.tombstones.forget_expired(now);
        self.reserved.forget_expired(self.clock.tick(now));
    }

    /// Panics if slots, groups, lists, leases and displaced servers contradict each other.
    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        let mut used = KeyedHash::new(0).map::<Group, Usage>();
        let mut displaced_servers = 0;
        for (slot, cold) in self.iter() {
            let hot = self.hot(slot);
            let mut charge = |(group, Usage { servers, memory })| {
                let usage = used.entry(group).or_default();
                usage.servers += servers;
                usage.memory += memory;
            };
            cold.groups().for_each(|group| charge((group, cold.usage())));
            if let Some(displaced) = &cold.displaced {
                assert!(cold.is_on_probation(), "a proven server that has displaced another");
                assert_eq!(self.displaced.get(&displaced.public_id()), Some(&slot), "a displaced server by its ID");
                assert!(self.find(displaced.id).is_none(), "a displaced server that is registered");
                displaced_servers += 1;
                displaced.usage().for_each(charge);
            }
            for family in Family::ALL {
                let is_present = hot.states[family] != EndpointState::Absent;
                assert_eq!(cold.endpoints[family].is_some(), is_present, "state of an endpoint");
                let Some(endpoint) = cold.endpoints[family] else { continue };
                assert_eq!([endpoint.internal.ip, endpoint.external.ip].map(Family::of), [family; 2], "family");
                assert!(self.wheel.is_due_by(slot, hot.deadlines[family]), "a lease without a timer");
            }
            let block = cold.server.block();
            assert_eq!((block.v4, block.v6), self.shown_endpoints(slot), "endpoints in the list");
            assert_eq!(cold.server.internal, self.internal_addrs(slot), "addresses before the address map");
            assert_eq!(cold.position.is_some(), block.v4.is_some() || block.v6.is_some(), "position in the list");
            assert!(cold.endpoints.iter().any(Option::is_some), "an entry without an endpoint");
            assert_eq!(block.transport, cold.transport, "transport in the list");
        }
        assert_eq!(displaced_servers, self.displaced.len(), "displaced servers");
        self.groups.check_invariants(self.iter(), &used);
        let lists = used.keys().filter_map(|group| if let Group::List(id) = group { Some(*id) } else { None });
        self.lists.check_invariants(lists);
    }
}
