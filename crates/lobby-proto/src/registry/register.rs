//! A registration that is not a refresh: which server it replaces, and the new state of its entry.

use super::{Registry, capacity::SpaceRequest, listing::block_of};
use crate::{
    ListedServer, ListingOrigin, RegistrationOutcome, UnlistReason,
    entry::{CheckMethod, ColdEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_limit::{Lan, Site};
use rallypoint_wire::lobby::{ListBlock, LobbyId, Registration, TableBuf};
use std::{net::IpAddr, sync::Arc, time::Instant};

impl Registry {
    pub(super) fn register(
        &mut self,
        now: Instant,
        source: IpAddr,
        new: &Registration<'_>,
        fingerprint: u64,
    ) -> RegistrationOutcome {
        if self.is_name_banned(now, new.name()) {
            return RegistrationOutcome::Banned;
        }
        if self.tombstones.contains(now, new.server_id()) {
            return RegistrationOutcome::JustUnregistered;
        }
        let endpoint = self.endpoint(source, new.port());
        let key = (endpoint.external, new.transport());
        if self.is_server_banned(now, self.public_id(new.server_id())) || self.is_endpoint_banned(now, key) {
            return RegistrationOutcome::Banned;
        }
        if self.is_private_refused(&endpoint) {
            return RegistrationOutcome::PrivateSource;
        }
        let known = self.slots.find(new.server_id());
        let replaced = self.slots.at_endpoint(key).filter(|&slot| Some(slot) != known);
        if replaced.is_some_and(|slot| self.slots.cold(slot).server.origin != ListingOrigin::Registered) {
            return RegistrationOutcome::ListedByQuery;
        }
        let opener = Some(Site::of(source));
        let request = SpaceRequest { lan: Some(Lan::of(source)), opener, ..SpaceRequest::uncharged(new) };
        if let Some(refused) = self.find_cap_reached(&request, known, replaced) {
            return refused;
        }
        // L8: a restarted server has a new ID, and must be visible at once.
        if let Some(old) = replaced {
            self.remove(now, old, UnlistReason::Replaced);
        }
        let slot = known.unwrap_or_else(|| self.create(now, opener, new, ListingOrigin::Registered));
        self.move_lobby(now, slot, opener, new.lobby_id());
        let was_listed = self.slots.cold(slot).position.is_some();
        let family = Family::of(source);
        let needs_check = self.set_endpoint(now, slot, family, endpoint, new);
        let lease = self.wheel.deadline(now, self.config.lease);
        self.slots.hot_mut(slot).deadlines[family] = lease;
        self.wheel.schedule(slot, lease);
        let is_refused = PerFamily::from_fn(|family| needs_check[family] && !self.request_check(now, slot, family));
        let is_changed = self.update_list(now, slot, Some(new), UnlistReason::Unreachable);
        if !is_refused[family] {
            self.slots.hot_mut(slot).fingerprints[family] = fingerprint;
        }
        match self.slots.hot(slot).states[family] {
            EndpointState::Listed if !was_listed => RegistrationOutcome::Listed,
            EndpointState::Listed if is_changed => RegistrationOutcome::Changed,
            EndpointState::Listed => RegistrationOutcome::Refreshed,
            EndpointState::Checking if is_refused[family] => RegistrationOutcome::CheckBusy,
            EndpointState::Checking => RegistrationOutcome::Checking,
            EndpointState::Unreachable | EndpointState::Absent => RegistrationOutcome::Unreachable,
        }
    }

    /// Creates an entry without endpoints.
    pub(super) fn create(
        &mut self,
        now: Instant,
        opener: Option<Site>,
        new: &Registration<'_>,
        origin: ListingOrigin,
    ) -> SlotIndex {
        self.join_lobby(opener, new.lobby_id());
        // The table is written when the server is listed: that is the expensive part, and should be done once.
        self.buffers.block.clear();
        ListBlock { table: TableBuf::new().as_table(), ..block_of(new, None, None) }.emit(&mut self.buffers.block);
        let public_id = self.public_id(new.server_id());
        let server = ListedServer::new(public_id, new.lobby_id(), now, &self.buffers.block).with_origin(origin);
        self.usage.memory += server.memory();
        let cold = ColdEntry::new(new.transport(), CheckMethod::of(new), Arc::new(server));
        self.slots.insert(new.server_id(), cold)
    }

    /// Adds a server to a lobby; `opener` is charged if the lobby is new.
    pub(super) fn join_lobby(&mut self, opener: Option<Site>, lobby: LobbyId) {
        self.usage.lobbies.join(lobby, self.config.named_lobbies.contains(&lobby), opener);
    }

    /// Moves a server to another lobby, if its registration names one.
    pub(super) fn move_lobby(&mut self, now: Instant, slot: SlotIndex, opener: Option<Site>, lobby: LobbyId) {
        let old = self.slots.cold(slot).server.lobby_id;
        if old != lobby {
            self.unlist(now, slot, UnlistReason::Moved);
            self.usage.lobbies.leave(old);
            self.join_lobby(opener, lobby);
            let cold = self.slots.cold_mut(slot);
            cold.server = Arc::new(cold.server.updated(lobby, &cold.server.block));
            self.slots.hot_mut(slot).fingerprints = PerFamily::default();
        }
    }
}
