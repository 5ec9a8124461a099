//! Servers that do not register: the caller queries them and passes their replies to the registry.

use super::{Evidence, Registry, capacity::SpaceRequest, listing::block_of};
use crate::{
    ListingOrigin, PublicId, RegistrationOutcome, UnlistReason,
    bans::Candidate,
    doors::Door,
    entry::{EndpointState, Family},
    index::SlotIndex,
};
use rallypoint_limit::is_possible_source;
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    hash::Hasher,
    net::IpAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// A server that does not register, and that has replied to a query.
#[derive(Clone, Debug)]
pub struct ProbedServer {
    /// Identifies the server, whatever its addresses are: two with the same label are the same server.
    pub label: String,
    /// Why the server is queried: because the operator watches it, or because it announced itself. In the latter case it
    /// counts towards the caps of its address.
    pub origin: ListingOrigin,
    /// The door through which it announced itself, if it did.
    pub door: Option<&'static Door>,
    /// The lobby in which it is listed.
    pub lobby: ListId,
    /// The addresses at which it replied, over UDP. Only the last address of each family is used.
    pub ips: Vec<IpAddr>,
    /// Its port.
    pub port: NonZeroU16,
    /// Numbers of players and slots.
    pub occupancy: Occupancy,
    /// Everything else that the list shows. A name is required.
    pub table: TableBuf,
    /// Round-trip time of the query.
    pub latency: Duration,
    /// How long it is listed, unless it replies again.
    pub lease: Duration,
}

/// The outcome of listing a [`ProbedServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbedOutcome {
    /// It is in the list, with this ID.
    Listed(PublicId),
    /// It is not listed, because its endpoint belongs to a server with another label that is watched, or that announced
    /// itself while this one did not.
    Taken,
    /// It is banned or private, or a cap is reached.
    Refused(RegistrationOutcome),
}

impl Registry {
    /// Lists a server that does not register and that has replied to a query. It replaces a server that registered at the
    /// same endpoint: a reply proves more than a datagram whose source can be forged (W38).
    pub fn handle_probed(&mut self, now: Instant, probed: &ProbedServer) -> ProbedOutcome {
        let ips = probed.ips.iter().map(IpAddr::to_canonical).collect();
        let probed = &ProbedServer { ips, ..probed.clone() };
        let result = self.list_probed(now, probed);
        let outcome = match result {
            ProbedOutcome::Listed(_) => RegistrationOutcome::Refreshed,
            ProbedOutcome::Taken => return result,
            ProbedOutcome::Refused(outcome) => outcome,
        };
        if probed.origin == ListingOrigin::Announced {
            let name = probed.table.as_table().get(b"name");
            probed.ips.iter().for_each(|ip| self.record_probed(now, *ip, probed.port, outcome, name));
        }
        result
    }

    /// The reason why a server that announces itself is refused whatever it would reply, so that it need not be queried. It
    /// is recorded for its owner.
    pub fn precheck_announced(&mut self, now: Instant, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        let refused = self.precheck_probed(now, ip, port)?;
        self.record_announced(now, ip, port, refused);
        Some(refused)
    }

    /// The reason why a server at this endpoint is refused whatever it would reply, so that it is not to be queried.
    #[must_use]
    pub fn precheck_probed(&self, now: Instant, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        self.endpoint_refusal(now, ip.to_canonical(), port)
    }

    /// Records for its owner the outcome of a server that announced itself.
    pub fn record_announced(&mut self, now: Instant, ip: IpAddr, port: NonZeroU16, outcome: RegistrationOutcome) {
        self.record_probed(now, ip.to_canonical(), port, outcome, None);
    }

    /// Removes a server that is no longer queried.
    pub fn remove_probed(&mut self, now: Instant, label: &str) {
        if let Some(slot) = self.find_or_adopt(self.probed_id(label)) {
            self.remove(now, slot, UnlistReason::Unwatched);
        }
    }

    fn record_probed(
        &mut self,
        now: Instant,
        ip: IpAddr,
        port: NonZeroU16,
        outcome: RegistrationOutcome,
        name: Option<&[u8]>,
    ) {
        let is_banned = outcome == RegistrationOutcome::Banned;
        let candidate = Candidate { name, ..self.probed_candidate(ip, port) };
        let reason = is_banned.then(|| self.ban_reason(now, &candidate)).flatten();
        self.outcomes.record_for_owner(now, ip, outcome, port.get(), reason);
    }

    fn list_probed(&mut self, now: Instant, probed: &ProbedServer) -> ProbedOutcome {
        if probed.ips.is_empty() || !probed.ips.iter().all(|ip| is_possible_source(*ip)) {
            return ProbedOutcome::Refused(RegistrationOutcome::InvalidSource);
        }
        let ProbedServer { lobby, port, occupancy, .. } = *probed;
        let id = self.probed_id(&probed.label);
        let new = match Registration::new(id, lobby, Transport::Udp, port, occupancy, probed.table.as_table()) {
            Ok(new) => new,
            Err(error) => return ProbedOutcome::Refused(RegistrationOutcome::Malformed(error)),
        };
        // A server that only other nodes have queried so far gets its own ID.
        self.find_or_adopt(id);
        let owners = self.owners(id, probed);
        if owners.iter().any(|&slot| self.entries.slots.cold(slot).server.origin >= probed.origin) {
            self.entries.slots.find(id).into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Replaced));
            return ProbedOutcome::Taken;
        }
        if let Err(refused) = self.admit_probed(now, probed, &new) {
            return ProbedOutcome::Refused(refused);
        }
        let known = self.entries.slots.find(id);
        // A server that was displaced by an evicted one may have returned.
        let mut owners = self.owners(id, probed);
        owners.sort_unstable();
        owners.dedup();
        for slot in owners {
            self.take_displaced(slot);
            self.remove(now, slot, UnlistReason::Replaced);
        }
        let slot = known.unwrap_or_else(|| self.create(now, None, &new, probed.origin, probed.door));
        self.move_lobby(now, slot, None, lobby);
        let deadline = self.entries.wheel.deadline(now, probed.lease);
        for &ip in &probed.ips {
            let family = Family::of(ip);
            self.set_endpoint(now, slot, family, self.endpoint(ip, port), &new);
            let hot = self.entries.slots.hot_mut(slot);
            hot.states[family] = EndpointState::Listed;
            hot.deadlines[family] = deadline;
        }
        self.entries.wheel.schedule(slot, deadline);
        self.update_list(now, slot, Some(block_of(&new, None, None)), UnlistReason::Expired);
        let server = &self.entries.slots.cold(slot).server;
        server.set_latency(probed.latency);
        ProbedOutcome::Listed(server.public_id)
    }

    /// The registered servers with other IDs at the endpoints of a server that has replied.
    fn owners(&self, id: ServerId, probed: &ProbedServer) -> Vec<SlotIndex> {
        let known = self.entries.slots.find(id);
        let owner =
            |ip: &IpAddr| self.entries.slots.at_endpoint((self.endpoint(*ip, probed.port).external, Transport::Udp));
        probed.ips.iter().filter_map(owner).filter(|&slot| Some(slot) != known).collect()
    }

    /// Decides whether a server that has replied is accepted, and makes room for it: what has replied is no forgery, so it has
    /// the most evidence.
    fn admit_probed(
        &mut self,
        now: Instant,
        probed: &ProbedServer,
        new: &Registration<'_>,
    ) -> Result<(), RegistrationOutcome> {
        let id = Some(self.public_id(new.server_id()));
        if self.ban_for(now, &Candidate { name: Some(new.name()), id, ..Candidate::default() }).is_some() {
            return Err(RegistrationOutcome::Banned);
        }
        if let Some(refused) = probed.ips.iter().find_map(|ip| self.endpoint_refusal(now, *ip, probed.port)) {
            return Err(refused);
        }
        for &ip in &probed.ips {
            let known = self.entries.slots.find(new.server_id());
            let replaced = self.owners(new.server_id(), probed).first().copied();
            let key = (self.endpoint(ip, probed.port).external, Transport::Udp);
            let source = probed.origin.is_charged().then_some(ip);
            let evidence = Some(Evidence::Proven);
            let request = SpaceRequest { source, known, replaced, evidence, ..SpaceRequest::of(key, new) };
            self.make_room(now, request)?;
        }
        Ok(())
    }

    /// The reason why no server at this endpoint is accepted, if none is.
    fn endpoint_refusal(&self, now: Instant, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        if self.ban_for(now, &self.probed_candidate(ip, port)).is_some() {
            return Some(RegistrationOutcome::Banned);
        }
        self.is_private_refused(&self.endpoint(ip, port)).then_some(RegistrationOutcome::PrivateSource)
    }

    /// A server at this endpoint, which may be banned.
    fn probed_candidate(&self, ip: IpAddr, port: NonZeroU16) -> Candidate<'static> {
        let endpoint = Some((self.endpoint(ip, port).external.into(), Transport::Udp));
        Candidate { ip: Some(ip), endpoint, ..Candidate::default() }
    }

    /// Whether a server with this label is listed.
    #[must_use]
    pub fn is_listed_as(&self, label: &str) -> bool {
        let slot = self.entries.slots.find(self.probed_id(label));
        slot.is_some_and(|slot| self.entries.slots.cold(slot).position.is_some())
    }

    /// Removes a server that announced itself and does not answer any more.
    pub fn remove_silent(&mut self, now: Instant, label: &str) {
        if let Some(slot) = self.entries.slots.find(self.probed_id(label)) {
            self.remove(now, slot, UnlistReason::Unreachable);
        }
    }

    fn probed_id(&self, label: &str) -> ServerId {
        self.derived_id(&[b"watched server", label.as_bytes()])
    }

    /// The ID of a server that has none of its own, which only this lobby can derive from what identifies the server: the ID
    /// allows removing it from the list.
    pub(crate) fn derived_id(&self, parts: &[&[u8]]) -> ServerId {
        let mut hasher = SipHasher24::new_with_key(&self.keys.public_ids);
        parts.iter().for_each(|part| hasher.write(part));
        ServerId::from_bytes(hasher.finish128().as_bytes())
    }
}
