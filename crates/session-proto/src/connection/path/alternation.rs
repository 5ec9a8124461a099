//! A peer whose datagrams come from two addresses in turn (W53).

use super::AddressState;
use crate::connection::Connection;
use std::time::{Duration, Instant};

/// A peer that returns to an address this soon after leaving it alternates between addresses (W53).
const ALTERNATION_THRESHOLD: Duration = Duration::from_secs(4);

/// Time for which a peer that alternated between addresses is expected to do so again.
const ALTERNATION_MEMORY: Duration = Duration::from_secs(10);

/// Smallest time without data from its address after which the session of a peer that alternates moves on. It is twice the time
/// that the peer needed to return, if that is longer.
const MIN_STAY_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether the peer alternates between addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alternation {
    /// It does, and probably will until this time.
    until: Option<Instant>,
    /// A peer that alternates is sent to the same address as long as data came from there within this time.
    stay_timeout: Duration,
}

impl Default for Alternation {
    fn default() -> Self {
        Self { until: None, stay_timeout: MIN_STAY_TIMEOUT }
    }
}

impl Alternation {
    /// The peer returns to an address that it left at this time. Returns whether it alternates.
    pub fn on_return(&mut self, now: Instant, left_at: Instant) -> bool {
        let away = now.saturating_duration_since(left_at);
        if away >= ALTERNATION_THRESHOLD {
            return false;
        }
        self.stay_timeout = (2 * away).max(MIN_STAY_TIMEOUT);
        self.until = Some(now + ALTERNATION_MEMORY);
        true
    }

    /// Whether the peer has alternated lately.
    fn is_expected(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// The newest message came from another address, and the last data from the current one at this time. Returns whether the
    /// session stays where it is.
    fn try_stay(&mut self, now: Instant, last_data: Instant) -> bool {
        let stays = now.saturating_duration_since(last_data) < self.stay_timeout && self.is_expected(now);
        if stays {
            self.until = Some(now + ALTERNATION_MEMORY);
        }
        stays
    }
}

impl Connection {
    /// Whether the session stays where it is although its newest message came from another address: the peer alternates
    /// between the two (W53).
    pub(crate) fn stays_at_peer(&mut self, now: Instant) -> bool {
        let path = &mut self.path;
        matches!(path.address_state, AddressState::Confirmed) && path.alternation.try_stay(now, path.last_data)
    }

    /// Whether the peer has alternated between addresses lately.
    pub(crate) fn alternates(&self, now: Instant) -> bool {
        self.path.alternation.is_expected(now)
    }
}
