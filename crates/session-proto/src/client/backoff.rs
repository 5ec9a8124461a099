//! When a client that lost its session, or was refused for now, logs in again (W50).

use std::time::Duration;

/// Delay before the first login after a session. It doubles with every further attempt, up to the maximum.
const MIN_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(3);

/// A session that lasted this long is no sign of trouble: the next delay is the shortest again.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The delays between the logins of a client that reconnects.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// A session has ended after this time.
    pub fn on_session_end(&mut self, lasted: Duration) {
        if lasted >= STABLE_AFTER {
            self.attempts = 0;
        }
    }

    /// The delay before the next login. A random half of it keeps clients that lost their sessions at the same time from
    /// coming back at the same time.
    pub fn next_delay(&mut self, random: u64) -> Duration {
        let delay = MIN_DELAY.saturating_mul(1 << self.attempts.min(8)).min(MAX_DELAY);
        self.attempts += 1;
        delay / 2 + delay.mul_f64(random as f64 / u64::MAX as f64 / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w50_delays_double_up_to_3_s_and_are_jittered() {
        let mut backoff = Backoff::default();
        let delays: Vec<_> = (0..6).map(|_| backoff.next_delay(u64::MAX).as_millis()).collect();
        assert_eq!(delays, [250, 500, 1_000, 2_000, 3_000, 3_000]);
        assert_eq!(backoff.next_delay(0), MAX_DELAY / 2);
        backoff.on_session_end(Duration::from_secs(9));
        assert_eq!(backoff.next_delay(0), MAX_DELAY / 2);
        backoff.on_session_end(Duration::from_secs(10));
        assert_eq!(backoff.next_delay(0), MIN_DELAY / 2);
    }
}
