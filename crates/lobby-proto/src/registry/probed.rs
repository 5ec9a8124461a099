//! Servers that do not register here: somebody asks them, and says here what they answered.

use super::{Registry, operator::Suspect, register::Newcomer};
use crate::{
    ListingOrigin, PublicId, RegistrationOutcome, UnlistReason,
    addresses::canonical,
    entry::{State, family_of},
};
use rallypoint_limit::{Lan, is_possible_source, is_public};
use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    hash::Hasher,
    net::IpAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// What a server that does not register has answered.
#[derive(Clone, Debug)]
pub struct ProbedServer {
    /// What it is watched as: whoever has the same label is the same server, whatever its addresses are.
    pub label: String,
    /// Why it is asked: because the operator wants it, or because it announced itself. Then it counts towards what its
    /// address may have.
    pub origin: ListingOrigin,
    /// The lobby to list it in.
    pub lobby: LobbyId,
    /// Where it answered, by UDP: at most one address of each family counts, the last.
    pub ips: Vec<IpAddr>,
    /// Its port.
    pub port: NonZeroU16,
    /// How many play there.
    pub occupancy: Occupancy,
    /// Everything else that is shown of it. There has to be a name.
    pub table: TableBuf,
    /// How long the answer took.
    pub latency: Duration,
    /// For how long it is listed, unless it answers again.
    pub lease: Duration,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbedOutcome {
    /// It is in the list, under this ID.
    Listed(PublicId),
    /// It is not, because a server at that address is watched under another label, or announced itself while this one did
    /// not.
    Taken,
    /// It is not welcome, or there is no room.
    Refused(RegistrationOutcome),
}

impl Registry {
    /// A server that does not register has answered. Whoever registered there makes way for it: an answer is worth more than
    /// a datagram, which anybody can have sent (W38).
    pub fn handle_probed(&mut self, now: Instant, watched: &ProbedServer) -> ProbedOutcome {
        let ips = watched.ips.iter().map(|ip| canonical(*ip)).collect();
        let watched = &ProbedServer { ips, ..watched.clone() };
        let watching = self.watch(now, watched);
        let outcome = match watching {
            ProbedOutcome::Listed(_) => RegistrationOutcome::Refreshed,
            ProbedOutcome::Taken => return watching,
            ProbedOutcome::Refused(outcome) => outcome,
        };
        if watched.origin == ListingOrigin::Announced {
            let name = watched.table.as_table().get(b"name");
            watched.ips.iter().for_each(|ip| self.note_outcome(now, *ip, watched.port, outcome, name));
        }
        watching
    }

    /// Whether a server that announces itself is refused whatever it would answer: then nobody has to ask it. It is noted for
    /// its owner.
    pub fn precheck_announced(&mut self, now: Instant, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        let refused = self.refused_at(now, canonical(ip), port)?;
        self.record_announced(now, ip, port, refused);
        Some(refused)
    }

    /// Notes for its owner what became of a server that announced itself.
    pub fn record_announced(&mut self, now: Instant, ip: IpAddr, port: NonZeroU16, outcome: RegistrationOutcome) {
        self.note_outcome(now, canonical(ip), port, outcome, None);
    }

    fn note_outcome(
        &mut self,
        now: Instant,
        ip: IpAddr,
        port: NonZeroU16,
        outcome: RegistrationOutcome,
        name: Option<&[u8]>,
    ) {
        let is_banned = outcome == RegistrationOutcome::Banned;
        let place = Some((self.endpoint(ip, port).outside, Transport::Udp));
        let reason = is_banned.then(|| self.ban_reason(now, Suspect { ip, name, id: None, place })).flatten();
        self.past.record(now, ip, outcome, Some(port.get()), reason);
    }

    fn watch(&mut self, now: Instant, watched: &ProbedServer) -> ProbedOutcome {
        if watched.ips.is_empty() || !watched.ips.iter().all(|ip| is_possible_source(*ip)) {
            return ProbedOutcome::Refused(RegistrationOutcome::InvalidSource);
        }
        let ProbedServer { lobby, port, occupancy, .. } = *watched;
        let id = self.watched_id(&watched.label);
        let new = match Registration::new(id, lobby, Transport::Udp, port, occupancy, watched.table.as_table()) {
            Ok(new) => new,
            Err(error) => return ProbedOutcome::Refused(RegistrationOutcome::Malformed(error)),
        };
        let known = self.slots.find(id);
        let owner = |ip: &IpAddr| self.slots.at_endpoint((self.endpoint(*ip, port).outside, Transport::Udp));
        let mut owners: Vec<u32> = watched.ips.iter().filter_map(owner).filter(|&slot| Some(slot) != known).collect();
        if owners.iter().any(|&slot| self.slots.cold(slot).listing.origin >= watched.origin) {
            known.into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Replaced));
            return ProbedOutcome::Taken;
        }
        if let Some(refused) = self.is_unwelcome(now, (known, owners.first().copied()), watched, &new) {
            return ProbedOutcome::Refused(refused);
        }
        owners.sort_unstable();
        owners.dedup();
        owners.into_iter().for_each(|slot| self.remove(now, slot, UnlistReason::Replaced));
        let slot = known.unwrap_or_else(|| self.create(now, None, &new, watched.origin));
        self.move_lobby(now, slot, None, lobby);
        let deadline = self.wheel.deadline(now, watched.lease);
        for &ip in &watched.ips {
            let family = family_of(ip);
            self.set_endpoint(now, slot, family, self.endpoint(ip, port), &new);
            let hot = self.slots.hot_mut(slot);
            (hot.states[family], hot.deadlines[family]) = (State::Listed, deadline);
        }
        self.wheel.schedule(slot, deadline);
        self.relist(now, slot, Some(&new), UnlistReason::Expired);
        let listing = &self.slots.cold(slot).listing;
        listing.set_latency(watched.latency);
        ProbedOutcome::Listed(listing.public_id)
    }

    /// A server is watched no more: it goes at once.
    pub fn remove_probed(&mut self, now: Instant, label: &str) {
        if let Some(slot) = self.slots.find(self.watched_id(label)) {
            self.remove(now, slot, UnlistReason::Unwatched);
        }
    }

    fn is_unwelcome(
        &self,
        now: Instant,
        (known, replaced): (Option<u32>, Option<u32>),
        watched: &ProbedServer,
        new: &Registration<'_>,
    ) -> Option<RegistrationOutcome> {
        if self.is_name_banned(now, new.name()) || self.is_server_banned(now, self.public_id(new.server_id())) {
            return Some(RegistrationOutcome::Banned);
        }
        if let Some(refused) = watched.ips.iter().find_map(|ip| self.refused_at(now, *ip, watched.port)) {
            return Some(refused);
        }
        let refused = |home| self.at_cap(&Newcomer { home, ..Newcomer::unrelated(new) }, known, replaced);
        match watched.origin.is_charged() {
            true => watched.ips.iter().find_map(|ip| refused(Some(Lan::of(*ip)))),
            false => refused(None),
        }
    }

    /// Why no server at this place is welcome, if none is.
    fn refused_at(&self, now: Instant, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        let place = self.endpoint(ip, port).outside;
        if self.is_address_banned(now, ip) || self.is_place_banned(now, (place, Transport::Udp)) {
            return Some(RegistrationOutcome::Banned);
        }
        (!self.config.allow_private && !is_public(place.ip)).then_some(RegistrationOutcome::PrivateSource)
    }

    /// An ID that nobody else can make: whoever knew it could take the server off the list.
    fn watched_id(&self, label: &str) -> ServerId {
        let mut hasher = SipHasher24::new_with_key(&self.seed.public_ids);
        hasher.write(b"watched server");
        hasher.write(label.as_bytes());
        ServerId::from_bytes(hasher.finish128().as_bytes())
    }
}
