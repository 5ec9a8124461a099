//! The rate of all checks together.

use crate::wheel::{GRAIN, Tick};

/// Number of ticks per second: what a check costs, in units of which every tick adds as many as there are checks per second.
const COST: u64 = 1_000 / GRAIN.as_millis() as u64;

/// A token bucket in ticks, which holds the checks of one tick.
#[derive(Debug, Default)]
pub(super) struct TotalRate {
    units: u64,
    refilled_at: Option<Tick>,
    is_awaited: bool,
}

impl TotalRate {
    /// Whether a check can be made now at this rate per second.
    pub fn is_available(&mut self, now: Tick, per_second: u32) -> bool {
        let rate = u64::from(per_second);
        let most = rate.max(COST);
        let ticks = self.refilled_at.map_or(COST, |at| now.since(at).into());
        if ticks > 0 {
            self.units = self.units.saturating_add(rate.saturating_mul(ticks)).min(most);
            self.refilled_at = Some(now);
        }
        self.is_awaited = self.units < COST;
        !self.is_awaited
    }

    /// Takes the check that [`is_available`](Self::is_available).
    pub fn take(&mut self) {
        self.units = self.units.saturating_sub(COST);
    }

    /// Whether the last check was not available.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}
