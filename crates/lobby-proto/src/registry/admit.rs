//! Whether a datagram is looked at at all: budgets, bans, size.

use super::Registry;
use crate::RegistrationOutcome;
use rallypoint_limit::{Decision, is_possible_source};
use rallypoint_wire::lobby::Datagram;
use std::{net::IpAddr, time::Instant};

/// Real servers send 5 to 12 keys.
const USUAL_KEYS: usize = 16;

/// What each key beyond these is charged with, besides its own bytes: a registration of 600 keys takes as long as three of
/// few keys and the same length.
const BYTES_PER_KEY: usize = 16;

/// What a datagram costs, in bytes: hundreds of keys are more work than as many bytes with few.
pub(super) fn charge(bytes: &[u8]) -> usize {
    bytes.len() + BYTES_PER_KEY * Datagram::peek_count(bytes).saturating_sub(USUAL_KEYS)
}

impl Registry {
    /// Whether a datagram is looked at at all. So many bytes are charged to the budgets.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        known: Option<u32>,
        source: IpAddr,
        size: usize,
        charge: usize,
    ) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source) {
            if known.is_some_and(|slot| self.is_from(slot, source)) {
                // Whoever knows the secret of a server at this address is not forged: a flood does not touch its share.
                self.limiter.vouch(now, source);
            }
            if let Decision::Refused(refusal) = self.limiter.check(now, source, charge) {
                return Err(RegistrationOutcome::OverBudget(refusal));
            }
        }
        if self.is_address_banned(now, source) {
            return Err(RegistrationOutcome::Banned);
        }
        if size > self.config.max_registration {
            return Err(RegistrationOutcome::TooLarge);
        }
        Ok(())
    }

    fn is_from(&self, slot: u32, source: IpAddr) -> bool {
        self.slots.cold(slot).endpoints.iter().flatten().any(|endpoint| endpoint.inside.ip == source)
    }
}
