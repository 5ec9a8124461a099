//! Counts how often each login was repeated (W65).

use super::half_open::LoginId;
use foldhash::quality::FixedState;
use std::{hash::BuildHasher, time::Instant};

/// Time within which a repeated login counts as one, in milliseconds: a client gives up sooner.
const ATTEMPT_LIFETIME: u32 = 10_000;

/// Smallest intervals after which the next attempts count, in milliseconds; the last one for all further ones. A client repeats
/// its login after 100 ms, then after 1.5 times as long each time, up to 1 s (S12), and the network may shorten that a little.
const MIN_INTERVALS: [u32; 7] = [80, 120, 180, 270, 405, 605, 800];

/// Size of the table of attempts: 512 kB, allocated when it is first needed. A flood of 20,000 logins per second fills it in
/// 1.6 s; repeated ones outlive single ones.
const SETS: usize = 4_096;
const SET_SIZE: usize = 8;

/// How often each login was seen lately, in fixed memory. A login belongs to one set of eight entries, in which it replaces
/// the one that was seen least often.
pub(super) struct AttemptTable {
    hasher: FixedState,
    start: Option<Instant>,
    entries: Vec<Attempt>,
}

#[derive(Clone, Copy, Default)]
struct Attempt {
    hash: u64,
    /// Time of the last attempt that counted, in milliseconds since the first of all.
    at: u32,
    /// Number of attempts; 0 in an empty entry.
    count: u32,
}

impl AttemptTable {
    pub fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), start: None, entries: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts an attempt, unless it follows the last one sooner than that of an honest client. Returns the number of attempts.
    pub fn record(&mut self, now: Instant, id: &LoginId) -> u32 {
        if self.entries.is_empty() {
            self.entries = vec![Attempt::default(); SETS * SET_SIZE];
        }
        let start = *self.start.get_or_insert(now);
        // Wraps after seven weeks: an attempt may then be forgotten.
        let at = now.saturating_duration_since(start).as_millis() as u32;
        let hash = self.hasher.hash_one(id);
        let set = hash as usize % SETS * SET_SIZE;
        // In range: there are `SETS` sets.
        let set = &mut self.entries[set..set + SET_SIZE];
        let is_live = |attempt: &Attempt| attempt.count > 0 && at.wrapping_sub(attempt.at) < ATTEMPT_LIFETIME;
        if let Some(known) = set.iter_mut().find(|attempt| attempt.hash == hash && is_live(attempt)) {
            let interval = MIN_INTERVALS[(known.count as usize - 1).min(MIN_INTERVALS.len() - 1)];
            if at.wrapping_sub(known.at) >= interval {
                known.at = at;
                known.count = known.count.saturating_add(1);
            }
            return known.count;
        }
        let value = |attempt: &Attempt| if is_live(attempt) { (attempt.count, attempt.at) } else { (0, 0) };
        if let Some(least) = set.iter_mut().min_by_key(|attempt| value(attempt)) {
            *least = Attempt { hash, at, count: 1 };
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn w65_repetitions_count_at_the_intervals_of_an_honest_client() {
        let now = Instant::now();
        let id = (([192, 0, 2, 1], 1).into(), [1; 32]);
        let attempts_after = |times: &[u64]| {
            let mut table = AttemptTable::new(1);
            let recorded = times.iter().map(|ms| table.record(now + Duration::from_millis(*ms), &id));
            recorded.last().unwrap()
        };
        assert_eq!(attempts_after(&[0, 100, 250, 475, 813, 1_319, 2_078, 3_078, 4_078]), 9);
        // The network delays some of them by up to 20 ms more than others.
        assert_eq!(attempts_after(&[20, 100, 270, 475, 833, 1_319, 2_098]), 7);
        assert_eq!(attempts_after(&[0; 8]), 1);
        assert_eq!(attempts_after(&[0, 100, 200, 300, 400, 500, 600, 700]), 4);
    }
}
