//! Counts how often a node lost contact with the store.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How long an outage counts.
const WINDOW: Duration = Duration::from_secs(600);

/// Maximum number of outages that are counted.
const MAX_OUTAGES: usize = 1_000;

/// The losses of contact in the last ten minutes.
#[derive(Debug, Default)]
pub(super) struct Outages {
    starts: VecDeque<Instant>,
    was_in_contact: bool,
}

impl Outages {
    /// Notes whether there is contact.
    pub fn handle_contact(&mut self, now: Instant, is_in_contact: bool) {
        if self.was_in_contact && !is_in_contact {
            self.starts.push_back(now);
            // Their number is bounded here.
            self.count(now);
        }
        self.was_in_contact = is_in_contact;
    }

    /// The number of losses.
    pub fn count(&mut self, now: Instant) -> u32 {
        let is_over = |start: &Instant| now.saturating_duration_since(*start) >= WINDOW;
        while self.starts.len() > MAX_OUTAGES || self.starts.front().is_some_and(is_over) {
            self.starts.pop_front();
        }
        self.starts.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_contact_count_for_ten_minutes() {
        let start = Instant::now();
        let mut outages = Outages::default();
        let mut handle = |seconds, is_in_contact| {
            let now = start + Duration::from_secs(seconds);
            outages.handle_contact(now, is_in_contact);
            outages.count(now)
        };
        assert_eq!(handle(0, false), 0, "the node has not joined yet");
        assert_eq!(handle(1, true), 0);
        assert_eq!((handle(10, false), handle(11, false), handle(12, true)), (1, 1, 1));
        assert_eq!(handle(300, false), 2);
        assert_eq!(handle(610, false), 1);
        assert_eq!(handle(900, true), 0);
    }
}
