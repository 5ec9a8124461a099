//! A registration that is not a refresh: which server it replaces, and the new state of its entry.

use super::{
    Evidence, Registry,
    admission::{Room, SpaceRequest},
    entries::DisplacedServer,
};
use crate::{
    CheckTarget, ListedServer, ListingOrigin, PublicId, RegistrationOutcome, UnlistReason,
    bans::Candidate,
    doors::Door,
    entry::{CheckMethod, ColdEntry, EndpointEntry, EndpointKey, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::{Datagram, ListBlock, ListId, Registration, Revision, ServerId, TableBuf};
use std::{net::IpAddr, num::NonZeroU16, sync::Arc, time::Instant};

/// The server that a registration replaces.
#[derive(Debug)]
struct Replaced {
    id: ServerId,
    /// Whether it had itself replaced the server that registers.
    is_contested: bool,
    /// The server that returns if the new one leaves.
    displaced: Option<Box<DisplacedServer>>,
}

impl Registry {
    pub(super) fn register(
        &mut self,
        now: Instant,
        door: &'static Door,
        source: IpAddr,
        new: &Registration<'_>,
        fingerprint: u64,
    ) -> RegistrationOutcome {
        let public_id = self.public_id(new.server_id());
        let endpoint = self.config.endpoint(source, new.port());
        let evidence = match self.accept(now, public_id, endpoint, new) {
            Ok(evidence) => evidence,
            Err(refused) => return refused,
        };
        let opener = Some(Site::of(source));
        let family = Family::of(source);
        self.entries.forget_displaced(now, public_id, &[(endpoint.external, new.transport())]);
        // A server that was displaced by an evicted one may have returned.
        let known = self.entries.find(new.server_id());
        let replaced = self.replace(now, known, endpoint, new);
        let slot = known.unwrap_or_else(|| {
            let created = self.create(now, opener, public_id, new, ListingOrigin::Registered, Some(door));
            // What was the reason to admit it protects it now.
            self.entries.set_evidence(created, evidence.min(Evidence::Known));
            created
        });
        self.move_list(now, slot, opener, new.list_id());
        let was_listed = self.entries.cold(slot).position.is_some();
        let needs_check = self.set_endpoint(now, slot, endpoint, new);
        self.entries.begin_lease(now, slot, family);
        self.release_displaced(now, slot);
        let is_contested = replaced.as_ref().is_some_and(|replaced| replaced.is_contested);
        if let Some(Replaced { id, displaced, .. }) = replaced {
            self.entries.set_replaced(slot, id);
            displaced.into_iter().for_each(|displaced| self.keep_displaced(now, slot, displaced));
        }
        let is_refused = PerFamily::from_fn(|family| needs_check[family] && !self.request_check(now, slot, family));
        let is_changed = self.update_list(now, slot, Some(block_of(new)), UnlistReason::Unreachable);
        if !is_refused[family] {
            self.entries.set_fingerprint(slot, family, fingerprint);
        }
        let outcome = match self.entries.state(slot, family) {
            EndpointState::Listed if is_contested => RegistrationOutcome::Contested,
            EndpointState::Listed if !was_listed => RegistrationOutcome::Listed,
            EndpointState::Listed if is_changed => RegistrationOutcome::Changed,
            EndpointState::Listed => RegistrationOutcome::Refreshed,
            EndpointState::Checking if is_refused[family] => RegistrationOutcome::CheckBusy,
            EndpointState::Checking => RegistrationOutcome::Checking,
            EndpointState::Unreachable | EndpointState::Absent => {
                self.checks.failure(self.entries.check_target(slot, family))
            }
        };
        self.yield_to_displaced(now, slot, is_refused);
        outcome
    }

    /// Decides whether a registration is accepted, and makes room for it. Returns the evidence that was needed for that.
    fn accept(
        &mut self,
        now: Instant,
        public_id: PublicId,
        endpoint: EndpointEntry,
        new: &Registration<'_>,
    ) -> Result<Evidence, RegistrationOutcome> {
        let id = new.server_id();
        let source = endpoint.internal.ip;
        let key = (endpoint.external, new.transport());
        let is_buried = self.entries.is_buried(now, id) || self.replication.is_buried(now, public_id);
        // Of a server that has just unregistered, only the name may be news: its datagram is older than that.
        let named = Candidate { name: Some(new.name()), ..Candidate::default() };
        let listed = Some((key.0.into(), key.1));
        let candidate = Candidate { id: Some(public_id), endpoint: listed, ..named };
        if self.admission.ban_for(now, if is_buried { &named } else { &candidate }).is_some() {
            return Err(RegistrationOutcome::Banned);
        }
        if is_buried {
            return Err(RegistrationOutcome::JustUnregistered);
        }
        if self.config.refuses_as_private(&endpoint) {
            return Err(RegistrationOutcome::PrivateSource);
        }
        let known = self.find_or_adopt(id);
        let replaced = self.entries.at_endpoint(key).filter(|&slot| Some(slot) != known);
        if replaced.is_some_and(|slot| self.entries.cold(slot).server.origin != ListingOrigin::Registered) {
            return Err(RegistrationOutcome::ListedByQuery);
        }
        if self.entries.is_endpoint_taken(now, known, key, endpoint) {
            return Err(RegistrationOutcome::EndpointTaken);
        }
        let request = SpaceRequest {
            source: Some(source),
            opener: Some(Site::of(source)),
            target: CheckMethod::of(new).map(|method| method.target(endpoint.internal)),
            known,
            replaced,
            ..SpaceRequest::of(key, new)
        };
        self.make_room(now, request)
    }

    /// Makes room for a server by evicting others, if there is more evidence for it than for them. Returns the evidence that was
    /// needed.
    pub(super) fn make_room(&mut self, now: Instant, request: SpaceRequest) -> Result<Evidence, RegistrationOutcome> {
        match self.admission.find_room(now, &self.entries, request, |target| self.checks.was_reachable(target)) {
            Room::Yes(needed, victims) => {
                victims.into_iter().for_each(|victim| self.evict(now, victim));
                Ok(needed)
            }
            Room::No(refused, target) => {
                let checks = &self.config.checks;
                let is_checked = |target: &CheckTarget| checks.enabled && !checks.exempt.contains(target.addr.ip());
                if let Some(target) = target.filter(is_checked) {
                    // If no check can be made now, its next registration requests one again.
                    let _ = self.checks.request(now, target, (None, 1));
                }
                Err(refused)
            }
        }
    }

    /// Removes the server that a registration replaces, if there is one. L8: a restarted server has a new ID, and must be visible
    /// at once.
    fn replace(
        &mut self,
        now: Instant,
        known: Option<SlotIndex>,
        endpoint: EndpointEntry,
        new: &Registration<'_>,
    ) -> Option<Replaced> {
        let key = (endpoint.external, new.transport());
        let slot = self.entries.at_endpoint(key).filter(|&slot| Some(slot) != known)?;
        let id = self.entries.hot(slot).id;
        let is_contested = self.entries.is_contested(now, slot, new.server_id());
        let reason = if is_contested { UnlistReason::Contested } else { UnlistReason::Replaced };
        let displaced = self.displace(now, slot, Family::of(endpoint.internal.ip), reason);
        Some(Replaced { id, is_contested, displaced })
    }

    /// Creates an entry without endpoints.
    pub(super) fn create(
        &mut self,
        now: Instant,
        opener: Option<Site>,
        public_id: PublicId,
        new: &Registration<'_>,
        origin: ListingOrigin,
        door: Option<&'static Door>,
    ) -> SlotIndex {
        // The table is written when the server is listed: that is the expensive part, and should be done once.
        let empty = TableBuf::new();
        let block = ListBlock { table: empty.as_table(), ..block_of(new) };
        let server = ListedServer::new(public_id, new.list_id(), now, &block).with_origin(origin, door);
        let entry = ColdEntry::new(server, Evidence::First, self.clock.tick(now));
        let slot = self.entries.insert(now, opener, new.server_id(), entry);
        self.replication.index(slot, public_id);
        slot
    }

    /// Moves a server to another list, if its registration names one.
    pub(super) fn move_list(&mut self, now: Instant, slot: SlotIndex, opener: Option<Site>, list: ListId) {
        if self.entries.cold(slot).server.list_id != list {
            self.unlist(now, slot, UnlistReason::Moved);
            self.entries.move_list(slot, opener, list);
        }
    }

    /// Sets the endpoint at which a server registers. Returns which of its endpoints have to be checked now.
    pub(super) fn set_endpoint(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        endpoint: EndpointEntry,
        new: &Registration<'_>,
    ) -> PerFamily<bool> {
        if !self.entries.has_endpoint(slot, endpoint, new.transport()) {
            self.admission.note_departure(now, &self.entries, slot, Family::of(endpoint.internal.ip));
        }
        let admission = &self.admission;
        let is_banned = |(addr, transport): EndpointKey| {
            let listed = Some((addr.into(), transport));
            admission.ban_for(now, &Candidate { endpoint: listed, ..Candidate::default() }).is_some()
        };
        self.entries.set_endpoint(now, slot, (endpoint, new.transport()), CheckMethod::of(new), is_banned)
    }

    /// Applies a registration that is a [`Revision`] of the one before, by the same server at the same endpoint. The result is the
    /// same as that of [`register`](Self::register), but nothing is parsed, checked or looked up that cannot have changed. `None`
    /// if it has to be parsed.
    pub(super) fn revise(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        source: IpAddr,
        bytes: &[u8],
        fingerprint: u64,
    ) -> Option<(RegistrationOutcome, NonZeroU16)> {
        let family = Family::of(source);
        let server = &self.entries.cold(slot).server;
        // An endpoint that another node of a cluster heard becomes a local one.
        let listed = self.entries.local_endpoint(slot, family)?;
        // While a new configuration is applied, an entry may have been banned.
        if self.review.is_some() || server.origin != ListingOrigin::Registered {
            return None;
        }
        let revision = Revision::compare(bytes, &server.list_id, &server.block)?;
        let port = revision.port()?;
        // The address map may have changed.
        if listed != self.config.endpoint(source, port) {
            return None;
        }
        let outcome = if revision.is_same() {
            RegistrationOutcome::Refreshed
        } else {
            let revised = server.revised(revision.block());
            if !self.admission.has_memory_for(&self.entries, server, &revised) {
                return None;
            }
            let public_id = server.public_id;
            self.entries.set_server(slot, Arc::new(revised));
            self.lists.show(now, &mut self.entries, slot);
            self.replication.note_change(public_id);
            // The last registration counts: an earlier one of the other family is not a refresh of it (L8).
            self.entries.forget_fingerprints(slot);
            RegistrationOutcome::Changed
        };
        self.entries.begin_lease(now, slot, family);
        self.entries.set_fingerprint(slot, family, fingerprint);
        Some((outcome, port))
    }

    /// Removes a server for its owner. Also returns its port, because an owner may have several servers at one address: that at the
    /// address of the source if it has several.
    pub(super) fn unregister(
        &mut self,
        now: Instant,
        source: IpAddr,
        id: ServerId,
    ) -> (RegistrationOutcome, Option<u16>) {
        let public_id = self.public_id(id);
        let mut port = None;
        if let Some(slot) = self.find_or_adopt(id) {
            let endpoints = self.entries.cold(slot).endpoints;
            let endpoint = endpoints[Family::of(source)].or_else(|| endpoints.iter().find_map(|endpoint| *endpoint));
            port = endpoint.map(|endpoint| endpoint.internal.port.get());
            self.remove(now, slot, UnlistReason::Unregistered);
        } else if self.entries.forget_displaced(now, public_id, &[]) {
            self.replication.note_unregistered(now, public_id);
        } else {
            return (RegistrationOutcome::NotRegistered, None);
        }
        self.entries.bury(now, id);
        (RegistrationOutcome::Unregistered, port)
    }

    /// The entry of a server, by its own ID or, if only other nodes heard it so far, by its public ID.
    pub(super) fn find_or_adopt(&mut self, id: ServerId) -> Option<SlotIndex> {
        let known = self.entries.find(id);
        if known.is_some() || !self.replication.is_enabled() {
            return known;
        }
        let slot = self.replication.find(self.public_id(id))?;
        self.entries.adopt(slot, id);
        Some(slot)
    }

    /// The server that registers, as far as bans are concerned.
    pub(super) fn candidate<'a>(&self, source: IpAddr, new: &Registration<'a>) -> Candidate<'a> {
        let at_endpoint = Candidate::at_endpoint(self.config.endpoint(source, new.port()), new.transport());
        Candidate { name: Some(new.name()), id: Some(self.public_id(new.server_id())), ..at_endpoint }
    }

    /// Whether the endpoint of a registration belongs to a server with another ID.
    pub(crate) fn is_registered_under_another_id(&self, source: IpAddr, registration: &[u8]) -> bool {
        let Ok(Datagram::Register(new)) = Datagram::parse(registration) else { return false };
        let external = self.config.endpoint(source, new.port()).external;
        let owner = self.entries.at_endpoint((external, new.transport()));
        // In a cluster the owner can be this server under a stand-in ID, but not under another public one.
        let public_id = self.public_id(new.server_id());
        owner.is_some_and(|owner| self.entries.cold(owner).server.public_id() != public_id)
    }
}

/// The block of a registered server in the list, without its endpoints.
pub(super) fn block_of<'a>(new: &Registration<'a>) -> ListBlock<'a> {
    ListBlock { transport: new.transport(), v4: None, v6: None, occupancy: new.occupancy(), table: new.table() }
}
