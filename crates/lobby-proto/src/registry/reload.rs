//! Changing the configuration while the registry runs.

use super::Registry;
use crate::{
    Config, RegistrationOutcome, RegistryConfigError, UnlistReason,
    entry::{EndpointEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use std::time::Instant;

/// Number of entries that are compared with the new configuration in one call, so that datagrams never wait long.
const ENTRIES_PER_CALL: u32 = 1_024;

/// A comparison of all entries with a new configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Review {
    /// When the next step was due.
    pub since: Instant,
    /// The first entry that has not been compared.
    next: SlotIndex,
}

impl Registry {
    /// Changes the configuration; servers stay registered. Servers that are now banned or private are removed at once; if
    /// there are many thousands of servers, the next calls of [`handle_timeout`](Self::handle_timeout) continue with it.
    ///
    /// # Errors
    /// If the configuration is invalid; then nothing has changed.
    pub fn set_config(&mut self, now: Instant, config: Config) -> Result<(), RegistryConfigError> {
        config.validate()?;
        self.admission.limiter.set_config(&config.limits);
        self.checks.set_config(&config.checks, config.caps.memory);
        self.config = config;
        self.begin_review(now);
        Ok(())
    }

    /// Begins to compare all entries with the new configuration or bans.
    pub(super) fn begin_review(&mut self, now: Instant) {
        // The next registration of each server is processed in full, under the new rules.
        self.entries.fingerprinter.invalidate();
        self.admission.bans_changed_at = Some(now);
        self.review = Some(Review { since: now, next: SlotIndex::FIRST });
        self.continue_review(now);
    }

    /// Compares the next entries with the configuration.
    pub(super) fn continue_review(&mut self, now: Instant) {
        let Some(Review { next, .. }) = self.review else { return };
        let end = next.plus(ENTRIES_PER_CALL).min(self.entries.slots.end());
        for slot in next.until(end) {
            if self.entries.slots.get(slot).is_some() {
                self.review_entry(now, slot);
            }
        }
        self.review = (end < self.entries.slots.end()).then_some(Review { since: now, next: end });
    }

    /// Removes an entry, or one of its endpoints, if the configuration no longer accepts it.
    pub(super) fn review_entry(&mut self, now: Instant, slot: SlotIndex) {
        if self.is_banned(now, slot) {
            self.record_ban(now, slot);
            self.remove(now, slot, UnlistReason::Banned);
            return;
        }
        for family in Family::ALL {
            let endpoint = self.entries.slots.cold(slot).endpoints[family];
            if endpoint.is_some_and(|endpoint| self.is_private_refused(&endpoint)) {
                self.drop_endpoint(now, slot, family);
            }
        }
        self.release_displaced(now, slot);
        if self.entries.slots.hot(slot).states == PerFamily::<EndpointState>::default() {
            self.remove(now, slot, UnlistReason::Banned);
            return;
        }
        self.update_list(now, slot, None, UnlistReason::Banned);
        // The lease may be shorter than before.
        self.entries.wheel.schedule(slot, self.entries.wheel.deadline(now, self.config.lease));
    }

    /// Lets the owner of a server that is now banned find out why it is not listed: until it registers again, its last outcome
    /// would be that it is. In a cluster, the node that it registers with does that.
    fn record_ban(&mut self, now: Instant, slot: SlotIndex) {
        let cold = self.entries.slots.cold(slot);
        let bans = Family::ALL.map(|family| {
            let EndpointEntry { internal, .. } = cold.endpoints[family].filter(|_| !cold.replica.is_remote[family])?;
            Some((internal, self.ban_reason(now, &cold.ban_candidate(family)?)))
        });
        for (addr, reason) in bans.into_iter().flatten() {
            let outcome = RegistrationOutcome::Banned;
            self.outcomes.record_for_owner(now, addr.ip, outcome, addr.port.get(), reason);
        }
    }

    fn is_banned(&self, now: Instant, slot: SlotIndex) -> bool {
        let cold = self.entries.slots.cold(slot);
        let mut candidates = Family::ALL.into_iter().filter_map(|family| cold.ban_candidate(family));
        candidates.any(|candidate| self.ban_for(now, &candidate).is_some())
    }
}
