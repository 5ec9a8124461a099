//! Entry points for received datagrams: a refresh of a known server, or any other datagram.

use super::Registry;
use crate::{RegistrationOutcome, index::SlotIndex};
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
        from: SocketAddr,
        bytes: &[u8],
        known: Option<SlotIndex>,
    ) -> RegistrationOutcome {
        let source = from.ip().to_canonical();
        let outcome = match known {
            None => self.handle_new(now, source, bytes),
            Some(slot) => {
                let fingerprint = self.fingerprinter.fingerprint(source, bytes);
                match self.refresh(now, slot, source, fingerprint) {
                    Some(outcome) => outcome,
                    None => self.handle_known(now, slot, source, bytes, fingerprint),
                }
            }
        };
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }

    /// Handles a datagram of a registered server that is not a refresh.
    fn handle_known(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        source: IpAddr,
        bytes: &[u8],
        fingerprint: u64,
    ) -> RegistrationOutcome {
        if let Err(refused) = self.admit(now, Some(slot), source, bytes) {
            self.record_refusal(now, source, refused, bytes);
            return refused;
        }
        if let Some((outcome, port)) = self.revise(now, slot, source, bytes, fingerprint) {
            if outcome != RegistrationOutcome::Refreshed {
                self.outcomes.record_for_owner(now, source, outcome, port.get(), None);
            }
            return outcome;
        }
        self.handle_admitted(now, source, bytes)
    }

    /// Handles a datagram that is not one of a registered server.
    fn handle_new(&mut self, now: Instant, source: IpAddr, bytes: &[u8]) -> RegistrationOutcome {
        match self.admit(now, None, source, bytes) {
            Ok(()) => self.handle_admitted(now, source, bytes),
            Err(refused) => {
                self.record_refusal(now, source, refused, bytes);
                refused
            }
        }
    }

    /// Parses and handles a datagram.
    fn handle_admitted(&mut self, now: Instant, source: IpAddr, bytes: &[u8]) -> RegistrationOutcome {
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
                let fingerprint = self.fingerprinter.fingerprint(source, bytes);
                (self.register(now, source, &registration, fingerprint), Some(registration))
            }
        };
        self.record_outcome(now, source, outcome, new.as_ref());
        outcome
    }

    /// Handles a datagram that changes nothing; its outcome is `otherwise`, unless it is refused before.
    pub(super) fn handle_without_data(
        &mut self,
        now: Instant,
        source: IpAddr,
        size: usize,
        otherwise: RegistrationOutcome,
    ) -> RegistrationOutcome {
        let outcome = self.admit_size(now, source, size).err().unwrap_or(otherwise);
        self.record_outcome(now, source, outcome, None);
        self.stats.outcomes[outcome.index()] += 1;
        outcome
    }
}
