//! The clock.

use std::time::Instant;

/// The time. Everything that asks for it asks here: state machines are told.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
