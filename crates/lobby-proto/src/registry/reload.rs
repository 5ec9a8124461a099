//! Another configuration while the registry runs.

use super::Registry;
use crate::{
    Config, ConfigError, UnlistReason,
    entry::{EndpointEntry, State, V4, V6},
};
use rallypoint_limit::is_public;
use std::time::Instant;

/// How many entries are held against the new configuration in one go, so that datagrams never wait long.
const PER_TURN: u32 = 1_024;

impl Registry {
    /// Changes the configuration without forgetting anything. Servers that are no longer welcome go at once; where there
    /// are many thousands, the next [`handle_timeout`](Self::handle_timeout)s go on with it.
    pub fn set_config(&mut self, now: Instant, config: Config) -> Result<(), ConfigError> {
        config.validate()?;
        self.limiter.set_config(&config.limits);
        self.checks.set_config(&config.checks);
        self.config = config;
        self.begin_review(now);
        Ok(())
    }

    /// The rules have changed: holds all entries against the new ones.
    pub(super) fn begin_review(&mut self, now: Instant) {
        // No fingerprint fits any more: the next registration of each server is looked at under the new rules.
        self.reloads += 1;
        self.print = self.keyed.fingerprints(self.reloads);
        self.to_review = Some((now, 0));
        self.review(now);
    }

    /// Holds the next entries against the configuration.
    pub(super) fn review(&mut self, now: Instant) {
        let Some((_, first)) = self.to_review else { return };
        let end = first.saturating_add(PER_TURN).min(self.slots.capacity());
        for slot in first..end {
            if self.slots.get(slot).is_some() {
                self.review_entry(now, slot);
            }
        }
        self.to_review = (end < self.slots.capacity()).then_some((now, end));
    }

    pub(super) fn review_entry(&mut self, now: Instant, slot: u32) {
        if self.is_banned(now, slot) {
            self.remove(now, slot, UnlistReason::Banned);
            return;
        }
        for family in [V4, V6] {
            let outside = self.slots.cold(slot).endpoints[family].map(|endpoint| endpoint.outside.ip);
            if !self.config.allow_private && outside.is_some_and(|ip| !is_public(ip)) {
                self.drop_endpoint(slot, family);
            }
        }
        if self.slots.hot(slot).states == [State::None; 2] {
            self.remove(now, slot, UnlistReason::Banned);
            return;
        }
        self.relist(now, slot, None, UnlistReason::Banned);
        // Under a shorter lease it has to be looked at earlier.
        self.wheel.schedule(slot, self.wheel.deadline(now, self.config.lease));
    }

    fn is_banned(&self, now: Instant, slot: u32) -> bool {
        let cold = self.slots.cold(slot);
        let mut endpoints = cold.endpoints.iter().flatten();
        let name = || cold.listing.block().table.get(b"name").unwrap_or_default();
        let is_unwelcome = |endpoint: &EndpointEntry| {
            self.is_address_banned(now, endpoint.inside.ip)
                || self.is_place_banned(now, (endpoint.outside, cold.transport))
        };
        endpoints.any(is_unwelcome)
            || self.is_name_banned(now, name())
            || self.is_server_banned(now, cold.listing.public_id())
    }
}
