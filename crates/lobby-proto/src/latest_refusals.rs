//! What was refused, for the log: how often, and the latest of each kind.

use crate::{RegistrationOutcome, recent_outcomes::tell};
use std::{fmt, net::IpAddr, sync::Arc};

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestRefusal {
    /// Whom.
    pub source: IpAddr,
    /// The port that was to be registered, if the datagram could be read that far.
    pub port: Option<u16>,
    /// Why.
    pub outcome: RegistrationOutcome,
    /// What the operator has said about it: the reason of a ban.
    pub reason: Option<Arc<str>>,
    /// How often something was refused for a reason of this code, until now.
    pub times: u64,
}

/// In plain words, as [`RegistrationOutcome`] says it, and with the operator's reason.
impl fmt::Display for LatestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tell(f, self.outcome, self.reason.as_deref())
    }
}

/// The latest refusals, by code.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Option<LatestRefusal>; RegistrationOutcome::CODES.len()]);

impl Refusals {
    pub fn note(&mut self, source: IpAddr, outcome: RegistrationOutcome, port: Option<u16>, reason: Option<Arc<str>>) {
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
