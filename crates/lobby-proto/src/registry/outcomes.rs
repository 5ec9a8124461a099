//! Outcomes that are kept: by source address for the owners of servers, and by reason for the log.

use crate::{
    LatestRefusal, RecentOutcome, RegistrationOutcome, hash::KeyedHash, latest_refusals::LatestRefusals,
    recent_outcomes::RecentOutcomes,
};
use std::{net::IpAddr, sync::Arc, time::Instant};

#[derive(Debug)]
pub(super) struct OutcomeLog {
    /// Datagrams by outcome, in the order of [`RegistrationOutcome::CODES`].
    counts: [u64; RegistrationOutcome::CODES.len()],
    registrations: RecentOutcomes,
    /// Outcomes of datagrams that could not be parsed, kept apart so that a flood of them does not displace the others.
    unparsed: RecentOutcomes,
    refusals: LatestRefusals,
}

impl OutcomeLog {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            counts: [0; RegistrationOutcome::CODES.len()],
            registrations: RecentOutcomes::new(keyed),
            unparsed: RecentOutcomes::new(keyed),
            refusals: LatestRefusals::default(),
        }
    }

    /// Counts the outcome of a datagram.
    #[inline]
    pub fn count(&mut self, outcome: RegistrationOutcome) {
        self.counts[outcome.index()] += 1;
    }

    /// Datagrams by outcome, in the order of [`RegistrationOutcome::CODES`].
    pub fn counts(&self) -> [u64; RegistrationOutcome::CODES.len()] {
        self.counts
    }

    /// The outcomes of an address, oldest first.
    pub fn recent(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        let mut recent = [self.registrations.of(ip), self.unparsed.of(ip)].concat();
        recent.sort_by_key(|outcome| outcome.at);
        recent
    }

    pub fn latest_refusals(&self) -> impl Iterator<Item = &LatestRefusal> + Clone {
        self.refusals.iter()
    }

    /// Records the outcome of a datagram for the owner of its source address and for the log.
    pub fn record(
        &mut self,
        now: Instant,
        source: IpAddr,
        outcome: RegistrationOutcome,
        port: Option<u16>,
        reason: Option<Arc<str>>,
    ) {
        let recent = if port.is_some() { &mut self.registrations } else { &mut self.unparsed };
        recent.record(now, source, outcome, port, reason.clone());
        self.refusals.record(source, outcome, port, reason);
    }

    /// Records the refusal of a datagram that was not parsed, for the owner of its source address and for the log.
    pub fn record_unparsed(
        &mut self,
        now: Instant,
        source: IpAddr,
        outcome: RegistrationOutcome,
        port: Option<u16>,
        reason: Option<Arc<str>>,
    ) {
        self.unparsed.record(now, source, outcome, port, reason.clone());
        self.refusals.record(source, outcome, None, reason);
    }

    /// Records an outcome that is not one of a datagram, for the owner of the address only.
    pub fn record_for_owner(
        &mut self,
        now: Instant,
        source: IpAddr,
        outcome: RegistrationOutcome,
        port: u16,
        reason: Option<Arc<str>>,
    ) {
        self.registrations.record(now, source, outcome, Some(port), reason);
    }
}
