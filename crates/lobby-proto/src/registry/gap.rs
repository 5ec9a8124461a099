//! Times in which the program did not run: it was stopped, or the machine was overloaded.
//!
//! Meanwhile the receive buffer overflows, and the refreshes that it had no room for are lost. All servers would then expire at
//! once, although they are there. So they get the same grace as after a restart.

use super::{Registry, save::MIN_LEASE};
use crate::{
    entry::{EndpointState, Family},
    index::SlotIndex,
    wheel::Tick,
};
use std::time::{Duration, Instant};

/// Time after which datagrams that get lost all the time no longer extend leases (W86): the list would contain ever more servers
/// that are gone.
const MAX_OVERLOAD: Duration = Duration::from_secs(600);

/// How late a timeout has to be to count as a gap.
const MIN_GAP: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct GapDetector {
    /// When time was last handled.
    last: Instant,
    /// No lease ends before this tick.
    grace_until: Tick,
    /// When datagrams began to get lost, and when they did so last.
    overload: Option<(Instant, Instant)>,
    /// Number of gaps so far.
    pub count: u64,
}

impl GapDetector {
    pub fn new(now: Instant) -> Self {
        Self { last: now, grace_until: Tick::default(), overload: None, count: 0 }
    }

    /// Records that time is handled at `now`, without a gap before.
    pub fn touch(&mut self, now: Instant) {
        self.last = now;
    }
}

impl Registry {
    /// Begins a grace period if the registry was called later than its timeout requires.
    pub(super) fn detect_gap(&mut self, now: Instant) {
        let due = self.entries.wheel.next().map(|due| due.max(self.entries.gaps.last));
        self.entries.gaps.touch(now);
        if due.is_some_and(|due| now.saturating_duration_since(due) >= MIN_GAP) {
            self.entries.gaps.grace_until = self.entries.wheel.deadline(now, MIN_LEASE);
            self.checks.handle_gap(now, &self.entries.wheel, &self.config.checks);
            self.entries.gaps.count += 1;
        }
    }

    /// Handles the owner's report that the receive buffer overflowed, because more datagrams arrive than can be handled: refreshes
    /// are lost with the others. Leases that would end are extended until 35 seconds after the last report, but not if that goes
    /// on for more than ten minutes (W86).
    pub fn handle_lost_datagrams(&mut self, now: Instant) {
        let current =
            self.entries.gaps.overload.filter(|(_, last)| now.saturating_duration_since(*last) < 2 * MIN_LEASE);
        let began = current.map_or(now, |(began, _)| began);
        self.entries.gaps.overload = Some((began, now));
        if now.saturating_duration_since(began) < MAX_OVERLOAD {
            self.entries.gaps.grace_until = self.entries.wheel.deadline(now, MIN_LEASE);
        }
    }

    /// Extends the leases of an entry that end in the time of grace.
    pub(super) fn extend_by_grace(&mut self, slot: SlotIndex, reached: Tick) {
        let grace_until = self.entries.gaps.grace_until;
        if reached >= grace_until {
            return;
        }
        let hot = self.entries.slots.hot_mut(slot);
        for family in Family::ALL {
            if hot.states[family] != EndpointState::Absent {
                hot.deadlines[family] = hot.deadlines[family].max(grace_until);
            }
        }
    }
}
