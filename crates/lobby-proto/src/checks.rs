//! Which servers to check, when, and what came of it (L12).
//!
//! The source of a registration can be forged, so a check is traffic that a stranger can cause. It is bounded: so many at
//! a time, so many a minute per address and per network, and never two for the same target. Who is checked first is
//! settled in `queue`.

mod queue;

use crate::{
    CheckConfig,
    hash::{Keyed, KeyedMap},
    wheel::{Tick, Wheel},
};
use queue::{LANES, Lane, Queue, Ticket};
use rallypoint_limit::{Host, Net, Rate, Site, TokenBuckets};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Something to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckTarget {
    /// Where.
    pub addr: SocketAddr,
    /// How.
    pub kind: CheckKind,
}

/// How a server is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Its TCP port is opened.
    Connect,
    /// It answers a query of document 002 (E1).
    Bloodmasters,
    /// It answers a query of document 003 (E1).
    Session,
}

/// A check that the owner of the sockets should make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// What to check.
    pub target: CheckTarget,
    /// How long to try.
    pub timeout: Duration,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// It answered, after so long.
    Reachable(Duration),
    /// It did not.
    Unreachable,
    /// The lobby could not try, for want of a descriptor or of a network: nothing is known, and what was known still holds.
    Unknown,
}

/// An entry that wants to know: its slot and its serial number.
pub(crate) type Waiter = (u32, u64);

/// What is known of a target right now.
pub(crate) enum Answer {
    Known(CheckResult),
    Wait,
    Busy,
}

#[derive(Debug)]
pub(crate) struct Checks {
    known: KeyedMap<CheckTarget, Known>,
    /// When good and bad verdicts are to be forgotten; the oldest in front.
    ends: [VecDeque<(Tick, CheckTarget)>; 2],
    pending: KeyedMap<CheckTarget, Pending>,
    queue: Queue<CheckTarget>,
    /// Checks under way, by when the owner has failed to report; some of them are done by now.
    overdue: VecDeque<(Tick, CheckTarget)>,
    in_flight: usize,
    per_address: TokenBuckets<Host>,
    per_network: TokenBuckets<Net>,
    now: Tick,
    counts: CheckStats,
}

/// A check that was asked for and has no result yet.
#[derive(Debug)]
struct Pending {
    waiters: Vec<Waiter>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting(Ticket),
    /// Under way; when it is given up.
    UnderWay(Tick),
}

/// A verdict. It counts for a while, and longer than that it tells who should be checked first.
#[derive(Clone, Copy, Debug)]
struct Known {
    verdict: CheckResult,
    until: Tick,
    forget: Tick,
}

/// How many checks were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStats {
    /// Asked of the owner of the sockets.
    pub started: u64,
    /// The server could be reached.
    pub reachable: u64,
    /// It could not.
    pub unreachable: u64,
    /// The lobby could not try, so nothing is known.
    pub undecided: u64,
    /// Not made, because a bound was reached.
    pub refused: u64,
    /// Waiting for their turn.
    pub waiting: usize,
    /// Under way.
    pub in_flight: usize,
}

/// Prefixes whose budget is remembered. Only checks that are made use it up, so there is no need for many.
const PREFIXES: usize = 16_384;

/// How long after its end a good verdict still says that this is a server and no forgery.
const REMEMBER_GOOD: Duration = Duration::from_secs(60 * 60);

/// How long after its end a bad verdict still says that others should be checked first.
const REMEMBER_BAD: Duration = Duration::from_secs(10 * 60);

/// How long the lobby tries while others wait, unless the server could be reached before. Who answers at all does so in
/// less, even if the first packet is lost and repeated after a second.
const HURRY: Duration = Duration::from_secs(2);

/// One network may have one part in so many of the checks under way.
const AREA_SHARE: usize = 8;

/// How many verdicts are remembered: one for each of as many servers as there can be by default. What is forgotten is
/// checked again.
const MAX_KNOWN: usize = 1_000_000;

/// How many entries can wait for one target. Several servers behind one address may have a common port for queries.
const MAX_WAITERS: usize = 64;

/// How much later than asked for the owner may report. After that it has lost the request.
const GRACE: Duration = Duration::from_secs(10);

impl Checks {
    pub fn new(config: &CheckConfig, keyed: Keyed, seed: u64) -> Self {
        Self {
            known: keyed.map(),
            ends: [VecDeque::new(), VecDeque::new()],
            pending: keyed.map(),
            queue: Queue::new(keyed),
            overdue: VecDeque::new(),
            in_flight: 0,
            per_address: TokenBuckets::new(per_minute(config.per_address), PREFIXES, u128::from(seed)),
            per_network: TokenBuckets::new(per_minute(config.per_network), PREFIXES, u128::from(seed) << 64),
            now: Tick::default(),
            counts: CheckStats::default(),
        }
    }

    pub fn counts(&self) -> CheckStats {
        CheckStats { waiting: self.queue.len(), in_flight: self.in_flight, ..self.counts }
    }

    pub fn set_config(&mut self, config: &CheckConfig) {
        self.per_address.set_rate(per_minute(config.per_address));
        self.per_network.set_rate(per_minute(config.per_network));
    }

    /// The verdict on a target, if there is a fresh one; otherwise it is asked for, and `waiter`, who has come back so many
    /// times, will be told.
    pub fn ask(
        &mut self,
        now: Instant,
        wheel: &Wheel,
        config: &CheckConfig,
        target: CheckTarget,
        (waiter, returns): (Waiter, u8),
    ) -> Answer {
        self.now = wheel.tick(now);
        let lane = match self.known.get(&target) {
            Some(known) if self.now < known.until => return Answer::Known(known.verdict),
            Some(Known { verdict: CheckResult::Reachable(_), .. }) => Lane::Proven,
            Some(_) => Lane::Failed,
            None if returns > 0 => Lane::Returning(returns),
            None => Lane::New,
        };
        let (ip, room) = (target.addr.ip(), room(config));
        if let Some(pending) = self.pending.get_mut(&target) {
            if !pending.waiters.contains(&waiter) {
                if pending.waiters.len() == MAX_WAITERS {
                    self.counts.refused += 1;
                    return Answer::Busy;
                }
                pending.waiters.push(waiter);
            }
            if let Stage::Waiting(ticket) = pending.stage
                && lane.is_before(ticket.lane)
            {
                self.move_up(target, ticket, lane, room);
            }
            return Answer::Wait;
        }
        if !self.per_address.take(now, Host::of(ip)) || !self.per_network.take(now, Net::of(ip)) {
            self.counts.refused += 1;
            return Answer::Busy;
        }
        let Some((ticket, lost)) = self.queue.push(lane, Site::of(ip), target, room) else {
            self.counts.refused += 1;
            return Answer::Busy;
        };
        self.pending.insert(target, Pending { waiters: vec![waiter], stage: Stage::Waiting(ticket) });
        self.give_up(lost);
        Answer::Wait
    }

    /// Somebody who waits has come back: that is worth a better place, if there is one.
    fn move_up(&mut self, target: CheckTarget, old: Ticket, lane: Lane, room: usize) {
        let is_same_lane = lane.index() == old.lane.index();
        if is_same_lane {
            // Its own place is the one that it needs.
            self.queue.remove(old);
        }
        match self.queue.push(lane, Site::of(target.addr.ip()), target, room) {
            Some((ticket, lost)) => {
                if !is_same_lane {
                    self.queue.remove(old);
                }
                if let Some(pending) = self.pending.get_mut(&target) {
                    pending.stage = Stage::Waiting(ticket);
                }
                self.give_up(lost);
            }
            None if is_same_lane => self.give_up(Some(target)),
            None => {}
        }
    }

    /// Somebody has lost a place to somebody else. The next registration asks again.
    fn give_up(&mut self, lost: Option<CheckTarget>) {
        if let Some(lost) = lost {
            self.pending.remove(&lost);
            self.counts.refused += 1;
        }
    }

    /// Notes that a target could be reached before this registry began.
    pub fn vouch(&mut self, now: Instant, wheel: &Wheel, target: CheckTarget) {
        let forget = wheel.deadline(now, REMEMBER_GOOD);
        let known = Known { verdict: CheckResult::Reachable(Duration::ZERO), until: wheel.tick(now), forget };
        self.remember(target, known);
    }

    fn remember(&mut self, target: CheckTarget, known: Known) {
        let ends = match known.verdict {
            CheckResult::Reachable(_) => &mut self.ends[0],
            CheckResult::Unreachable | CheckResult::Unknown => &mut self.ends[1],
        };
        ends.push_back((known.forget, target));
        self.known.insert(target, known);
        self.forget(|known, _| known.len() > MAX_KNOWN);
    }

    /// Until when the verdict on a target holds, if there is one.
    pub fn until(&self, target: &CheckTarget) -> Option<Tick> {
        self.known.get(target).map(|known| known.until)
    }

    /// The next check to make. What nobody waits for any more is passed over: a flood that is gone costs no checks.
    pub fn poll(
        &mut self,
        config: &CheckConfig,
        wheel: &Wheel,
        is_wanted: impl Fn(Waiter, &CheckTarget) -> bool,
    ) -> Option<CheckRequest> {
        while self.in_flight < config.in_flight {
            let target = self.queue.pop(config.in_flight.div_ceil(AREA_SHARE))?;
            let wanted = self
                .pending
                .get_mut(&target)
                .filter(|pending| pending.waiters.iter().any(|&waiter| is_wanted(waiter, &target)));
            let Some(pending) = wanted else {
                self.pending.remove(&target);
                self.queue.done(Site::of(target.addr.ip()));
                continue;
            };
            let is_proven = matches!(pending.stage, Stage::Waiting(Ticket { lane: Lane::Proven, .. }));
            let overdue = wheel.deadline(wheel.instant(self.now), config.timeout.saturating_add(GRACE));
            pending.stage = Stage::UnderWay(overdue);
            self.overdue.push_back((overdue, target));
            self.in_flight += 1;
            self.counts.started += 1;
            let is_hurried = !is_proven && self.queue.len() > config.in_flight;
            let timeout = if is_hurried { config.timeout.min(HURRY) } else { config.timeout };
            return Some(CheckRequest { target, timeout });
        }
        None
    }

    /// Takes in a verdict and says who waited for it. A verdict that nobody asked for is not believed.
    pub fn result(
        &mut self,
        now: Instant,
        wheel: &Wheel,
        config: &CheckConfig,
        target: CheckTarget,
        verdict: CheckResult,
    ) -> Vec<Waiter> {
        self.now = wheel.tick(now);
        if !self.pending.get(&target).is_some_and(Pending::is_under_way) {
            return Vec::new();
        }
        let waiters = self.pending.remove(&target).map_or(Vec::new(), |pending| pending.waiters);
        self.in_flight -= 1;
        self.queue.done(Site::of(target.addr.ip()));
        let (keep, remember) = match verdict {
            CheckResult::Reachable(_) => {
                self.counts.reachable += 1;
                (config.keep, REMEMBER_GOOD)
            }
            CheckResult::Unreachable => {
                self.counts.unreachable += 1;
                (config.retry, REMEMBER_BAD)
            }
            CheckResult::Unknown => {
                self.counts.undecided += 1;
                return waiters;
            }
        };
        let forget = wheel.deadline(now, keep.saturating_add(remember));
        self.remember(target, Known { verdict, until: wheel.deadline(now, keep), forget });
        waiters
    }

    /// A check that the owner should have reported on by now.
    pub fn overdue(&mut self, now: Tick) -> Option<CheckTarget> {
        while let Some((overdue, target)) = self.overdue.pop_front_if(|&mut (overdue, _)| overdue <= now) {
            if self.pending.get(&target).is_some_and(|pending| pending.stage == Stage::UnderWay(overdue)) {
                return Some(target);
            }
        }
        None
    }

    /// When [`overdue`](Self::overdue) wants to be asked.
    pub fn next_overdue(&self) -> Option<Tick> {
        self.overdue.front().map(|&(overdue, _)| overdue)
    }

    /// Forgets verdicts that are too old to be used.
    pub fn forget_old(&mut self, now: Tick) {
        self.now = now;
        self.forget(|_, end| end <= now);
    }

    /// Forgets the oldest verdicts, the bad ones first, as long as there is a reason.
    fn forget(&mut self, reason: impl Fn(&KeyedMap<CheckTarget, Known>, Tick) -> bool) {
        let Self { ends: [good, bad], known, .. } = self;
        for ends in [bad, good] {
            while let Some((end, target)) = ends.pop_front_if(|&mut (end, _)| reason(known, end)) {
                // There may be a later verdict.
                if known.get(&target).is_some_and(|known| known.forget == end) {
                    known.remove(&target);
                }
            }
        }
    }

    pub fn check_invariants(&self) {
        let running = self.pending.values().filter(|pending| pending.is_under_way()).count();
        assert_eq!(running, self.in_flight, "checks under way");
        assert_eq!(self.pending.len(), self.queue.len() + running, "checks that were asked for");
        assert!(self.pending.values().all(|pending| (1..=MAX_WAITERS).contains(&pending.waiters.len())), "waiters");
        assert!(self.known.len() <= MAX_KNOWN && self.known.len() <= self.ends.iter().map(VecDeque::len).sum());
        self.queue.check_invariants(self.in_flight);
    }
}

impl Pending {
    fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::UnderWay(_))
    }
}

/// How many can wait in each lane.
fn room(config: &CheckConfig) -> usize {
    (config.waiting / LANES).max(1)
}

fn per_minute(count: u32) -> Rate {
    Rate::per_minute(u64::from(count), u64::from(count))
}
