//! Settings of a prober.

use std::{ops::RangeInclusive, time::Duration};

/// Settings of a [`Prober`](crate::Prober).
#[derive(Clone, Debug, PartialEq)]
pub struct ProberConfig {
    /// Maximum number of datagrams sent per second, evenly spaced. From 1 to 10,000,000; default 2,000, which home routers
    /// can forward, and which covers a lobby of a thousand servers in half a second.
    pub packets_per_second: u32,
    /// Maximum number of probes in flight, including results that have not been taken. From 1 to 1,048,576; default 16,384.
    pub max_in_flight: usize,
    /// Maximum number of queued probes. From 1 to 16,777,216; default 1,000,000.
    pub max_targets: usize,
    /// Time from the first query until a probe ends. From 1 ms to an hour; default 4 s.
    pub deadline: Duration,
    /// Maximum number of retries for a server that has not answered completely. From 0 to 15; default 15: with a loss of
    /// 30 % in each direction, one server in 50,000 is then missed; with 10 %, none.
    pub retries: u8,
    /// Wait before the first retry. From 1 ms to an hour; default 200 ms, a round-trip time that few servers exceed.
    pub retry_after: Duration,
    /// Factor by which each wait is longer than the previous one. From 1 to 10; default 1.02, so that the last retry still
    /// has half a second to be answered.
    pub backoff: f64,
}

/// A field of a [`ProberConfig`] that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProberConfigError {
    /// [`ProberConfig::packets_per_second`] is out of range.
    #[error("{0} packets per second: use 1 to 10,000,000")]
    PacketsPerSecond(u32),
    /// [`ProberConfig::max_in_flight`] is out of range.
    #[error("{0} probes in flight: use 1 to 1,048,576")]
    MaxInFlight(usize),
    /// [`ProberConfig::max_targets`] is out of range.
    #[error("{0} queued probes: use 1 to 16,777,216")]
    MaxTargets(usize),
    /// [`ProberConfig::deadline`] is out of range.
    #[error("a deadline of {0:?}: use 1 ms to an hour")]
    Deadline(Duration),
    /// [`ProberConfig::retries`] is out of range.
    #[error("{0} retries: use 0 to 15")]
    Retries(u8),
    /// [`ProberConfig::retry_after`] is out of range.
    #[error("a retry after {0:?}: use 1 ms to an hour")]
    RetryAfter(Duration),
    /// [`ProberConfig::backoff`] is out of range.
    #[error("a backoff factor of {0}: use 1 to 10")]
    Backoff(f64),
}

/// Maximum number of attempts: the first query and its retries, each with an entry in an array.
pub(super) const MAX_ATTEMPTS: usize = 16;

const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

impl ProberConfig {
    /// Checks that every field is in range.
    ///
    /// # Errors
    /// Names the first field that is not.
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

    /// Waits between attempts, one per retry. A wait beyond the deadline never elapses.
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
    fn default_retries_fit_into_the_deadline() {
        let config = ProberConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let last = config.waits().sum::<Duration>();
        assert!(last + Duration::from_millis(500) < config.deadline, "the last retry has time to be answered");
    }

    #[test]
    fn validation_errors_name_the_field_and_its_range() {
        let error = |change: fn(&mut ProberConfig)| {
            let mut config = ProberConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(error(|config| config.packets_per_second = 0), "0 packets per second: use 1 to 10,000,000");
        assert_eq!(error(|config| config.retries = 16), "16 retries: use 0 to 15");
        assert_eq!(error(|config| config.deadline = Duration::ZERO), "a deadline of 0ns: use 1 ms to an hour");
        assert_eq!(error(|config| config.backoff = f64::NAN), "a backoff factor of NaN: use 1 to 10");
        assert!(error(|config| config.max_in_flight = 0).starts_with("0 probes in flight"));
        assert!(error(|config| config.max_targets = 0).starts_with("0 queued probes"));
        assert!(error(|config| config.retry_after = Duration::MAX).starts_with("a retry after"));
    }
}
