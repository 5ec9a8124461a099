//! Reachability checks: which servers to check, when, and the results (L12).
//!
//! The source of a registration can be forged, so a check is traffic that an attacker can cause. It is bounded: in the number
//! of concurrent checks, per second in total, and per minute for each address and network; a target never has two checks at a
//! time. The order in which waiting targets are checked is decided in [`queue`].

mod queue;
mod request;

pub use request::{CheckKind, CheckRequest, CheckResult, CheckStats, CheckTarget, FailedCheckTimes};

use crate::{
    CheckConfig, Config, RegistrationOutcome,
    hash::{KeyedHash, KeyedMap},
    index::EntryKey,
    wheel::{Clock, GRAIN, Tick},
};
use queue::{CheckQueue, LANES, Lane, Rank, Ticket};
use rallypoint_limit::{Host, Net, Rate, Site, TokenBucket, TokenBuckets};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// The current knowledge about a target.
pub(crate) enum CheckStatus {
    /// The result of a recent check.
    Known(CheckResult),
    /// A check is waiting or in flight.
    Pending,
    /// A check is needed, but a bound was reached.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Checks {
    config: Arc<Config>,
    clock: Clock,
    known: KeyedMap<CheckTarget, KnownResult>,
    /// When results expire, oldest first: those of reachable targets, and the others.
    expiry: [VecDeque<(Tick, CheckTarget)>; 2],
    pending: KeyedMap<CheckTarget, PendingCheck>,
    queue: CheckQueue<CheckTarget>,
    /// When each check in flight is given up, oldest first; some of them have a result by now.
    overdue: VecDeque<(Tick, CheckTarget)>,
    in_flight: usize,
    per_address: TokenBuckets<Host>,
    per_network: TokenBuckets<Net>,
    total: TokenBucket,
    /// Whether a check waits for the total rate.
    is_total_awaited: bool,
    max_known: usize,
    /// Checks that are given up by this tick were in flight while the program was halted: see [`handle_gap`](Self::handle_gap).
    distrusted_until: Tick,
    now: Tick,
    stats: CheckStats,
}

/// A check that has no result yet.
#[derive(Debug)]
struct PendingCheck {
    /// The entries that wait for the result.
    waiters: Vec<EntryKey>,
    /// Whether a server that was refused, and so has no entry, waits for the result: see [`Checks::request`].
    is_for_refused: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting(Ticket),
    /// In flight, and given up at this tick.
    InFlight(Tick),
}

/// A result. It is valid for a while; after that it still influences the order in which targets are checked.
#[derive(Clone, Copy, Debug)]
struct KnownResult {
    result: CheckResult,
    valid_until: Tick,
    expires: Tick,
    /// The entry that replies of this target prove to be real, if the target is not its own port.
    owner: Option<EntryKey>,
}

/// Number of prefixes whose budget is remembered. Only checks that are made use it, so a small table is enough.
const PREFIXES: usize = 16_384;

/// How long an outdated good result is kept as evidence that the target is a server and not a forgery.
const REMEMBER_REACHABLE: Duration = Duration::from_secs(60 * 60);

/// How long an outdated bad result is kept as a reason to check other targets first.
const REMEMBER_UNREACHABLE: Duration = Duration::from_secs(10 * 60);

/// Maximum timeout, unless the target has been reached before: the source of its registration may be forged, and every second costs
/// its target another packet. A server that replies at all does so within this time, even if the first packet is lost and repeated
/// after a second; the next one would follow after two.
const FIRST_TIMEOUT: Duration = Duration::from_millis(1_900);

/// One network may have this fraction (1/8) of the checks in flight.
const SITE_SHARE: usize = 8;

/// Maximum number of results that are remembered: one for each server of the default cap, fewer if the memory cap is low. A
/// target whose result was dropped is checked again.
const MAX_KNOWN: usize = 1_000_000;

/// Bytes of the memory cap for each result that is remembered.
const MEMORY_PER_KNOWN: usize = 1_024;

/// Maximum number of entries that wait for one target. Several servers behind one address may share a query port.
const MAX_WAITERS: usize = 64;

/// How long after its timeout a result is awaited. After that the request counts as lost.
const GRACE: Duration = Duration::from_secs(10);

impl Checks {
    pub fn new(config: &Arc<Config>, keyed: KeyedHash, clock: Clock, seed: u64) -> Self {
        let CheckConfig { per_address, per_network, total, .. } = config.checks;
        Self {
            clock,
            known: keyed.map(),
            expiry: [VecDeque::new(), VecDeque::new()],
            pending: keyed.map(),
            queue: CheckQueue::new(keyed),
            overdue: VecDeque::new(),
            in_flight: 0,
            per_address: TokenBuckets::new(per_minute(per_address), PREFIXES, u128::from(seed)),
            per_network: TokenBuckets::new(per_minute(per_network), PREFIXES, u128::from(seed) << 64),
            total: TokenBucket::new(total_rate(total)),
            is_total_awaited: false,
            max_known: max_known(config.caps.memory),
            config: Arc::clone(config),
            distrusted_until: Tick::default(),
            now: Tick::default(),
            stats: CheckStats::default(),
        }
    }

    pub fn stats(&self) -> CheckStats {
        CheckStats { waiting: self.queue.len(), in_flight: self.in_flight, ..self.stats }
    }

    pub fn set_config(&mut self, config: &Arc<Config>) {
        self.config = Arc::clone(config);
        self.max_known = max_known(config.caps.memory);
        self.per_address.set_rate(per_minute(config.checks.per_address));
        self.per_network.set_rate(per_minute(config.checks.per_network));
        self.total.set_rate(total_rate(config.checks.total));
    }

    /// The result for a target, if there is a valid one; otherwise a check is requested, whose result `waiter` will get. Without
    /// a waiter it is made for a server that was refused because of a cap: its next registration profits from the result (W45).
    /// `returns` is the number of times that the server has come back for it.
    pub fn request(
        &mut self,
        now: Instant,
        target: CheckTarget,
        (waiter, returns): (Option<EntryKey>, u8),
    ) -> CheckStatus {
        self.now = self.clock.tick(now);
        let lane = match self.known.get(&target) {
            Some(known) if self.now < known.valid_until => return CheckStatus::Known(known.result),
            Some(KnownResult { result: CheckResult::Reachable(_), .. }) => Lane::Proven,
            Some(_) => Lane::Failed,
            None if returns > 0 => Lane::Returning,
            None => Lane::New,
        };
        let rank = Rank::new(lane, returns);
        let ip = target.addr.ip();
        let capacity = lane_capacity(&self.config.checks);
        if let Some(pending) = self.pending.get_mut(&target) {
            pending.is_for_refused |= waiter.is_none();
            if let Some(waiter) = waiter.filter(|waiter| !pending.waiters.contains(waiter)) {
                if pending.waiters.len() == MAX_WAITERS {
                    self.stats.refused += 1;
                    return CheckStatus::Refused;
                }
                pending.waiters.push(waiter);
            }
            if let Stage::Waiting(ticket) = pending.stage
                && rank < ticket.rank
            {
                self.move_up(target, ticket, rank, capacity);
            }
            return CheckStatus::Pending;
        }
        if !self.per_address.take(now, Host::of(ip)) || !self.per_network.take(now, Net::of(ip)) {
            self.stats.refused += 1;
            return CheckStatus::Refused;
        }
        let Some((ticket, evicted)) = self.queue.push(rank, Site::of(ip), target, capacity) else {
            self.stats.refused += 1;
            return CheckStatus::Refused;
        };
        let is_for_refused = waiter.is_none();
        let waiters = waiter.into_iter().collect();
        self.pending.insert(target, PendingCheck { waiters, is_for_refused, stage: Stage::Waiting(ticket) });
        self.give_up(evicted);
        CheckStatus::Pending
    }

    /// Moves a waiting target to a better place in the queue, if there is one, because its server has returned.
    fn move_up(&mut self, target: CheckTarget, old: Ticket, rank: Rank, capacity: usize) {
        let is_same_lane = rank.lane == old.rank.lane;
        if is_same_lane {
            // It needs the place that it frees.
            self.queue.remove(old);
        }
        match self.queue.push(rank, Site::of(target.addr.ip()), target, capacity) {
            Some((ticket, evicted)) => {
                if !is_same_lane {
                    self.queue.remove(old);
                }
                if let Some(pending) = self.pending.get_mut(&target) {
                    pending.stage = Stage::Waiting(ticket);
                }
                self.give_up(evicted);
            }
            None if is_same_lane => self.give_up(Some(target)),
            None => {}
        }
    }

    /// Drops a check that has lost its place in the queue to another one. The next registration requests it again.
    fn give_up(&mut self, evicted: Option<CheckTarget>) {
        if let Some(evicted) = evicted {
            self.pending.remove(&evicted);
            self.stats.refused += 1;
        }
    }

    /// Records that a target was reachable before this registry was created, or has replied to another query.
    pub fn vouch(&mut self, now: Instant, target: CheckTarget) {
        let expires = self.clock.deadline(now, REMEMBER_REACHABLE);
        let result = CheckResult::Reachable(Duration::ZERO);
        let owner = self.known.get(&target).and_then(|known| known.owner);
        self.remember(target, KnownResult { result, valid_until: self.clock.tick(now), expires, owner });
    }

    fn remember(&mut self, target: CheckTarget, known: KnownResult) {
        let expiry = match known.result {
            CheckResult::Reachable(_) => &mut self.expiry[0],
            CheckResult::Unreachable | CheckResult::Refused | CheckResult::Unknown => &mut self.expiry[1],
        };
        expiry.push_back((known.expires, target));
        self.known.insert(target, known);
        let max = self.max_known;
        self.forget_while(|known, _| known.len() > max);
    }

    /// The outcome of a registration whose target was not reached.
    pub fn failure(&self, target: Option<CheckTarget>) -> RegistrationOutcome {
        match target.and_then(|target| self.known.get(&target)) {
            Some(KnownResult { result: CheckResult::Refused, .. }) => RegistrationOutcome::PortClosed,
            _ => RegistrationOutcome::Unreachable,
        }
    }

    /// Whether a target has replied within the last hour.
    pub fn was_reachable(&self, target: &CheckTarget) -> bool {
        matches!(self.known.get(target), Some(KnownResult { result: CheckResult::Reachable(_), .. }))
    }

    /// Whether the replies of a target prove that this entry is real: if it is the only one, or the first, that has named it.
    pub fn claim_target(&mut self, target: &CheckTarget, key: EntryKey, exists: impl Fn(EntryKey) -> bool) -> bool {
        let Some(known) = self.known.get_mut(target) else { return false };
        let owner = known.owner.filter(|&owner| exists(owner)).unwrap_or(key);
        known.owner = Some(owner);
        owner == key
    }

    /// When the last check of a target failed, if it did.
    pub fn failed_check_times(&self, target: &CheckTarget) -> Option<FailedCheckTimes> {
        let known = self.known.get(target)?;
        let is_failure = matches!(known.result, CheckResult::Unreachable | CheckResult::Refused);
        is_failure.then(|| FailedCheckTimes {
            failed_at: self.clock.instant(known.valid_until.minus(self.config.checks.retry)),
            repeatable_at: self.clock.instant(known.valid_until),
        })
    }

    /// When the result for a target becomes outdated, if there is one.
    pub fn valid_until(&self, target: &CheckTarget) -> Option<Tick> {
        self.known.get(target).map(|known| known.valid_until)
    }

    /// The next check to make. Targets that no entry waits for any more are skipped: a flood that is over costs no checks.
    pub fn poll(&mut self, is_wanted: impl Fn(EntryKey, &CheckTarget) -> bool) -> Option<CheckRequest> {
        self.is_total_awaited = false;
        // The usual case, after every datagram.
        if self.queue.len() == 0 {
            return None;
        }
        let now = self.clock.instant(self.now);
        let CheckConfig { in_flight, timeout, .. } = self.config.checks;
        while self.in_flight < in_flight && self.queue.len() > 0 {
            if !self.total.has_token(now) {
                self.is_total_awaited = true;
                break;
            }
            let target = self.queue.pop(in_flight.div_ceil(SITE_SHARE))?;
            let wanted = self.pending.get_mut(&target).filter(|pending| {
                pending.is_for_refused || pending.waiters.iter().any(|&waiter| is_wanted(waiter, &target))
            });
            let Some(pending) = wanted else {
                self.pending.remove(&target);
                self.queue.finish(Site::of(target.addr.ip()));
                continue;
            };
            let is_proven = matches!(pending.stage, Stage::Waiting(ticket) if ticket.rank.lane == Lane::Proven);
            let overdue = self.clock.deadline(now, timeout.saturating_add(GRACE));
            pending.stage = Stage::InFlight(overdue);
            self.overdue.push_back((overdue, target));
            self.in_flight += 1;
            self.total.take(now);
            self.stats.started += 1;
            let timeout = if is_proven { timeout } else { timeout.min(FIRST_TIMEOUT) };
            return Some(CheckRequest { target, timeout });
        }
        None
    }

    /// Records the result of a check and returns the entries that waited for it, and the result that applies to them. Results
    /// that were not requested are ignored.
    pub fn handle_result(
        &mut self,
        now: Instant,
        target: CheckTarget,
        result: CheckResult,
    ) -> (Vec<EntryKey>, CheckResult) {
        self.now = self.clock.tick(now);
        let Some(Stage::InFlight(overdue)) = self.pending.get(&target).map(|pending| pending.stage) else {
            return (Vec::new(), result);
        };
        let is_distrusted = result == CheckResult::Unreachable && overdue <= self.distrusted_until;
        let result = if is_distrusted { CheckResult::Unknown } else { result };
        let waiters = self.pending.remove(&target).map_or(Vec::new(), |pending| pending.waiters);
        self.in_flight -= 1;
        self.queue.finish(Site::of(target.addr.ip()));
        let (valid, remembered) = match result {
            CheckResult::Reachable(_) => {
                self.stats.reachable += 1;
                (self.config.checks.keep, REMEMBER_REACHABLE)
            }
            CheckResult::Unreachable | CheckResult::Refused => {
                self.stats.unreachable += 1;
                (self.config.checks.retry, REMEMBER_UNREACHABLE)
            }
            CheckResult::Unknown => {
                self.stats.undecided += 1;
                return (waiters, result);
            }
        };
        let expires = self.clock.deadline(now, valid.saturating_add(remembered));
        let owner = self.known.get(&target).and_then(|known| known.owner);
        self.remember(target, KnownResult { result, valid_until: self.clock.deadline(now, valid), expires, owner });
        (waiters, result)
    }

    /// Handles the end of a time in which the program was halted. A server may have replied to a check that was in flight
    /// without the program noticing in time, so a failure of such a check means nothing.
    pub fn handle_gap(&mut self, now: Instant) {
        self.distrusted_until = self.clock.deadline(now, self.config.checks.timeout.saturating_add(GRACE));
    }

    /// The target of a check whose result should have been reported by now.
    pub fn take_overdue(&mut self, now: Instant) -> Option<CheckTarget> {
        let now = self.clock.tick(now);
        while let Some((overdue, target)) = self.overdue.pop_front_if(|&mut (overdue, _)| overdue <= now) {
            if self.pending.get(&target).is_some_and(|pending| pending.stage == Stage::InFlight(overdue)) {
                return Some(target);
            }
        }
        None
    }

    /// When a check is overdue, or the next one can be made because the total rate is all that it waits for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let overdue = self.overdue.front().map(|&(overdue, _)| overdue);
        let start = self.is_total_awaited.then(|| self.now.plus(GRAIN));
        overdue.into_iter().chain(start).min().map(|tick| self.clock.instant(tick))
    }

    /// Drops expired results.
    pub fn forget_expired(&mut self, now: Instant) {
        let now = self.clock.tick(now);
        self.now = now;
        self.forget_while(|_, expires| expires <= now);
    }

    /// Drops the oldest results while a condition holds, those of unreachable targets first.
    fn forget_while(&mut self, condition: impl Fn(&KeyedMap<CheckTarget, KnownResult>, Tick) -> bool) {
        let Self { expiry: [reachable, unreachable], known, .. } = self;
        for expiry in [unreachable, reachable] {
            while let Some((expires, target)) = expiry.pop_front_if(|&mut (expires, _)| condition(known, expires)) {
                // There may be a later result.
                if known.get(&target).is_some_and(|known| known.expires == expires) {
                    known.remove(&target);
                }
            }
        }
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self) {
        let in_flight = self.pending.values().filter(|pending| pending.is_in_flight()).count();
        assert_eq!(in_flight, self.in_flight, "checks in flight");
        assert_eq!(self.pending.len(), self.queue.len() + in_flight, "pending checks");
        let has_waiter = |pending: &PendingCheck| pending.is_for_refused || !pending.waiters.is_empty();
        let is_bounded = |pending: &PendingCheck| pending.waiters.len() <= MAX_WAITERS;
        assert!(self.pending.values().all(|pending| has_waiter(pending) && is_bounded(pending)), "waiters");
        assert!(self.known.len() <= MAX_KNOWN && self.known.len() <= self.expiry.iter().map(VecDeque::len).sum());
        self.queue.check_invariants(self.in_flight);
    }
}

#[cfg(any(test, feature = "invariants"))]
impl PendingCheck {
    fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::InFlight(_))
    }
}

/// Maximum number of targets that wait in each lane.
fn lane_capacity(config: &CheckConfig) -> usize {
    (config.waiting / LANES).max(1)
}

/// Maximum number of results that are remembered if all servers may use this much memory.
fn max_known(memory: usize) -> usize {
    (memory / MEMORY_PER_KNOWN).min(MAX_KNOWN)
}

/// The rate of all checks together. Time passes in ticks, so the bucket holds the checks of one tick.
fn total_rate(per_second: u32) -> Rate {
    let per_tick = u64::from(per_second) * GRAIN.as_millis() as u64 / 1_000;
    Rate::per_second(u64::from(per_second), per_tick.max(1))
}

fn per_minute(count: u32) -> Rate {
    Rate::per_minute(u64::from(count), u64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::SlotIndex;

    const SECOND: Duration = Duration::from_secs(1);
    const REACHABLE: CheckResult = CheckResult::Reachable(Duration::from_millis(20));

    fn checks() -> (Checks, Instant) {
        let now = Instant::now();
        (Checks::new(&Arc::default(), KeyedHash::new(7), Clock::new(now), 7), now)
    }

    fn target(last: u8) -> CheckTarget {
        CheckTarget { addr: ([203, 0, 113, last], 8190).into(), kind: CheckKind::Connect }
    }

    fn entry(number: usize) -> EntryKey {
        EntryKey { slot: SlotIndex::new(number), serial: number as u64 }
    }

    fn request(checks: &mut Checks, now: Instant, last: u8, waiter: usize) -> CheckStatus {
        checks.request(now, target(last), (Some(entry(waiter)), 0))
    }

    #[test]
    fn a_target_is_checked_once_for_all_that_wait_for_it_and_then_known_for_a_while() {
        let (mut checks, now) = checks();
        assert!(matches!(request(&mut checks, now, 1, 1), CheckStatus::Pending));
        assert!(matches!(request(&mut checks, now, 1, 2), CheckStatus::Pending));
        assert_eq!(checks.poll(|_, _| true).map(|request| request.target), Some(target(1)));
        assert_eq!(checks.poll(|_, _| true), None);
        let (waiters, result) = checks.handle_result(now, target(1), REACHABLE);
        assert_eq!((waiters, result), (vec![entry(1), entry(2)], REACHABLE));
        assert!(matches!(request(&mut checks, now + 299 * SECOND, 1, 3), CheckStatus::Known(REACHABLE)));
        assert!(matches!(request(&mut checks, now + 301 * SECOND, 1, 3), CheckStatus::Pending));
        assert!(checks.was_reachable(&target(1)), "it is still evidence that the server is real");
        checks.forget_expired(now + 4_000 * SECOND);
        assert!(!checks.was_reachable(&target(1)));
        checks.check_invariants();
    }

    #[test]
    fn a_check_without_a_result_is_given_up_and_one_that_nothing_waits_for_is_not_made() {
        let (mut checks, now) = checks();
        request(&mut checks, now, 1, 1);
        request(&mut checks, now, 2, 2);
        assert_eq!(checks.poll(|waiter, _| waiter == entry(1)).map(|request| request.target), Some(target(1)));
        assert_eq!(checks.poll(|waiter, _| waiter == entry(1)), None);
        assert_eq!(checks.poll_timeout(), Some(now + 15 * SECOND), "5 s and a time of grace");
        assert_eq!(checks.take_overdue(now + 14 * SECOND), None);
        assert_eq!(checks.take_overdue(now + 15 * SECOND), Some(target(1)));
        assert_eq!(checks.stats().waiting, 0);
        checks.check_invariants();
    }

    #[test]
    fn a_failure_while_the_program_was_halted_means_nothing() {
        let (mut checks, now) = checks();
        request(&mut checks, now, 1, 1);
        checks.poll(|_, _| true);
        checks.handle_gap(now + SECOND);
        let (_, result) = checks.handle_result(now + SECOND, target(1), CheckResult::Unreachable);
        assert_eq!(result, CheckResult::Unknown);
        assert_eq!(checks.failed_check_times(&target(1)), None);
    }

    #[test]
    fn replies_of_a_shared_target_prove_the_first_entry_that_names_it() {
        let (mut checks, now) = checks();
        checks.vouch(now, target(1));
        assert!(checks.claim_target(&target(1), entry(1), |_| true));
        assert!(!checks.claim_target(&target(1), entry(2), |_| true));
        assert!(checks.claim_target(&target(1), entry(2), |owner| owner != entry(1)), "the first one was removed");
        assert_eq!(checks.failure(Some(target(1))), RegistrationOutcome::Unreachable);
    }
}
