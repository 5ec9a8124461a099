//! The common case: a registration that is the same as the one before extends the lease of its endpoint.

use super::Registry;
use crate::{
    RegistrationOutcome,
    entry::{EndpointState, Family},
    index::SlotIndex,
};
use std::{net::IpAddr, time::Instant};

impl Registry {
    /// Extends the lease if the registration is byte for byte, and from the same address, the one before, according to its
    /// fingerprint. This costs less
    /// than checking a budget, so no budget is checked.
    #[inline]
    pub(super) fn refresh(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        source: IpAddr,
        fingerprint: u64,
    ) -> Option<RegistrationOutcome> {
        let family = Family::of(source);
        let hot = self.entries.slots.hot_mut(slot);
        if hot.fingerprints[family] != fingerprint {
            return None;
        }
        match hot.states[family] {
            EndpointState::Listed => {
                hot.deadlines[family] = self.entries.wheel.deadline(now, self.config.lease);
                Some(RegistrationOutcome::Refreshed)
            }
            EndpointState::Checking => {
                hot.deadlines[family] = self.entries.wheel.deadline(now, self.config.lease);
                Some(self.request_check_again(now, slot, family))
            }
            EndpointState::Absent | EndpointState::Unreachable => None,
        }
    }
}
