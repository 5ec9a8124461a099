//! What the log says about what was refused: enough to see why, however much it is.

use crate::Masked;
use rallypoint_lobby_proto::{LatestRefusal, RegistrationOutcome};
use std::time::{Duration, Instant};

/// How often refusals of one kind are told to whoever looks for a fault.
const EVERY: Duration = Duration::from_secs(10);

/// How often they are told to everybody.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// How many codes there are.
const CODES: usize = RegistrationOutcome::CODES.len();

/// Counts refusals between the lines about them.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    /// By code: how many were told, when, and when the next line is due if there is something to tell.
    told: [u64; CODES],
    told_at: [Option<Instant>; CODES],
    due: [Option<Instant>; CODES],
    /// By code: how many were summed up, and when that is due again.
    summed: [u64; CODES],
    summary_due: Option<Instant>,
}

impl RefusalLog {
    /// Tells what is due. These are the latest refusals of each code.
    pub fn look<'a>(&mut self, now: Instant, latest: impl Iterator<Item = &'a LatestRefusal> + Clone) {
        for refused in latest.clone() {
            let code = refused.outcome.index();
            if refused.times > self.told[code] {
                let due = self.told_at[code].map_or(now, |told| told + EVERY);
                self.due[code] = Some(due);
                if due <= now {
                    tell(refused, refused.times - self.told[code]);
                    (self.told[code], self.told_at[code], self.due[code]) = (refused.times, Some(now), None);
                }
            }
            if refused.times > self.summed[code] && self.summary_due.is_none() {
                self.summary_due = Some(now + SUMMARY_EVERY);
            }
        }
        if self.summary_due.is_some_and(|due| due <= now) {
            self.summary_due = None;
            if let Some(summary) = self.sum_up(latest) {
                tracing::info!("{summary}");
            }
        }
    }

    /// When [`look`](Self::look) has something to do.
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

fn tell(refused: &LatestRefusal, times: u64) {
    tracing::debug!(
        code = refused.outcome.code(),
        address = %Masked(refused.source),
        port = refused.port,
        times,
        why = %refused,
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
    fn the_first_is_told_at_once_and_the_others_every_10_s() {
        let (mut log, now) = (RefusalLog::default(), Instant::now());
        assert_eq!(log.poll_timeout(), None);
        log.look(now, [refused(RegistrationOutcome::Banned, 1)].iter());
        assert_eq!(log.told[RegistrationOutcome::Banned.index()], 1);
        assert_eq!(log.poll_timeout(), Some(now + SUMMARY_EVERY));
        for times in 2..1_000 {
            log.look(now, [refused(RegistrationOutcome::Banned, times)].iter());
        }
        assert_eq!(log.told[RegistrationOutcome::Banned.index()], 1);
        assert_eq!(log.poll_timeout(), Some(now + EVERY));
        log.look(now + EVERY, [refused(RegistrationOutcome::Banned, 999)].iter());
        assert_eq!(log.told[RegistrationOutcome::Banned.index()], 999);
    }

    #[test]
    fn a_minute_is_summed_up_only_if_something_was_refused() {
        let (mut log, now) = (RefusalLog::default(), Instant::now());
        let latest = [refused(RegistrationOutcome::TooLarge, 4), refused(RegistrationOutcome::Banned, 1_200)];
        assert_eq!(
            log.sum_up(latest.iter()).unwrap(),
            "refused 1204 datagrams in the last minute: banned 1200, too_large 4"
        );
        assert_eq!(log.sum_up(latest.iter()), None);
        log.look(now, latest.iter());
        assert_eq!(log.summary_due, None);
    }
}
