//! Datagrams to the legacy port (L16): each is a registration of today in other words.

use super::Registry;
use crate::{RegistrationOutcome, addresses::canonical, legacy};
use rallypoint_wire::lobby::Datagram;
use std::{
    net::{IpAddr, SocketAddr},
    time::Instant,
};

impl Registry {
    /// A datagram to the legacy UDP port 29942 (L16).
    pub fn handle_legacy_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> RegistrationOutcome {
        let source = canonical(from.ip());
        let otherwise = match legacy::to_registration(bytes, source, &self.seed.public_ids) {
            // A server that speaks both protocols says more in the one of today (W29).
            Ok(modern) if self.is_elsewhere_known(source, &modern) => RegistrationOutcome::Refreshed,
            Ok(modern) => return self.handle_datagram(now, from, &modern),
            Err(error) => RegistrationOutcome::Malformed(error),
        };
        self.handle_unread(now, source, bytes.len(), otherwise)
    }

    /// Whether another server is registered where this one would be.
    fn is_elsewhere_known(&self, source: IpAddr, registration: &[u8]) -> bool {
        let Ok(Datagram::Register(new)) = Datagram::parse(registration) else { return false };
        let place = self.endpoint(source, new.port()).outside;
        let owner = self.slots.at_endpoint((place, new.transport()));
        owner.is_some_and(|owner| self.slots.hot(owner).id != new.server_id())
    }
}
