//! Log messages about refused datagrams: enough to find the cause, however many are refused.

use crate::MaskedAddr;
use rallypoint_lobby_proto::{LatestRefusal, RegistrationOutcome};
use std::time::{Duration, Instant};

/// Minimum interval between two messages about refusals with the same code, at level debug.
const INTERVAL: Duration = Duration::from_secs(10);

/// Interval between two summaries, at level info.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// Number of reason codes.
const CODES: usize = RegistrationOutcome::CODES.len();

/// Logs refusals, and sums them up.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    /// By code: number of refusals that were logged, when, and when the next message is due if there are more.
    logged: [u64; CODES],
    logged_at: [Option<Instant>; CODES],
    due: [Option<Instant>; CODES],
    /// By code: number of refusals that were part of a summary; and when the next summary is due.
    summed: [u64; CODES],
    summary_due: Option<Instant>,
}

impl RefusalLog {
    /// Writes the messages that are due, given the latest refusal of each code.
    pub fn update<'a>(&mut self, now: Instant, latest: impl Iterator<Item = &'a LatestRefusal> + Clone) {
        for refused in latest.clone() {
            let code = refused.outcome.index();
            if refused.times > self.logged[code] {
                let due = self.logged_at[code].map_or(now, |at| at + INTERVAL);
                self.due[code] = Some(due);
                if due <= now {
                    log_refusal(refused, refused.times - self.logged[code]);
                    self.logged[code] = refused.times;
                    self.logged_at[code] = Some(now);
                    self.due[code] = None;
                }
            }
            if refused.times > self.summed[code] && self.summary_due.is_none() {
                self.summary_due = Some(now + SUMMARY_INTERVAL);
            }
        }
        if self.summary_due.is_some_and(|due| due <= now) {
            self.summary_due = None;
            if let Some(summary) = self.sum_up(latest) {
                tracing::info!("{summary}");
            }
        }
    }

    /// When [`update`](Self::update) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.iter().copied().chain([self.summary_due]).flatten().min()
    }

    fn sum_up<'a>(&mut self, latest: impl Iterator<Item = &'a LatestRefusal>) -> Option<String> {
        let mut counts = Vec::new();
        for refused in latest {
            let summed = &mut self.summed[refused.outcome.index()];
            let since = refused.times - std::mem::replace(summed, refused.times);
            counts.extend((since > 0).then_some((since, refused.outcome.code())));
        }
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let total: u64 = counts.iter().map(|(count, _)| count).sum();
        let counts: Vec<_> = counts.iter().map(|(count, code)| format!("{code} {count}")).collect();
        (total > 0).then(|| format!("refused {total} datagrams in the last minute: {}", counts.join(", ")))
    }
}

fn log_refusal(refused: &LatestRefusal, times: u64) {
    tracing::debug!(
        code = refused.outcome.code(),
        address = %MaskedAddr(refused.source),
        port = refused.port,
        times,
        reason = %refused,
        "refused"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(outcome: RegistrationOutcome, times: u64) -> LatestRefusal {
        LatestRefusal { source: [203, 0, 113, 9].into(), port: None, outcome, reason: None, times }
    }

    #[test]
    fn the_first_is_logged_at_once_and_the_others_every_10_s() {
        let mut log = RefusalLog::default();
        let now = Instant::now();
        assert_eq!(log.poll_timeout(), None);
        log.update(now, [refused(RegistrationOutcome::Banned, 1)].iter());
        assert_eq!(log.logged[RegistrationOutcome::Banned.index()], 1);
        assert_eq!(log.poll_timeout(), Some(now + SUMMARY_INTERVAL));
        for times in 2..1_000 {
            log.update(now, [refused(RegistrationOutcome::Banned, times)].iter());
        }
        assert_eq!(log.logged[RegistrationOutcome::Banned.index()], 1);
        assert_eq!(log.poll_timeout(), Some(now + INTERVAL));
        log.update(now + INTERVAL, [refused(RegistrationOutcome::Banned, 999)].iter());
        assert_eq!(log.logged[RegistrationOutcome::Banned.index()], 999);
    }

    #[test]
    fn a_summary_is_logged_only_if_something_was_refused() {
        let mut log = RefusalLog::default();
        let now = Instant::now();
        let latest = [refused(RegistrationOutcome::TooLarge, 4), refused(RegistrationOutcome::Banned, 1_200)];
        assert_eq!(
            log.sum_up(latest.iter()).unwrap(),
            "refused 1204 datagrams in the last minute: banned 1200, too_large 4"
        );
        assert_eq!(log.sum_up(latest.iter()), None);
        log.update(now, latest.iter());
        assert_eq!(log.summary_due, None);
    }
}
