//! The clock.

use std::time::Instant;

/// The current time. State machines never read it: their callers hand it to them.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
