//! The age of what is made once for all clients, and when it has to be made again.

use std::time::{Duration, Instant};

/// Making something may take at most 1/20 of the time.
const TIME_SHARE: u32 = 20;

/// When something was made from a snapshot, and what that has cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderAge {
    version: u64,
    at: Instant,
    cost: Duration,
}

impl RenderAge {
    /// Made of the snapshot of this version, from `started` until now.
    pub fn new(version: u64, started: Instant) -> Self {
        Self { version, at: started, cost: started.elapsed() }
    }

    /// Whether it shows the snapshot of this version, or is too young to be made again. `max_age` applies whatever it costs.
    pub fn is_fresh(&self, version: u64, max_age: Duration) -> bool {
        self.version == version || self.elapsed() < (self.cost * TIME_SHARE).min(max_age)
    }

    /// Adds the cost of a later step.
    pub fn with_cost(self, cost: Duration) -> Self {
        Self { cost: self.cost + cost, ..self }
    }

    pub fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}
