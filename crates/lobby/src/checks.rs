//! Which servers to check, when, and what came of it (L12).
//!
//! The source of a registration can be forged, so a check is traffic that a stranger can cause. It is bounded: so many at
//! a time, so many a minute per address and per network, and never two for the same target.

use crate::{
    CheckConfig,
    wheel::{Tick, Wheel},
};
use foldhash::fast::RandomState;
use rallypoint_limit::{Buckets, Host, Net, Rate};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Something to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
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

impl CheckKind {
    /// What `x-query` says: the kind, and the port if it is not the registered one (E1). Anything else is not for us.
    pub(crate) fn from_x_query(value: &[u8], registered: u16) -> Option<(Self, u16)> {
        let value = std::str::from_utf8(value).ok()?;
        let (kind, port) = match value.split_once(':') {
            Some((kind, port)) => (kind, port.parse().ok().filter(|&port| port != 0)?),
            None => (value, registered),
        };
        match kind {
            "bloodmasters" => Some((Self::Bloodmasters, port)),
            "session" => Some((Self::Session, port)),
            _ => None,
        }
    }
}

/// A check that the owner of the sockets should make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// What to check.
    pub target: Target,
    /// How long to try.
    pub timeout: Duration,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It answered, after so long.
    Reachable(Duration),
    /// It did not.
    Unreachable,
}

/// What is known of a target right now.
pub(crate) enum Answer {
    Known(Verdict),
    Wait,
    Busy,
}

/// An entry that waits for a verdict: its slot and that slot's generation.
pub(crate) type Waiter = (u32, u32);

#[derive(Debug)]
pub(crate) struct Checks {
    known: HashMap<Target, (Verdict, Tick), RandomState>,
    /// When verdicts are to be forgotten; the oldest in front.
    ends: VecDeque<(Tick, Target)>,
    waiters: HashMap<Target, Vec<Waiter>, RandomState>,
    queue: VecDeque<Target>,
    in_flight: usize,
    per_address: Buckets<Host>,
    per_network: Buckets<Net>,
    pub counts: CheckCounts,
}

/// How many checks were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Asked of the owner of the sockets.
    pub started: u64,
    /// The server could be reached.
    pub reachable: u64,
    /// It could not.
    pub unreachable: u64,
    /// Not made, because a bound was reached.
    pub refused: u64,
}

/// Prefixes whose budget is remembered; what is forgotten has a full budget, so this only needs to be large.
const PREFIXES: usize = 65_536;

impl Checks {
    pub fn new(config: &CheckConfig, seed: u64) -> Self {
        Self {
            known: HashMap::default(),
            ends: VecDeque::new(),
            waiters: HashMap::default(),
            queue: VecDeque::new(),
            in_flight: 0,
            per_address: Buckets::new(per_minute(config.per_address), PREFIXES, u128::from(seed)),
            per_network: Buckets::new(per_minute(config.per_network), PREFIXES, u128::from(seed) << 64),
            counts: CheckCounts::default(),
        }
    }

    pub fn set_config(&mut self, config: &CheckConfig) {
        self.per_address.set_rate(per_minute(config.per_address));
        self.per_network.set_rate(per_minute(config.per_network));
    }

    /// The verdict on a target, if there is a fresh one; otherwise it is asked for, and `waiter` will be told.
    pub fn ask(&mut self, now: Instant, wheel: &Wheel, config: &CheckConfig, target: Target, waiter: Waiter) -> Answer {
        if let Some(&(verdict, until)) = self.known.get(&target)
            && wheel.tick(now) < until
        {
            return Answer::Known(verdict);
        }
        if let Some(waiters) = self.waiters.get_mut(&target) {
            // The same entry asks again with every registration; others that claim the same address are rare.
            if !waiters.contains(&waiter) && waiters.len() < 8 {
                waiters.push(waiter);
            }
            return Answer::Wait;
        }
        let ip = target.addr.ip();
        let allowed = self.queue.len() < config.waiting
            && self.per_address.take(now, Host::of(ip))
            && self.per_network.take(now, Net::of(ip));
        if !allowed {
            self.counts.refused += 1;
            return Answer::Busy;
        }
        self.waiters.insert(target, vec![waiter]);
        self.queue.push_back(target);
        Answer::Wait
    }

    /// The next check to make.
    pub fn poll(&mut self, config: &CheckConfig) -> Option<CheckRequest> {
        if self.in_flight >= config.in_flight {
            return None;
        }
        let target = self.queue.pop_front()?;
        self.in_flight += 1;
        self.counts.started += 1;
        Some(CheckRequest { target, timeout: config.timeout })
    }

    /// Takes in a verdict and says who waited for it. A verdict that nobody asked for is not believed.
    pub fn result(
        &mut self,
        now: Instant,
        wheel: &Wheel,
        config: &CheckConfig,
        target: Target,
        verdict: Verdict,
    ) -> Vec<Waiter> {
        let Some(waiters) = self.waiters.remove(&target) else { return Vec::new() };
        self.in_flight = self.in_flight.saturating_sub(1);
        let keep = match verdict {
            Verdict::Reachable(_) => {
                self.counts.reachable += 1;
                config.keep
            }
            Verdict::Unreachable => {
                self.counts.unreachable += 1;
                config.retry
            }
        };
        let until = wheel.deadline(now, keep);
        self.known.insert(target, (verdict, until));
        self.ends.push_back((until, target));
        waiters
    }

    /// Forgets verdicts that are too old to be used.
    pub fn forget_old(&mut self, now: Tick) {
        // Bad verdicts end sooner than the good ones in front of them and wait a little longer: harmless, as `ask` looks
        // at the time itself.
        while let Some(&(end, target)) = self.ends.front()
            && end <= now
        {
            self.ends.pop_front();
            if self.known.get(&target).is_some_and(|&(_, until)| until <= now) {
                self.known.remove(&target);
            }
        }
    }
}

fn per_minute(count: u32) -> Rate {
    Rate { count: u64::from(count), per: Duration::from_secs(60), burst: u64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_x_query_names_a_protocol_and_perhaps_a_port() {
        let read = |value: &str| CheckKind::from_x_query(value.as_bytes(), 8190);
        assert_eq!(read("bloodmasters"), Some((CheckKind::Bloodmasters, 8190)));
        assert_eq!(read("session:45555"), Some((CheckKind::Session, 45555)));
        for other in ["", "session:", "session:0", "session:65536", "gamespy", "session:1:2"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
