//! Datagrams to the legacy port (L16), each of which is converted to a current registration.

use super::Registry;
use crate::{RegistrationOutcome, legacy};
use rallypoint_wire::lobby::Datagram;
use std::{
    net::{IpAddr, SocketAddr},
    time::Instant,
};

impl Registry {
    /// Handles a datagram to the legacy UDP port 29942 (L16).
    pub fn handle_legacy_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> RegistrationOutcome {
        let source = from.ip().to_canonical();
        let otherwise = match legacy::to_registration(bytes, source, &self.keys.public_ids) {
            // A server that uses both protocols has more data in the current one (W29).
            Ok(current) if self.is_registered_under_another_id(source, &current) => RegistrationOutcome::Refreshed,
            Ok(current) => return self.handle_datagram(now, from, &current),
            Err(error) => RegistrationOutcome::Malformed(error),
        };
        self.handle_without_data(now, source, bytes.len(), otherwise)
    }

    /// Whether the endpoint of a registration belongs to a server with another ID.
    fn is_registered_under_another_id(&self, source: IpAddr, registration: &[u8]) -> bool {
        let Ok(Datagram::Register(new)) = Datagram::parse(registration) else { return false };
        let external = self.endpoint(source, new.port()).external;
        let owner = self.slots.at_endpoint((external, new.transport()));
        // In a cluster the owner can be this server under a stand-in ID, but not under another public one.
        let public_id = self.public_id(new.server_id());
        owner.is_some_and(|owner| self.slots.cold(owner).server.public_id() != public_id)
    }
}
