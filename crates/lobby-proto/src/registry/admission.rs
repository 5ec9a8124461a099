//! The first decision about a datagram that is not a refresh: source address, budgets, bans and size.

use super::Registry;
use crate::{RegistrationOutcome, index::SlotIndex};
use rallypoint_limit::{Decision, is_possible_source};
use rallypoint_wire::lobby::Datagram;
use std::{net::IpAddr, time::Instant};

/// Number of keys that are not charged in addition to their bytes: real servers send 5 to 12.
const FREE_KEYS: usize = 16;

/// Charge for each key beyond these besides its own bytes: a registration of 600 keys takes as long as three with few keys
/// and the same length.
const BYTES_PER_KEY: usize = 16;

/// The charge for a datagram in bytes: hundreds of keys are more work than the same number of bytes with few keys.
pub(super) fn charge(bytes: &[u8]) -> usize {
    bytes.len() + BYTES_PER_KEY * Datagram::peek_count(bytes).saturating_sub(FREE_KEYS)
}

impl Registry {
    /// Decides whether a datagram is parsed. `charge` bytes are charged to the budgets.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        known: Option<SlotIndex>,
        source: IpAddr,
        size: usize,
        charge: usize,
    ) -> Result<(), RegistrationOutcome> {
        if !is_possible_source(source) {
            return Err(RegistrationOutcome::InvalidSource);
        }
        if !self.config.limit_exempt.contains(source) {
            if known.is_some_and(|slot| self.is_from(slot, source)) {
                // A sender that knows the secret ID of a server at this address is not forged, so a flood must not use up
                // its share.
                self.limiter.mark_known(now, source);
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

    fn is_from(&self, slot: SlotIndex, source: IpAddr) -> bool {
        self.slots.cold(slot).endpoints.iter().flatten().any(|endpoint| endpoint.internal.ip == source)
    }
}
