//! What happens to entries: they are shown, replaced, reviewed, evicted and removed, and displaced servers return.

use super::{Registry, admission::Victim, entries::DisplacedServer};
use crate::{
    Ban, RegistrationOutcome, UnlistReason,
    entry::{EndpointEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
    registry::Evidence,
};
use rallypoint_wire::lobby::ListBlock;
use std::time::Instant;

/// Number of entries that are compared with the new configuration in one call, so that datagrams never wait long.
const ENTRIES_PER_CALL: u32 = 1_024;

/// A comparison of all entries with a new configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Review {
    /// When the next step was due.
    since: Instant,
    /// The first entry that has not been compared.
    next: SlotIndex,
}

impl Review {
    pub const fn new(now: Instant) -> Self {
        Self { since: now, next: SlotIndex::FIRST }
    }

    pub const fn since(&self) -> Instant {
        self.since
    }
}

impl Registry {
    /// Updates the list to the state of an entry, and the entry to the data of a new registration. Returns whether anything
    /// that is shown has changed. The endpoints of `new` are ignored. `reason` is why the server leaves the list, if it does.
    pub(super) fn update_list(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        new: Option<ListBlock<'_>>,
        reason: UnlistReason,
    ) -> bool {
        self.entries.update_server(slot, new);
        if self.entries.shown_endpoints(slot) == (None, None) {
            return self.unlist(now, slot, reason);
        }
        let is_changed = self.lists.show(now, &mut self.entries, slot);
        if is_changed {
            self.replication.note_change(self.entries.cold(slot).server.public_id());
        }
        is_changed
    }

    /// Removes a server from the list. Returns whether it was listed.
    pub(super) fn unlist(&mut self, now: Instant, slot: SlotIndex, reason: UnlistReason) -> bool {
        let was_listed = self.lists.hide(now, &mut self.entries, slot, reason);
        if was_listed {
            self.replication.note_removal(now, self.entries.cold(slot), reason);
        }
        was_listed
    }

    /// Removes a server from the registry.
    pub(super) fn remove(&mut self, now: Instant, slot: SlotIndex, reason: UnlistReason) {
        self.unlist(now, slot, reason);
        for family in Family::ALL {
            self.admission.note_departure(now, &self.entries, slot, family);
        }
        self.replication.forget(self.entries.cold(slot).server.public_id());
        if let Some(displaced) = self.entries.remove(now, slot) {
            self.return_displaced(now, *displaced);
        }
    }

    /// Removes an entry that has to give way. Its owner can find out why.
    pub(super) fn evict(&mut self, now: Instant, victim: Victim) {
        let Victim { slot, cap } = victim;
        self.admission.note_evicted(now, &self.entries, victim);
        let cold = self.entries.cold(slot);
        for endpoint in cold.endpoints.iter().flatten() {
            let port = endpoint.internal.port.get();
            self.outcomes.record_for_owner(now, endpoint.internal.ip, cap.outcome(), port, None);
        }
        if cold.displaced.as_ref().is_some_and(|displaced| !displaced.is_proven()) {
            // It is not proven either, and two entries at one endpoint must not take longer to evict than one.
            self.entries.take_displaced(slot);
        }
        self.remove(now, slot, UnlistReason::Evicted);
    }

    /// Handles the deadline of an entry, which a refresh may have extended in the meantime.
    pub(super) fn handle_deadline(&mut self, now: Instant, slot: SlotIndex) {
        if self.entries.get(slot).is_none() {
            return;
        }
        let has_ended = self.entries.ended_leases(now, slot);
        for family in Family::ALL.into_iter().filter(|&family| has_ended[family]) {
            let held_until = self.replication.holds_until(now);
            if !held_until.is_some_and(|until| self.entries.hold(slot, family, until)) {
                self.admission.note_departure(now, &self.entries, slot, family);
                self.entries.drop_endpoint(now, slot, family);
            }
        }
        self.release_displaced(now, slot);
        if !self.entries.schedule_lease(slot) {
            return self.remove(now, slot, UnlistReason::Expired);
        }
        self.update_list(now, slot, None, UnlistReason::Expired);
        self.renew_checks(now, slot);
        for family in Family::ALL {
            if let Some(endpoint) = self.entries.listed_endpoint(slot, family) {
                self.admission.vouch(now, endpoint.internal.ip);
            }
        }
    }

    /// Compares the next entries with a new configuration, or with new bans.
    pub(super) fn continue_review(&mut self, now: Instant) {
        let Some(Review { next, .. }) = self.review else { return };
        if next == SlotIndex::FIRST {
            // The next registration of each server is processed in full, under the new rules.
            self.entries.invalidate_fingerprints();
        }
        let end = next.plus(ENTRIES_PER_CALL).min(self.entries.end());
        for slot in next.until(end) {
            if self.entries.get(slot).is_some() {
                self.review_entry(now, slot);
            }
        }
        self.review = (end < self.entries.end()).then_some(Review { since: now, next: end });
    }

    /// Removes an entry, or one of its endpoints, if the configuration no longer accepts it.
    pub(super) fn review_entry(&mut self, now: Instant, slot: SlotIndex) {
        let cold = self.entries.cold(slot);
        let bans = Family::ALL.map(|family| self.admission.ban_for(now, &cold.ban_candidate(family)?));
        if bans != [None, None] {
            // Until it registers again, its last outcome would be that it is listed. In a cluster, the node that it registers with
            // lets its owner know.
            for (family, ban) in
                Family::ALL.into_iter().zip(bans).filter(|(family, _)| !cold.replica.is_remote[*family])
            {
                if let Some(EndpointEntry { internal, .. }) = cold.endpoints[family] {
                    let reason = ban.and_then(Ban::reason);
                    let port = internal.port.get();
                    self.outcomes.record_for_owner(now, internal.ip, RegistrationOutcome::Banned, port, reason);
                }
            }
            return self.remove(now, slot, UnlistReason::Banned);
        }
        for family in Family::ALL {
            let endpoint = self.entries.cold(slot).endpoints[family];
            if endpoint.is_some_and(|endpoint| self.config.refuses_as_private(&endpoint)) {
                self.entries.drop_endpoint(now, slot, family);
            }
        }
        self.release_displaced(now, slot);
        if self.entries.cold(slot).endpoints == PerFamily::default() {
            return self.remove(now, slot, UnlistReason::Banned);
        }
        self.update_list(now, slot, None, UnlistReason::Banned);
        // The lease may be shorter than before.
        self.entries.schedule(slot, self.clock.deadline(now, self.config.lease));
    }

    /// Removes an entry whose endpoint of one family is taken by another server. Returns the server to be kept, if there is
    /// one: this one if it is proven, otherwise the one that it has displaced itself, or this one if it cannot be checked.
    pub(super) fn displace(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        taken: Family,
        reason: UnlistReason,
    ) -> Option<Box<DisplacedServer>> {
        // One whose lease has ended is gone, even if the timer that forgets it has not fired yet.
        let reached = self.clock.tick(now);
        let inherited = self.entries.take_displaced(slot).filter(|former| former.deadline > reached);
        for family in Family::ALL {
            self.admission.note_replaced(now, &self.entries, slot, family);
        }
        let key = self.entries.cold(slot).endpoint_key(taken);
        let displaced = self.entries.to_displaced(slot, taken, self.replication.is_enabled());
        // Whether the other nodes of a cluster lose it, too, is decided when the new server is listed.
        match displaced {
            Some(_) => self.without_reporting(|registry| registry.remove(now, slot, reason)),
            None => self.remove(now, slot, reason),
        }
        match inherited {
            Some(former) if Some(former.key()) != key => {
                self.return_displaced(now, *former);
                displaced
            }
            // A forger that takes the endpoint twice, and registers in between, does not replace the former server by its own.
            Some(former) if !displaced.as_ref().is_some_and(|displaced| displaced.is_proven()) => Some(former),
            _ => displaced,
        }
    }

    /// Keeps a displaced server with the entry that has taken its endpoint. If it is the same server, which has returned, it
    /// gets back what it had.
    pub(super) fn keep_displaced(&mut self, now: Instant, slot: SlotIndex, displaced: Box<DisplacedServer>) {
        let cold = self.entries.cold(slot);
        let is_proven = displaced.is_proven();
        if displaced.public_id() == cold.server.public_id() {
            self.entries.give_back(slot, &displaced);
            if is_proven {
                self.prove(slot);
            }
            return;
        }
        if cold.evidence == Evidence::Proven || cold.displaced.is_some() {
            // The store may still have it.
            return self.replication.report(displaced.public_id());
        }
        if !is_proven && !self.admission.has_room_for_displaced(&self.entries, &displaced) {
            return;
        }
        let source = displaced.endpoint.internal.ip;
        self.entries.keep_displaced(slot, displaced);
        if self.admission.exceeds_source(&self.entries, source) {
            let victim = self.admission.pick_at_source(now, &self.entries, source, slot, is_proven);
            victim.into_iter().for_each(|victim| self.evict(now, victim));
            if !is_proven && self.admission.exceeds_source(&self.entries, source) {
                self.entries.take_displaced(slot);
            }
        }
    }

    /// Lets the displaced server of an entry return, if the entry has left its endpoint, and forgets it when its lease ends.
    pub(super) fn release_displaced(&mut self, now: Instant, slot: SlotIndex) {
        if let Some(displaced) = self.entries.take_released(now, slot) {
            self.return_displaced(now, *displaced);
        }
    }

    /// Removes an entry that has displaced a proven server and cannot be listed in its place: it was not reached, or cannot be
    /// checked now. If both are checked at the same port, the former server would not be reached either, and does not return.
    pub(super) fn yield_to_displaced(&mut self, now: Instant, slot: SlotIndex, is_check_refused: PerFamily<bool>) {
        let cold = self.entries.cold(slot);
        let is_leased = |displaced: &&DisplacedServer| displaced.deadline > self.clock.tick(now);
        let Some(displaced) = cold.displaced.as_deref().filter(is_leased) else { return };
        // The endpoint of the other family proves nothing about the one that was taken.
        let family = Family::of(displaced.endpoint.internal.ip);
        let is_unreachable = self.entries.state(slot, family) == EndpointState::Unreachable;
        if is_check_refused[family] || (is_unreachable && displaced.entry.check != cold.check) {
            self.remove(now, slot, UnlistReason::Unreachable);
        }
    }

    /// Lists a displaced server again for the rest of its lease. If it had an endpoint of the other family, that one returns with
    /// its next registration.
    fn return_displaced(&mut self, now: Instant, displaced: DisplacedServer) {
        let public_id = displaced.public_id();
        let key = displaced.key();
        let DisplacedServer { id, is_remote, endpoint, deadline, entry } = displaced;
        // The lease of a server that other nodes heard is kept in the store.
        let deadline = if is_remote { self.replication.remote_deadline() } else { deadline };
        let is_back = self.replication.find(public_id).is_some() || self.entries.at_endpoint(key).is_some();
        if deadline <= self.clock.tick(now) || is_back {
            return self.replication.report(public_id);
        }
        let has_room = |registry: &Self| {
            registry.admission.has_room_at(&registry.entries, &endpoint, &entry.server, Evidence::First)
        };
        if entry.is_on_probation() && !has_room(self) {
            return;
        }
        let slot = self.entries.insert(now, None, id, entry);
        self.replication.index(slot, public_id);
        self.entries.add_listed(slot, endpoint, is_remote, deadline);
        // It lists the server, unless it was banned in the meantime.
        self.review_entry(now, slot);
        if self.entries.get(slot).is_some() {
            // An entry that is displaced again and again must not stay listed without a check.
            self.renew_checks(now, slot);
        }
        // Also if another node removed the server that had taken its place.
        self.replication.report(public_id);
    }
}
