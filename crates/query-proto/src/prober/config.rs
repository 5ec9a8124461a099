//! How to ask.

use std::{ops::RangeInclusive, time::Duration};

/// How a [`Prober`](crate::Prober) asks.
#[derive(Clone, Debug, PartialEq)]
pub struct ProberConfig {
    /// How many datagrams are sent in a second, evenly spread. From 1 to 10,000,000; by default 2,000: a home router passes
    /// that on, and a lobby of a thousand servers is asked in half a second.
    pub packets_per_second: u32,
    /// How many servers are asked at the same time, results that were not taken included. From 1 to 1,048,576; by default
    /// 16,384.
    pub max_in_flight: usize,
    /// How many servers may wait for their turn. From 1 to 16,777,216; by default 1,000,000.
    pub max_targets: usize,
    /// How long after it was first asked a server is given up. From 1 ms to an hour; by default 4 s.
    pub deadline: Duration,
    /// How often a server that does not answer (in full) is asked again, at most. From 0 to 15; by default 15: with a loss
    /// of 30 % in each direction one server of 50,000 is then missed, with 10 % none.
    pub retries: u8,
    /// How long to wait before the first retry. From 1 ms to an hour; by default 200 ms: few servers are farther away.
    pub retry_after: Duration,
    /// How much longer each wait is than the one before. From 1 to 10; by default 1.02, so that the last one
    /// still has half a second to be answered.
    pub backoff: f64,
}

/// What is wrong with a [`ProberConfig`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ProberConfigError {
    /// [`ProberConfig::packets_per_second`] is out of its range.
    #[error("{0} packets per second: use 1 to 10,000,000")]
    PacketsPerSecond(u32),
    /// [`ProberConfig::max_in_flight`] is out of its range.
    #[error("{0} servers at the same time: use 1 to 1,048,576")]
    MaxInFlight(usize),
    /// [`ProberConfig::max_targets`] is out of its range.
    #[error("{0} servers waiting: use 1 to 16,777,216")]
    MaxTargets(usize),
    /// [`ProberConfig::deadline`] is out of its range.
    #[error("a deadline of {0:?}: use 1 ms to an hour")]
    Deadline(Duration),
    /// [`ProberConfig::retries`] is out of its range.
    #[error("{0} retries: use 0 to 15")]
    Retries(u8),
    /// [`ProberConfig::retry_after`] is out of its range.
    #[error("a retry after {0:?}: use 1 ms to an hour")]
    RetryAfter(Duration),
    /// [`ProberConfig::backoff`] is out of its range.
    #[error("waiting {0} times as long each time: use 1 to 10")]
    Backoff(f64),
}

/// One question and its repetitions: each has a place in an array.
pub(super) const MAX_ATTEMPTS: usize = 16;

const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

impl ProberConfig {
    /// Whether every field is in its range.
    ///
    /// # Errors
    /// If one is not.
    pub fn validate(&self) -> Result<(), ProberConfigError> {
        let check = |is_good: bool, error| if is_good { Ok(()) } else { Err(error) };
        check(
            (1..=10_000_000).contains(&self.packets_per_second),
            ProberConfigError::PacketsPerSecond(self.packets_per_second),
        )?;
        check((1..=1 << 20).contains(&self.max_in_flight), ProberConfigError::MaxInFlight(self.max_in_flight))?;
        check((1..=1 << 24).contains(&self.max_targets), ProberConfigError::MaxTargets(self.max_targets))?;
        check(TIMES.contains(&self.deadline), ProberConfigError::Deadline(self.deadline))?;
        check(usize::from(self.retries) < MAX_ATTEMPTS, ProberConfigError::Retries(self.retries))?;
        check(TIMES.contains(&self.retry_after), ProberConfigError::RetryAfter(self.retry_after))?;
        check((1.0..=10.0).contains(&self.backoff), ProberConfigError::Backoff(self.backoff))
    }

    /// How long to wait after each question until the next, as many as there are retries. What is longer than the deadline
    /// never comes to pass.
    pub(super) fn waits(&self) -> impl Iterator<Item = Duration> + '_ {
        let longest = self.deadline * 2;
        std::iter::successors(Some(self.retry_after.min(longest)), move |wait| {
            Some(Duration::from_secs_f64((wait.as_secs_f64() * self.backoff).min(longest.as_secs_f64())))
        })
        .take(self.retries.into())
    }
}

impl Default for ProberConfig {
    fn default() -> Self {
        Self {
            packets_per_second: 2_000,
            max_in_flight: 16_384,
            max_targets: 1_000_000,
            deadline: Duration::from_secs(4),
            retries: 15,
            retry_after: Duration::from_millis(200),
            backoff: 1.02,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_fits_its_own_deadline() {
        let config = ProberConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let last = config.waits().sum::<Duration>();
        assert!(last + Duration::from_millis(500) < config.deadline, "the last retry has time to be answered");
    }

    #[test]
    fn mistakes_are_named() {
        let mistake = |change: fn(&mut ProberConfig)| {
            let mut config = ProberConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(mistake(|config| config.packets_per_second = 0), "0 packets per second: use 1 to 10,000,000");
        assert_eq!(mistake(|config| config.retries = 16), "16 retries: use 0 to 15");
        assert_eq!(mistake(|config| config.deadline = Duration::ZERO), "a deadline of 0ns: use 1 ms to an hour");
        assert_eq!(mistake(|config| config.backoff = f64::NAN), "waiting NaN times as long each time: use 1 to 10");
        assert!(mistake(|config| config.max_in_flight = 0).starts_with("0 servers at the same time"));
        assert!(mistake(|config| config.max_targets = 0).starts_with("0 servers waiting"));
        assert!(mistake(|config| config.retry_after = Duration::MAX).starts_with("a retry after"));
    }
}
