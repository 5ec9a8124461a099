//! The latest refusal for each reason, for the log.

use crate::{RegistrationOutcome, recent_outcomes::fmt_with_reason};
use std::{fmt, net::IpAddr, sync::Arc};

/// The latest datagram that was refused for a reason, and the number of those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestRefusal {
    /// The source address.
    pub source: IpAddr,
    /// The port that was to be registered, if the datagram could be parsed.
    pub port: Option<u16>,
    /// Why it was refused.
    pub outcome: RegistrationOutcome,
    /// The operator's reason, if it was a ban that has one.
    pub reason: Option<Arc<str>>,
    /// Number of refusals with the same reason code so far.
    pub times: u64,
}

/// The explanation of the [`RegistrationOutcome`], followed by the operator's reason.
impl fmt::Display for LatestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_with_reason(f, self.outcome, self.reason.as_deref())
    }
}

/// The latest refusals, by reason code.
#[derive(Debug, Default)]
pub(crate) struct LatestRefusals([Option<LatestRefusal>; RegistrationOutcome::CODES.len()]);

impl LatestRefusals {
    /// Records an outcome if it is a refusal.
    pub fn record(
        &mut self,
        source: IpAddr,
        outcome: RegistrationOutcome,
        port: Option<u16>,
        reason: Option<Arc<str>>,
    ) {
        if outcome.is_refusal() {
            let latest = &mut self.0[outcome.index()];
            let times = latest.as_ref().map_or(1, |latest| latest.times + 1);
            *latest = Some(LatestRefusal { source, port, outcome, reason, times });
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &LatestRefusal> + Clone {
        self.0.iter().flatten()
    }
}
