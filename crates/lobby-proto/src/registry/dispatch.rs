//! Entry points for received datagrams: a refresh of a known server, or any other datagram.

use super::Registry;
use crate::{RegistrationOutcome, doors::Door, index::SlotIndex};
use rallypoint_wire::lobby::{Datagram, Unregister};
use std::{
    net::{IpAddr, SocketAddr},
    time::Instant,
};

impl Registry {
    /// Handles a datagram; `known` is the slot of the server whose ID it contains, if that server is registered.
    #[inline]
    pub(super) fn handle_from(
        &mut self,
        now: Instant,
        door: &'static Door,
        from: SocketAddr,
        bytes: &[u8],
        known: Option<SlotIndex>,
    ) -> RegistrationOutcome {
        let source = from.ip().to_canonical();
        let known = known.map(|slot| (slot, self.entries.fingerprinter.fingerprint(source, bytes)));
        let refreshed = known.and_then(|(slot, fingerprint)| self.refresh(now, slot, source, fingerprint));
        let outcome = refreshed.unwrap_or_else(|| self.handle_change(now, door, source, bytes, known));
        self.outcomes.counts[outcome.index()] += 1;
        outcome
    }

    /// Handles a datagram that is not a refresh; `known` is the server with its ID, and the fingerprint of the datagram.
    fn handle_change(
        &mut self,
        now: Instant,
        door: &'static Door,
        source: IpAddr,
        bytes: &[u8],
        known: Option<(SlotIndex, u64)>,
    ) -> RegistrationOutcome {
        if let Err(refused) = self.admit(now, known.map(|(slot, _)| slot), source, bytes) {
            self.record_refusal(now, source, refused, bytes);
            return refused;
        }
        if let Some((slot, fingerprint)) = known
            && let Some((outcome, port)) = self.revise(now, slot, source, bytes, fingerprint)
        {
            if outcome != RegistrationOutcome::Refreshed {
                self.outcomes.record_for_owner(now, source, outcome, port.get(), None);
            }
            return outcome;
        }
        let (outcome, new) = match Datagram::parse(bytes) {
            Err(error) => (RegistrationOutcome::Malformed(error), None),
            Ok(Datagram::Unregister(Unregister { server_id })) => {
                // Its owner may have several servers at one address.
                let port = self.registered_port(server_id, source);
                let outcome = self.unregister(now, server_id);
                self.outcomes.record(now, source, outcome, port, None);
                return outcome;
            }
            Ok(Datagram::Register(registration)) => {
                let fingerprint = self.entries.fingerprinter.fingerprint(source, bytes);
                (self.register(now, door, source, &registration, fingerprint), Some(registration))
            }
        };
        self.record_outcome(now, source, outcome, new.as_ref());
        outcome
    }

    /// Handles a datagram that changes nothing; its outcome is `otherwise`, unless it is refused before.
    pub(crate) fn handle_without_data(
        &mut self,
        now: Instant,
        source: IpAddr,
        size: usize,
        otherwise: RegistrationOutcome,
    ) -> RegistrationOutcome {
        let outcome = self.admit_size(now, source, size).err().unwrap_or(otherwise);
        self.record_outcome(now, source, outcome, None);
        self.outcomes.counts[outcome.index()] += 1;
        outcome
    }
}
