//! Servers that do not register: the caller queries them and passes their replies to the registry.

use super::{Evidence, Registry, admission::SpaceRequest, register::block_of};
use crate::{
    ListingOrigin, PublicId, RegistrationOutcome, UnlistReason, bans::Candidate, doors::Door, entry::Family,
    index::SlotIndex,
};
use rallypoint_limit::is_possible_source;
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
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
    /// The list in which it is listed.
    pub list: ListId,
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
        if probed.origin == ListingOrigin::Announced && result != Ok(None) {
            let outcome = result.err().unwrap_or(RegistrationOutcome::Refreshed);
            for ip in &probed.ips {
                let endpoint = self.config.endpoint(*ip, probed.port);
                let name = probed.table.as_table().get(b"name");
                let candidate = || Candidate { name, ..Candidate::at_endpoint(endpoint, Transport::Udp) };
                let reason = self.admission.reason_for(now, outcome, candidate);
                self.outcomes.record_for_owner(now, *ip, outcome, probed.port.get(), reason);
            }
        }
        match result {
            Ok(Some(id)) => ProbedOutcome::Listed(id),
            Ok(None) => ProbedOutcome::Taken,
            Err(refused) => ProbedOutcome::Refused(refused),
        }
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
        self.admission.endpoint_refusal(now, self.config.endpoint(ip.to_canonical(), port), Transport::Udp)
    }

    /// Records for its owner the outcome of a server that announced itself.
    pub fn record_announced(&mut self, now: Instant, ip: IpAddr, port: NonZeroU16, outcome: RegistrationOutcome) {
        let ip = ip.to_canonical();
        let candidate = || Candidate::at_endpoint(self.config.endpoint(ip, port), Transport::Udp);
        let reason = self.admission.reason_for(now, outcome, candidate);
        self.outcomes.record_for_owner(now, ip, outcome, port.get(), reason);
    }

    /// Removes a server that is no longer queried ([`UnlistReason::Unwatched`]), or that does not answer any more.
    pub fn remove_probed(&mut self, now: Instant, label: &str, reason: UnlistReason) {
        if let Some(slot) = self.find_or_adopt(self.probed_id(label)) {
            self.remove(now, slot, reason);
        }
    }

    /// Whether a server with this label is listed.
    #[must_use]
    pub fn is_listed_as(&self, label: &str) -> bool {
        let slot = self.entries.find(self.probed_id(label));
        slot.is_some_and(|slot| self.entries.cold(slot).position.is_some())
    }

    /// Lists a server that has replied. Returns `None` if its endpoint is taken.
    fn list_probed(&mut self, now: Instant, probed: &ProbedServer) -> Result<Option<PublicId>, RegistrationOutcome> {
        if probed.ips.is_empty() || !probed.ips.iter().all(|ip| is_possible_source(*ip)) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        let ProbedServer { list, port, occupancy, .. } = *probed;
        let id = self.probed_id(&probed.label);
        let new = Registration::new(id, list, Transport::Udp, port, occupancy, probed.table.as_table())
            .map_err(RegistrationOutcome::Malformed)?;
        // A server that only other nodes have queried so far gets its own ID.
        self.find_or_adopt(id);
        let owners = self.owners(id, probed);
        if owners.iter().any(|&slot| self.entries.cold(slot).server.origin >= probed.origin) {
            self.entries.find(id).into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Replaced));
            return Ok(None);
        }
        self.accept_probed(now, probed, &new)?;
        let known = self.entries.find(id);
        // A server that was displaced by an evicted one may have returned.
        for slot in self.owners(id, probed) {
            self.entries.take_displaced(slot);
            self.remove(now, slot, UnlistReason::Replaced);
        }
        let public_id = self.public_id(id);
        let slot = known.unwrap_or_else(|| self.create(now, None, public_id, &new, probed.origin, probed.door));
        self.move_list(now, slot, None, list);
        let deadline = self.clock.deadline(now, probed.lease);
        for &ip in &probed.ips {
            self.set_endpoint(now, slot, self.config.endpoint(ip, port), &new);
            self.entries.list_until(slot, Family::of(ip), deadline);
        }
        self.update_list(now, slot, Some(block_of(&new)), UnlistReason::Expired);
        let server = &self.entries.cold(slot).server;
        server.set_latency(probed.latency);
        Ok(Some(server.public_id))
    }

    /// Decides whether a server that has replied is accepted, and makes room for it: what has replied is no forgery, so it has
    /// the most evidence.
    fn accept_probed(
        &mut self,
        now: Instant,
        probed: &ProbedServer,
        new: &Registration<'_>,
    ) -> Result<(), RegistrationOutcome> {
        let id = new.server_id();
        let whole = Candidate { name: Some(new.name()), id: Some(self.public_id(id)), ..Candidate::default() };
        if self.admission.ban_for(now, &whole).is_some() {
            return Err(RegistrationOutcome::Banned);
        }
        if let Some(refused) = probed.ips.iter().find_map(|ip| self.precheck_probed(now, *ip, probed.port)) {
            return Err(refused);
        }
        for &ip in &probed.ips {
            let request = SpaceRequest {
                source: probed.origin.is_charged().then_some(ip),
                known: self.entries.find(id),
                replaced: self.owners(id, probed).first().copied(),
                evidence: Some(Evidence::Proven),
                ..SpaceRequest::of((self.config.endpoint(ip, probed.port).external, Transport::Udp), new)
            };
            self.make_room(now, request)?;
        }
        Ok(())
    }

    /// The registered servers with other IDs at the endpoints of a server that has replied.
    fn owners(&self, id: ServerId, probed: &ProbedServer) -> Vec<SlotIndex> {
        let known = self.entries.find(id);
        let owner =
            |ip: &IpAddr| self.entries.at_endpoint((self.config.endpoint(*ip, probed.port).external, Transport::Udp));
        let mut owners: Vec<_> = probed.ips.iter().filter_map(owner).filter(|&slot| Some(slot) != known).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    fn probed_id(&self, label: &str) -> ServerId {
        self.derived_id(&[b"watched server", label.as_bytes()])
    }
}
