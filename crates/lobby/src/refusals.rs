//! What was refused, for the log: how often, and the latest of each kind.

use crate::Outcome;
use std::net::IpAddr;

/// Something that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whom.
    pub source: IpAddr,
    /// The port that was to be registered, if the datagram could be read that far.
    pub port: Option<u16>,
    /// Why.
    pub outcome: Outcome,
    /// How often something was refused for a reason of this code, until now.
    pub times: u64,
}

/// The latest refusals, by code.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Option<Refused>; Outcome::CODES.len()]);

impl Refusals {
    pub fn note(&mut self, source: IpAddr, outcome: Outcome, port: Option<u16>) {
        if outcome.is_refusal() {
            let latest = &mut self.0[outcome.index()];
            let times = latest.map_or(1, |latest| latest.times + 1);
            *latest = Some(Refused { source, port, outcome, times });
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Refused> + Clone {
        self.0.iter().flatten()
    }
}
