//! A registration that is not a refresh: which server it replaces, and the new state of its entry.

use super::{Evidence, Registry, capacity::SpaceRequest, listing::block_of};
use crate::{
    ListedServer, ListingOrigin, RegistrationOutcome, UnlistReason,
    bans::Candidate,
    doors::Door,
    entry::{CheckMethod, ColdEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::{ListBlock, ListId, Registration, ServerId, TableBuf};
use std::{net::IpAddr, sync::Arc, time::Instant};

impl Registry {
    pub(super) fn register(
        &mut self,
        now: Instant,
        door: &'static Door,
        source: IpAddr,
        new: &Registration<'_>,
        fingerprint: u64,
    ) -> RegistrationOutcome {
        let endpoint = self.endpoint(source, new.port());
        let key = (endpoint.external, new.transport());
        let public_id = self.public_id(new.server_id());
        let is_unregistered = self.entries.tombstones.contains(now, new.server_id())
            || self.is_unregistered_elsewhere(now, new.server_id());
        // Of a server that has just unregistered, only the name may be news: its datagram is older than that.
        let named = Candidate { name: Some(new.name()), ..Candidate::default() };
        let whole = Candidate { id: Some(public_id), endpoint: Some((key.0.into(), key.1)), ..named };
        if self.ban_for(now, if is_unregistered { &named } else { &whole }).is_some() {
            return RegistrationOutcome::Banned;
        }
        if is_unregistered {
            return RegistrationOutcome::JustUnregistered;
        }
        if self.is_private_refused(&endpoint) {
            return RegistrationOutcome::PrivateSource;
        }
        let known = self.find_or_adopt(new.server_id());
        let replaced = self.entries.slots.at_endpoint(key).filter(|&slot| Some(slot) != known);
        if replaced.is_some_and(|slot| self.entries.slots.cold(slot).server.origin != ListingOrigin::Registered) {
            return RegistrationOutcome::ListedByQuery;
        }
        if self.is_endpoint_taken(now, known, key, endpoint) {
            return RegistrationOutcome::EndpointTaken;
        }
        let opener = Some(Site::of(source));
        let target = CheckMethod::of(new).map(|method| method.target(endpoint.internal));
        let space = SpaceRequest::of(key, new);
        let request = SpaceRequest { source: Some(source), opener, target, known, replaced, ..space };
        let evidence = match self.make_room(now, request) {
            Ok(evidence) => evidence,
            Err(refused) => return refused,
        };
        // A server that was displaced by an evicted one may have returned.
        let known = self.entries.slots.find(new.server_id());
        let replaced = self.entries.slots.at_endpoint(key).filter(|&slot| Some(slot) != known);
        let family = Family::of(source);
        self.forget_displaced(now, public_id, Some(key));
        // L8: a restarted server has a new ID, and must be visible at once.
        let is_contested = replaced.is_some_and(|old| self.is_contested(now, old, new.server_id()));
        let replaced_id = replaced.map(|old| self.entries.slots.hot(old).id);
        let reason = if is_contested { UnlistReason::Contested } else { UnlistReason::Replaced };
        let displaced = replaced.and_then(|old| self.displace(now, old, family, reason));
        let slot = known.unwrap_or_else(|| self.create(now, opener, new, ListingOrigin::Registered, Some(door)));
        if known.is_none() {
            // What was the reason to admit it protects it now.
            self.set_evidence(slot, evidence.min(Evidence::Known));
        }
        if replaced_id.is_some() {
            self.entries.slots.cold_mut(slot).replaced = replaced_id;
        }
        self.move_lobby(now, slot, opener, new.list_id());
        let was_listed = self.entries.slots.cold(slot).position.is_some();
        let needs_check = self.set_endpoint(now, slot, family, endpoint, new);
        let lease = self.entries.wheel.deadline(now, self.config.lease);
        self.entries.slots.hot_mut(slot).deadlines[family] = lease;
        self.entries.wheel.schedule(slot, lease);
        self.release_displaced(now, slot);
        if let Some(displaced) = displaced {
            self.keep_displaced(now, slot, displaced);
        }
        let is_refused = PerFamily::from_fn(|family| needs_check[family] && !self.request_check(now, slot, family));
        let is_changed = self.update_list(now, slot, Some(block_of(new, None, None)), UnlistReason::Unreachable);
        if !is_refused[family] {
            self.entries.slots.hot_mut(slot).fingerprints[family] = fingerprint;
        }
        let state = self.entries.slots.hot(slot).states[family];
        self.yield_to_displaced(now, slot, is_refused);
        match state {
            EndpointState::Listed if is_contested => RegistrationOutcome::Contested,
            EndpointState::Listed if !was_listed => RegistrationOutcome::Listed,
            EndpointState::Listed if is_changed => RegistrationOutcome::Changed,
            EndpointState::Listed => RegistrationOutcome::Refreshed,
            EndpointState::Checking if is_refused[family] => RegistrationOutcome::CheckBusy,
            EndpointState::Checking => RegistrationOutcome::Checking,
            EndpointState::Unreachable | EndpointState::Absent => self.failed_check(slot, family),
        }
    }

    /// Whether an entry replaced the server with this ID shortly before, which now returns: a server that was restarted has
    /// ended, and does not (W100).
    fn is_contested(&self, now: Instant, holder: SlotIndex, id: ServerId) -> bool {
        let cold = self.entries.slots.cold(holder);
        cold.replaced == Some(id) && cold.admitted.plus(2 * self.config.lease) > self.entries.wheel.tick(now)
    }

    /// Creates an entry without endpoints.
    pub(super) fn create(
        &mut self,
        now: Instant,
        opener: Option<Site>,
        new: &Registration<'_>,
        origin: ListingOrigin,
        door: Option<&'static Door>,
    ) -> SlotIndex {
        if self.entries.slots.len() == 0 {
            // Without entries there is no timeout.
            self.entries.gaps.touch(now);
        }
        // The table is written when the server is listed: that is the expensive part, and should be done once.
        self.lists.block.clear();
        ListBlock { table: TableBuf::new().as_table(), ..block_of(new, None, None) }.emit(&mut self.lists.block);
        let public_id = self.public_id(new.server_id());
        let server = ListedServer::new(public_id, new.list_id(), now, &self.lists.block).with_origin(origin, door);
        let evidence = if origin == ListingOrigin::Registered { Evidence::First } else { Evidence::Proven };
        let cold =
            ColdEntry::new(new.transport(), CheckMethod::of(new), Arc::new(server), self.entries.wheel.tick(now));
        self.add_entry(opener, new.server_id(), ColdEntry { evidence, ..cold })
    }

    /// Moves a server to another lobby, if its registration names one.
    pub(super) fn move_lobby(&mut self, now: Instant, slot: SlotIndex, opener: Option<Site>, lobby: ListId) {
        let old = self.entries.slots.cold(slot).server.list_id;
        if old != lobby {
            self.unlist(now, slot, UnlistReason::Moved);
            self.leave_list(slot);
            let cold = self.entries.slots.cold_mut(slot);
            cold.server = Arc::new(cold.server.updated(lobby, &cold.server.block));
            self.join_list(slot, opener);
            self.entries.slots.hot_mut(slot).fingerprints = PerFamily::default();
        }
    }
}
