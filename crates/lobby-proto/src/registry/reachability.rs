//! Reachability checks of entries: when they are requested, and what their results change (L12).

use super::{Evidence, Registry};
use crate::{
    CheckKind, CheckResult, CheckTarget, FailedCheckTimes, PublicId, RecentOutcome, RegistrationOutcome, UnlistReason,
    checks::CheckStatus,
    entry::{Addr, EndpointState, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_wire::{lobby::Transport, query::Protocol};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    time::Instant,
};

impl Registry {
    /// Determines whether an endpoint is reachable, by a known result or a new check. A listed endpoint stays listed in the
    /// meantime. Returns `false` if no check can be made now.
    pub(super) fn request_check(&mut self, now: Instant, slot: SlotIndex, family: Family) -> bool {
        let Some(target) = self.entries.check_target(slot, family) else {
            self.entries.set_state(slot, family, EndpointState::Listed);
            return true;
        };
        let waiter = Some(self.entries.key(slot));
        let returns = self.entries.count_return(now, slot, family);
        let status = self.checks.request(now, target, (waiter, returns));
        match status {
            CheckStatus::Known(result) => self.entries.set_result(slot, family, result),
            _ if self.entries.state(slot, family) == EndpointState::Listed => {}
            CheckStatus::Pending => self.entries.set_state(slot, family, EndpointState::Checking),
            CheckStatus::Refused => {
                // Without a fingerprint, the next registration requests a check again.
                self.entries.set_state(slot, family, EndpointState::Checking);
                self.entries.forget_fingerprint(slot, family);
                return false;
            }
        }
        true
    }

    /// Handles a refresh of an endpoint that waits for its check: the check moves up in the queue, or its result is known by
    /// now.
    #[cold]
    pub(super) fn request_check_again(&mut self, now: Instant, slot: SlotIndex, family: Family) -> RegistrationOutcome {
        let was_listed = self.entries.cold(slot).position.is_some();
        let is_accepted = self.request_check(now, slot, family);
        let outcome = match self.entries.state(slot, family) {
            EndpointState::Checking if is_accepted => return RegistrationOutcome::Checking,
            EndpointState::Checking => RegistrationOutcome::CheckBusy,
            EndpointState::Listed if was_listed => RegistrationOutcome::Changed,
            EndpointState::Listed => RegistrationOutcome::Listed,
            EndpointState::Unreachable | EndpointState::Absent => {
                self.checks.failure(self.entries.check_target(slot, family))
            }
        };
        self.update_list(now, slot, None, UnlistReason::Unreachable);
        if let Some(endpoint) = self.entries.cold(slot).endpoints[family] {
            let addr = endpoint.internal;
            self.outcomes.record_for_owner(now, addr.ip, outcome, addr.port.get(), None);
        }
        outcome
    }

    /// Handles the result of a check that was requested by [`Event::Check`](super::Event::Check).
    pub fn handle_check(&mut self, now: Instant, target: CheckTarget, result: CheckResult) {
        let (waiters, result) = self.checks.handle_result(now, target, result);
        for waiter in waiters {
            for family in Family::ALL {
                if self.entries.contains(waiter) && self.entries.check_target(waiter.slot, family) == Some(target) {
                    self.apply_check(now, waiter.slot, family, target, result);
                }
            }
        }
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
        let times = |kind| self.checks.failed_check_times(&CheckTarget { addr, kind });
        let queries = Protocol::ALL.iter().copied().map(CheckKind::Query);
        std::iter::once(CheckKind::Connect).chain(queries).filter_map(times).max_by_key(|times| times.failed_at)
    }

    /// Repeats outdated checks of listed endpoints, which stay listed in the meantime (L12).
    pub(super) fn renew_checks(&mut self, now: Instant, slot: SlotIndex) {
        for family in Family::ALL {
            // The node that hears a server repeats its checks.
            let is_local = self.entries.local_endpoint(slot, family).is_some();
            let Some(target) = self.entries.check_target(slot, family).filter(|_| is_local) else { continue };
            let waiter = Some(self.entries.key(slot));
            if let CheckStatus::Known(_) = self.checks.request(now, target, (waiter, 0))
                && let Some(until) = self.checks.valid_until(&target)
            {
                self.entries.schedule(slot, until);
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
        let before = self.entries.state(slot, family);
        let outcome = if result == CheckResult::Unknown {
            // A listed endpoint stays listed and is checked again soon. Another one is checked with its next registration, whether
            // or not that has changed.
            if before == EndpointState::Listed {
                let retry = self.clock.deadline(now, self.config.checks.retry);
                return self.entries.schedule(slot, retry);
            }
            self.entries.forget_fingerprint(slot, family);
            Some(RegistrationOutcome::CheckBusy)
        } else {
            self.entries.set_result(slot, family, result);
            if let CheckResult::Reachable(_) = result {
                self.prove_by_check(slot, family, target);
            }
            self.update_list(now, slot, None, UnlistReason::Unreachable);
            match self.entries.state(slot, family) {
                EndpointState::Listed => {
                    let until = self.checks.valid_until(&target);
                    until.into_iter().for_each(|until| self.entries.schedule(slot, until));
                    (before != EndpointState::Listed).then_some(RegistrationOutcome::Listed)
                }
                after => (before != after).then(|| self.checks.failure(self.entries.check_target(slot, family))),
            }
        };
        if let (Some(outcome), Some(endpoint)) = (outcome, self.entries.cold(slot).endpoints[family]) {
            let addr = endpoint.internal;
            self.outcomes.record(now, addr.ip, outcome, Some(addr.port.get()), None);
        }
        if result != CheckResult::Unknown {
            self.yield_to_displaced(now, slot, PerFamily::default());
        }
    }

    /// Handles a reply of a registered server to a query that was no check, at the address that the list shows. For a server that
    /// is not checked, by configuration, it proves as much as a check (W45).
    ///
    /// In a cluster, only the node that hears the server decides, because it knows whether the server has displaced another. The
    /// other nodes learn that it is proven from the store (W90).
    pub fn handle_reply(&mut self, now: Instant, id: PublicId, listed: SocketAddr) {
        let Some(port) = NonZeroU16::new(listed.port()) else { return };
        let key = (Addr { ip: listed.ip().to_canonical(), port }, Transport::Udp);
        let Some(slot) = self.entries.at_endpoint(key) else { return };
        let family = Family::of(key.0.ip);
        let cold = self.entries.cold(slot);
        let (Some(method), Some(endpoint)) = (cold.check, cold.endpoints[family]) else { return };
        let is_decided_here = cold.server.public_id == id && !cold.replica.is_remote[family];
        if is_decided_here && self.entries.check_target(slot, family).is_none() {
            let target = method.target(endpoint.internal);
            self.checks.vouch(now, target);
            self.prove_by_check(slot, family, target);
        }
    }

    /// Records that a server has replied to its check, unless the reply may be that of another server: of the one that it has
    /// displaced, or of one that named the same port for queries before.
    fn prove_by_check(&mut self, slot: SlotIndex, family: Family, target: CheckTarget) {
        let cold = self.entries.cold(slot);
        let key = self.entries.key(slot);
        let is_own_port =
            cold.endpoints[family].is_some_and(|endpoint| endpoint.internal.port.get() == target.addr.port());
        let is_own = |registry: &mut Self| {
            is_own_port || registry.checks.claim_target(&target, key, |key| registry.entries.contains(key))
        };
        if cold.displaced.is_none() && is_own(self) {
            self.prove(slot);
        }
    }

    /// Records that a server has replied, so that it does not give way any more.
    pub(super) fn prove(&mut self, slot: SlotIndex) {
        let is_news = self.entries.set_evidence(slot, Evidence::Proven);
        let cold = self.entries.cold(slot);
        // The other nodes of a cluster must know before the server is replaced at one of them.
        if is_news && cold.position.is_some() {
            self.replication.note_change(cold.server.public_id());
        }
    }
}
