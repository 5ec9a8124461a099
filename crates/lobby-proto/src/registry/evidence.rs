//! The evidence that a server is real and not forged. It decides which servers give way when a cap is reached (W45).

use super::{Registry, seen_endpoints::EndpointKey};
use crate::{
    ListingOrigin,
    entry::{EndpointState, Family},
    index::SlotIndex,
    wheel::Tick,
};
use rallypoint_limit::Lan;
use std::time::{Duration, Instant};

/// Evidence for a registration, or for the server of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// One registration, whose source can be forged.
    First,
    /// It has registered again, or was refused some time ago and has returned.
    Returned,
    /// A server was listed at its endpoint shortly before it registered. This counts for ten minutes.
    Known,
    /// It has returned, and was admitted more than ten minutes ago.
    Established,
    /// It has replied to a check or a query.
    Proven,
}

/// How long it protects an entry that a server was listed at its endpoint before.
pub(super) const KNOWN_FOR: Duration = Duration::from_secs(10 * 60);

/// Interval between registrations that counts as a return. A server registers every 30 seconds.
const RETURN_AFTER: Duration = Duration::from_secs(10);

impl Registry {
    /// The evidence that the server of an entry is real. That its endpoint was known before it registered counts for ten minutes:
    /// after that its own registrations are evidence enough, and a restart must not protect all entries for ever.
    pub(super) fn evidence(&self, now: Tick, slot: SlotIndex) -> Evidence {
        let cold = self.entries.slots.cold(slot);
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
    pub(super) fn has_returned(&self, slot: SlotIndex) -> bool {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let returned = cold.admitted.plus(self.config.lease).plus(RETURN_AFTER);
        let is_later = |family| hot.states[family] != EndpointState::Absent && hot.deadlines[family] >= returned;
        cold.evidence == Evidence::Returned || Family::ALL.into_iter().any(is_later)
    }

    /// Remembers the endpoint of a listed server that leaves it, if there is more evidence than one registration that the
    /// server is real.
    pub(super) fn note_departure(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        if self.entries.slots.cold(slot).evidence > Evidence::First || self.has_returned(slot) {
            self.note_replaced(now, slot, family);
        }
    }

    /// Remembers the endpoint of a listed server that is replaced, whatever else is known about it: if the new ID is forged, the
    /// server returns.
    pub(super) fn note_replaced(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        if let Some(key) = self.note_resident(now, slot, family) {
            self.admission.seen.note_listed(self.entries.wheel.tick(now), key);
        }
    }

    /// Remembers that a server was listed at its address, which takes it back however full it is. Returns its endpoint if it is
    /// listed.
    pub(super) fn note_resident(&mut self, now: Instant, slot: SlotIndex, family: Family) -> Option<EndpointKey> {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let endpoint = cold.endpoints[family].filter(|_| hot.states[family] == EndpointState::Listed)?;
        let key = (endpoint.external, cold.transport);
        self.admission.seen.note_resident(self.entries.wheel.tick(now), key, Lan::of(endpoint.internal.ip), hot.id);
        Some(key)
    }

    /// Records that a server has replied, so that it does not give way any more.
    pub(super) fn prove(&mut self, slot: SlotIndex) {
        let cold = self.entries.slots.cold(slot);
        let (is_news, is_listed) = (cold.evidence < Evidence::Proven, cold.position.is_some());
        self.set_evidence(slot, Evidence::Proven);
        // The other nodes of a cluster must know before the server is replaced at one of them.
        if is_news && is_listed {
            self.note_change(slot);
        }
    }

    /// Makes a server that has registered at another address or port prove itself there. Otherwise IDs that an attacker has
    /// proven at its own address would hold places at the addresses of others, and displace proven servers for good.
    pub(super) fn withdraw_proof(&mut self, slot: SlotIndex) {
        let cold = self.entries.slots.cold(slot);
        if cold.evidence == Evidence::Proven && cold.server.origin == ListingOrigin::Registered {
            self.set_evidence(slot, Evidence::First);
        }
    }
}
