//! Reachability checks of entries: when they are requested, and what their results change (L12).

use super::{Registry, Slots};
use crate::{
    CheckKind, CheckResult, CheckTarget, Config, FailedCheckTimes, PublicId, RecentOutcome, RegistrationOutcome,
    UnlistReason,
    checks::CheckStatus,
    entry::{Addr, CheckAttempts, EndpointEntry, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_wire::{lobby::Transport, query::Protocol};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// Minimum interval between registrations that count as a return. A server registers every 30 seconds; one that comes
/// sooner than this is a repetition.
const RETURN_AFTER: Duration = Duration::from_secs(10);

impl Registry {
    /// Determines whether an endpoint is reachable, by a known result or a new check. A listed endpoint stays listed in the
    /// meantime. Returns `false` if no check can be made now.
    pub(super) fn request_check(&mut self, now: Instant, slot: SlotIndex, family: Family) -> bool {
        let Some(target) = self.check_target(slot, family) else {
            self.entries.slots.hot_mut(slot).states[family] = EndpointState::Listed;
            return true;
        };
        let waiter = self.entries.slots.key(slot);
        let returns = self.count_return(now, slot, family);
        let status =
            self.checks.request(now, &self.entries.wheel, &self.config.checks, target, (Some(waiter), returns));
        let hot = self.entries.slots.hot_mut(slot);
        match status {
            CheckStatus::Known(result) => {
                self.set_state(slot, family, result);
                true
            }
            CheckStatus::Pending | CheckStatus::Refused if hot.states[family] == EndpointState::Listed => true,
            CheckStatus::Pending => {
                hot.states[family] = EndpointState::Checking;
                true
            }
            CheckStatus::Refused => {
                // Without a fingerprint, the next registration requests a check again.
                hot.states[family] = EndpointState::Checking;
                hot.fingerprints[family] = 0;
                false
            }
        }
    }

    /// Handles a refresh of an endpoint that waits for its check: the check moves up in the queue, or its result is known by
    /// now.
    #[cold]
    pub(super) fn request_check_again(&mut self, now: Instant, slot: SlotIndex, family: Family) -> RegistrationOutcome {
        let was_listed = self.entries.slots.cold(slot).position.is_some();
        let is_accepted = self.request_check(now, slot, family);
        let outcome = match self.entries.slots.hot(slot).states[family] {
            EndpointState::Checking if is_accepted => return RegistrationOutcome::Checking,
            EndpointState::Checking => RegistrationOutcome::CheckBusy,
            EndpointState::Listed if was_listed => RegistrationOutcome::Changed,
            EndpointState::Listed => RegistrationOutcome::Listed,
            EndpointState::Unreachable | EndpointState::Absent => self.failed_check(slot, family),
        };
        self.update_list(now, slot, None, UnlistReason::Unreachable);
        if let Some(EndpointEntry { internal, .. }) = self.entries.slots.cold(slot).endpoints[family] {
            self.outcomes.record_for_owner(now, internal.ip, outcome, internal.port.get(), None);
        }
        outcome
    }

    /// Number of times an endpoint has returned for its check. Repetitions sooner than [`RETURN_AFTER`] do not count.
    fn count_return(&mut self, now: Instant, slot: SlotIndex, family: Family) -> u8 {
        let now = self.entries.wheel.tick(now);
        let attempts = &mut self.entries.slots.cold_mut(slot).check_attempts[family];
        let attempts = attempts.get_or_insert(CheckAttempts { last: now, returns: 0 });
        if now >= attempts.last.plus(RETURN_AFTER) {
            attempts.last = now;
            attempts.returns = attempts.returns.saturating_add(1);
        }
        attempts.returns
    }

    /// When the check failed because of which a server was refused with this outcome. Further registrations do not cause another
    /// one at once, so it can be older than the outcome. `None` for other outcomes, and for servers that name a port of their own
    /// for queries.
    #[must_use]
    pub fn failed_check_times(&self, ip: IpAddr, refused: &RecentOutcome) -> Option<FailedCheckTimes> {
        let RecentOutcome { outcome: RegistrationOutcome::Unreachable | RegistrationOutcome::PortClosed, .. } = refused
        else {
            return None;
        };
        let addr = SocketAddr::new(ip.to_canonical(), refused.port?);
        let times = |kind| {
            let target = CheckTarget { addr, kind };
            self.checks.failed_check_times(&self.entries.wheel, &self.config.checks, &target)
        };
        let queries = Protocol::ALL.iter().copied().map(CheckKind::Query);
        std::iter::once(CheckKind::Connect).chain(queries).filter_map(times).max_by_key(|times| times.failed_at)
    }

    /// Repeats outdated checks of listed endpoints, which stay listed in the meantime (L12).
    pub(super) fn renew_checks(&mut self, now: Instant, slot: SlotIndex) {
        for family in Family::ALL {
            // The node that hears a server repeats its checks.
            let is_listed = self.entries.slots.hot(slot).states[family] == EndpointState::Listed
                && !self.entries.slots.cold(slot).replica.is_remote[family];
            let Some(target) = self.check_target(slot, family).filter(|_| is_listed) else { continue };
            let waiter = self.entries.slots.key(slot);
            if let CheckStatus::Known(_) =
                self.checks.request(now, &self.entries.wheel, &self.config.checks, target, (Some(waiter), 0))
                && let Some(until) = self.checks.valid_until(&target)
            {
                self.entries.wheel.schedule(slot, until);
            }
        }
    }

    /// Applies the result of a check to an endpoint that waited for it.
    pub(super) fn apply_check(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        family: Family,
        target: CheckTarget,
        result: CheckResult,
    ) {
        if result == CheckResult::Unknown {
            return self.postpone_check(now, slot, family);
        }
        let before = self.entries.slots.hot(slot).states[family];
        self.set_state(slot, family, result);
        if let CheckResult::Reachable(_) = result {
            self.prove_by_check(slot, family, target);
        }
        self.update_list(now, slot, None, UnlistReason::Unreachable);
        let after = self.entries.slots.hot(slot).states[family];
        if let (EndpointState::Listed, Some(until)) = (after, self.checks.valid_until(&target)) {
            self.entries.wheel.schedule(slot, until);
        }
        if before != after {
            let is_listed = after == EndpointState::Listed;
            let outcome = if is_listed { RegistrationOutcome::Listed } else { self.failed_check(slot, family) };
            self.record_check(now, slot, family, outcome);
        }
        self.yield_to_displaced(now, slot, PerFamily::default());
    }

    /// Handles a reply of a registered server to a query that was no check, at the address that the list shows. For a server that
    /// is not checked, by configuration, it proves as much as a check (W45).
    ///
    /// In a cluster, only the node that hears the server decides, because it knows whether the server has displaced another. The
    /// other nodes learn that it is proven from the store (W90).
    pub fn handle_reply(&mut self, now: Instant, id: PublicId, listed: SocketAddr) {
        let Some(port) = NonZeroU16::new(listed.port()) else { return };
        let key = (Addr { ip: listed.ip().to_canonical(), port }, Transport::Udp);
        let Some(slot) = self.entries.slots.at_endpoint(key) else { return };
        let family = Family::of(key.0.ip);
        let cold = self.entries.slots.cold(slot);
        let (Some(method), Some(endpoint)) = (cold.check, cold.endpoints[family]) else { return };
        let is_decided_here = cold.server.public_id == id && !cold.replica.is_remote[family];
        if is_decided_here && self.check_target(slot, family).is_none() {
            let target = method.target(endpoint.internal);
            self.checks.vouch(now, &self.entries.wheel, target);
            self.prove_by_check(slot, family, target);
        }
    }

    /// Records that a server has replied to its check, unless the reply may be that of another server: of the one that it has
    /// displaced, or of one that named the same port for queries before.
    fn prove_by_check(&mut self, slot: SlotIndex, family: Family, target: CheckTarget) {
        let cold = self.entries.slots.cold(slot);
        let key = self.entries.slots.key(slot);
        let is_own_port =
            cold.endpoints[family].is_some_and(|endpoint| endpoint.internal.port.get() == target.addr.port());
        let slots = &self.entries.slots;
        if cold.displaced.is_none()
            && (is_own_port || self.checks.claim_target(&target, key, |key| slots.contains(key)))
        {
            self.prove(slot);
        }
    }

    /// Handles a check that could not be made. A listed endpoint stays listed and is checked again soon; another one is
    /// checked with its next registration, whether or not that has changed.
    fn postpone_check(&mut self, now: Instant, slot: SlotIndex, family: Family) {
        let retry = self.entries.wheel.deadline(now, self.config.checks.retry);
        let hot = self.entries.slots.hot_mut(slot);
        if hot.states[family] == EndpointState::Listed {
            return self.entries.wheel.schedule(slot, retry);
        }
        hot.fingerprints[family] = 0;
        self.record_check(now, slot, family, RegistrationOutcome::CheckBusy);
    }

    /// The outcome of an endpoint whose check failed.
    pub(super) fn failed_check(&self, slot: SlotIndex, family: Family) -> RegistrationOutcome {
        match self.check_target(slot, family) {
            Some(target) if self.checks.was_refused(&target) => RegistrationOutcome::PortClosed,
            _ => RegistrationOutcome::Unreachable,
        }
    }

    fn record_check(&mut self, now: Instant, slot: SlotIndex, family: Family, outcome: RegistrationOutcome) {
        if let Some(EndpointEntry { internal, .. }) = self.entries.slots.cold(slot).endpoints[family] {
            self.outcomes.record(now, internal.ip, outcome, Some(internal.port.get()), None);
        }
    }

    fn set_state(&mut self, slot: SlotIndex, family: Family, result: CheckResult) {
        let state = match result {
            CheckResult::Reachable(latency) => {
                self.entries.slots.cold(slot).server.set_latency(latency);
                EndpointState::Listed
            }
            CheckResult::Unreachable | CheckResult::Refused => EndpointState::Unreachable,
            CheckResult::Unknown => return,
        };
        self.entries.slots.hot_mut(slot).states[family] = state;
    }

    /// The target of the check of an endpoint, if it is to be checked.
    pub(super) fn check_target(&self, slot: SlotIndex, family: Family) -> Option<CheckTarget> {
        check_target(&self.entries.slots, &self.config, slot, family)
    }
}

/// The target of the check of an endpoint, if it is to be checked.
pub(super) fn check_target(slots: &Slots, config: &Config, slot: SlotIndex, family: Family) -> Option<CheckTarget> {
    let cold = slots.get(slot)?;
    let endpoint = cold.endpoints[family]?;
    let method = cold.check?;
    let is_checked = config.checks.enabled && !config.checks.exempt.contains(endpoint.internal.ip);
    is_checked.then(|| method.target(endpoint.internal))
}
