//! Time as a number.

use std::time::Instant;

/// Counts nanoseconds from the first time it is asked. An earlier time counts as that first one, and after 292 years time
/// stands still.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock(Option<Instant>);

impl Clock {
    /// Never 0, which is before everything, and always less than 2^63.
    pub fn at(&mut self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(*self.0.get_or_insert(now));
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).saturating_add(1).min(u64::MAX >> 1)
    }
}
