//! Outcomes that are kept: by source address for the owners of servers, and by reason for the log.

use super::Registry;
use crate::{
    LatestRefusal, RecentOutcome, RegistrationOutcome, bans::Candidate, hash::KeyedHash,
    latest_refusals::LatestRefusals, recent_outcomes::RecentOutcomes,
};
use rallypoint_wire::lobby::{Datagram, Registration};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::Instant,
};

#[derive(Debug)]
pub(super) struct OutcomeLog {
    /// Datagrams by outcome, in the order of [`RegistrationOutcome::CODES`].
    pub counts: [u64; RegistrationOutcome::CODES.len()],
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

impl Registry {
    /// Records the outcome of a datagram, and of the registration in it, unless it is a refresh.
    pub(super) fn record_outcome(
        &mut self,
        now: Instant,
        source: IpAddr,
        outcome: RegistrationOutcome,
        new: Option<&Registration<'_>>,
    ) {
        if outcome == RegistrationOutcome::Refreshed {
            return;
        }
        let port = new.map(|new| new.port().get());
        let candidate = || Candidate {
            ip: Some(source),
            name: new.map(Registration::name),
            id: new.map(|new| self.public_id(new.server_id())),
            endpoint: new.map(|new| (self.endpoint(source, new.port()).external.into(), new.transport())),
        };
        let is_banned = outcome == RegistrationOutcome::Banned;
        let reason = is_banned.then(|| self.ban_reason(now, &candidate())).flatten();
        self.outcomes.record(now, source, outcome, port, reason);
    }

    /// Records that a datagram was refused before it was parsed. Its owner may have several servers at one address, so the port
    /// counts.
    pub(super) fn record_refusal(&mut self, now: Instant, source: IpAddr, outcome: RegistrationOutcome, bytes: &[u8]) {
        let candidate = Candidate::at(source);
        let is_banned = outcome == RegistrationOutcome::Banned;
        let reason = is_banned.then(|| self.ban_reason(now, &candidate)).flatten();
        let port = Datagram::peek_port(bytes).map(NonZeroU16::get);
        self.outcomes.record_unparsed(now, source, outcome, port, reason);
    }

    /// Counts the outcome of a datagram that a door has handled itself.
    pub fn count_outcome(&mut self, outcome: RegistrationOutcome) {
        self.outcomes.counts[outcome.index()] += 1;
    }

    /// Counts the outcome of a datagram that a door has handled itself, and records it for the owner of the server at its source.
    pub fn record_door_outcome(&mut self, now: Instant, from: SocketAddr, outcome: RegistrationOutcome) {
        self.count_outcome(outcome);
        let source = from.ip().to_canonical();
        let is_malformed = matches!(outcome, RegistrationOutcome::Malformed(_));
        let candidate = Candidate { ip: Some(source), ..Candidate::default() };
        let is_banned = outcome == RegistrationOutcome::Banned;
        let reason = is_banned.then(|| self.ban_reason(now, &candidate)).flatten();
        self.outcomes.record(now, source, outcome, (!is_malformed).then_some(from.port()), reason);
    }

    /// Marks those of an address's [`recent_outcomes`](Self::recent_outcomes) that are bans which may have been lifted: bans
    /// were changed since, and the address itself is not banned any more. A ban of its name or ID that is still in force shows
    /// again with the next registration.
    pub fn mark_former_bans(&self, now: Instant, ip: IpAddr, outcomes: &mut [RecentOutcome]) {
        let Some(changed) =
            self.admission.bans_changed_at.filter(|_| self.ban_for(now, &Candidate::at(ip.to_canonical())).is_none())
        else {
            return;
        };
        for past in outcomes {
            past.is_former_ban = past.outcome == RegistrationOutcome::Banned && past.at < changed;
        }
    }
}
