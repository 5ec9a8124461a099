//! Saying something once in a while that is so many times a second.

use std::time::{Duration, Instant};

/// How often the same trouble is told.
const EVERY: Duration = Duration::from_secs(60);

/// Whether it is time to tell of something again: at once, and then once a minute.
#[derive(Debug, Default)]
pub struct Seldom {
    told: Option<Instant>,
    times: u64,
}

impl Seldom {
    /// It has happened. If it is to be told now: how often it has happened since it was last told.
    pub fn happens(&mut self, now: Instant) -> Option<u64> {
        self.times += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < EVERY) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let (mut seldom, now) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.happens(now), Some(1));
        assert_eq!([1, 2, 59].map(|second| seldom.happens(now + Duration::from_secs(second))), [None; 3]);
        assert_eq!(seldom.happens(now + EVERY), Some(4));
    }
}
