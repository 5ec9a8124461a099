//! Which encrypted logins are answered when more arrive than can be (W65).
//!
//! Answering one costs a key agreement, and a flood of forged logins asks for more of them than there is time for. An honest
//! client differs from the flood: it repeats its login, byte for byte (S12), or it has played here before. So the budget is
//! divided into lanes of the same size: one for each range of repetitions, and one for known addresses. A login that is
//! repeated for the fifth time competes only with others that were repeated as often, and with a flood of ten times the
//! budget that repeats every login as often, most of the logins of that flood can be answered.

use super::half_open::LoginId;
use foldhash::quality::FixedState;
use rallypoint_limit::{Lan, Net, Rate, TokenBuckets};
use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasher,
    net::IpAddr,
    time::Instant,
};

/// Number of lanes, each with the same share of the budget: four by repetition, and the one of known addresses.
const LANES: u64 = 5;
const KNOWN_LANE: u64 = LANES - 1;

/// Share of the budget that one network can have: one eighth.
const NETWORK_SHARE: u64 = 8;

/// Number of networks whose budgets are remembered.
const REMEMBERED_NETWORKS: usize = 4_096;

/// Encrypted logins of one known address that have priority: a few players behind it reconnect at once.
const KNOWN_RATE: Rate = Rate::per_second(2, 8);

/// Number of known addresses.
const MAX_KNOWN: usize = 1_024;

/// Time within which a repeated login counts as one, in milliseconds: a client gives up sooner.
const ATTEMPT_LIFETIME: u32 = 10_000;

/// Size of the table of attempts: 512 kB, allocated when it is first needed. A flood of 20,000 logins per second fills it in
/// 1.6 s; repeated ones outlive single ones.
const SETS: usize = 4_096;
const SET_SIZE: usize = 8;

/// Decides which encrypted logins are answered.
pub(super) struct LoginAdmission {
    lanes: TokenBuckets<u64>,
    networks: TokenBuckets<Net>,
    known: KnownAddresses,
    attempts: AttemptTable,
}

/// A login that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    /// Whether it was sent before, or comes from a known address, as a forged login rarely does.
    pub is_trusted: bool,
}

impl LoginAdmission {
    /// `rate` is the number of logins per second, and the size of a burst.
    pub fn new(rate: u32, seeds: [u128; 2], seed: u64) -> Self {
        let rate = u64::from(rate);
        let lane = (rate / LANES).max(1);
        let network = (rate / NETWORK_SHARE).max(1);
        Self {
            lanes: TokenBuckets::new(Rate::per_second(lane, lane), 8 * LANES as usize, seeds[0]),
            networks: TokenBuckets::new(Rate::per_second(network, network), REMEMBERED_NETWORKS, seeds[1]),
            known: KnownAddresses::new(seed, seeds[0] ^ seeds[1]),
            attempts: AttemptTable::new(seed),
        }
    }

    /// Takes a login out of the budget. `None` if it is not answered.
    pub fn admit(&mut self, now: Instant, id: &LoginId) -> Option<Admission> {
        let ip = id.0.ip();
        if self.known.take(now, ip) && self.lanes.take(now, KNOWN_LANE) {
            return Some(Admission { is_trusted: true });
        }
        let network = Net::of(ip);
        if self.networks.remaining(now, network) == 0 {
            return None;
        }
        // Attempts are counted only while there are more than can be answered.
        let is_overloaded = self.lanes.remaining(now, 0) == 0;
        let attempt = if is_overloaded || !self.attempts.is_empty() { self.attempts.record(now, id) } else { 1 };
        // A repeated login also competes with those that were repeated less often.
        let is_admitted = (0..=lane(attempt)).rev().any(|lane| self.lanes.take(now, lane));
        (is_admitted && self.networks.take(now, network)).then_some(Admission { is_trusted: attempt > 1 })
    }

    /// A player at this address has proved that it receives what is sent there.
    pub fn on_proven(&mut self, address: IpAddr) {
        self.known.insert(Lan::of(address));
    }
}

/// The lane of a login that is seen for the n-th time.
fn lane(attempt: u32) -> u64 {
    match attempt {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        _ => 3,
    }
}

/// The addresses of the last players.
struct KnownAddresses {
    /// Number of times that each is in `order`.
    counts: HashMap<Lan, u32, FixedState>,
    order: VecDeque<Lan>,
    budget: TokenBuckets<Lan>,
}

impl KnownAddresses {
    fn new(seed: u64, budget_seed: u128) -> Self {
        Self {
            counts: HashMap::with_hasher(FixedState::with_seed(seed)),
            order: VecDeque::new(),
            budget: TokenBuckets::new(KNOWN_RATE, MAX_KNOWN, budget_seed),
        }
    }

    /// Whether an address is known and has not used its budget.
    fn take(&mut self, now: Instant, ip: IpAddr) -> bool {
        let address = Lan::of(ip);
        self.counts.contains_key(&address) && self.budget.take(now, address)
    }

    fn insert(&mut self, address: Lan) {
        *self.counts.entry(address).or_default() += 1;
        self.order.push_back(address);
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }
}

/// How often each login was seen lately, in fixed memory. A login belongs to one set of eight entries, in which it replaces
/// the one that was seen least often.
struct AttemptTable {
    hasher: FixedState,
    start: Option<Instant>,
    entries: Vec<Attempt>,
}

#[derive(Clone, Copy, Default)]
struct Attempt {
    hash: u64,
    /// Time of the last attempt in milliseconds since the first of all.
    at: u32,
    /// Number of attempts; 0 in an empty entry.
    count: u32,
}

impl AttemptTable {
    fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), start: None, entries: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts an attempt. Returns the number of attempts, this one included.
    fn record(&mut self, now: Instant, id: &LoginId) -> u32 {
        if self.entries.is_empty() {
            self.entries = vec![Attempt::default(); SETS * SET_SIZE];
        }
        let start = *self.start.get_or_insert(now);
        // Wraps after seven weeks: an attempt may then be forgotten.
        let at = now.saturating_duration_since(start).as_millis() as u32;
        let hash = self.hasher.hash_one(id);
        let set = hash as usize % SETS * SET_SIZE;
        // In range: there are `SETS` sets.
        let set = &mut self.entries[set..set + SET_SIZE];
        let is_live = |attempt: &Attempt| attempt.count > 0 && at.wrapping_sub(attempt.at) < ATTEMPT_LIFETIME;
        if let Some(known) = set.iter_mut().find(|attempt| attempt.hash == hash && is_live(attempt)) {
            known.at = at;
            known.count = known.count.saturating_add(1);
            return known.count;
        }
        let value = |attempt: &Attempt| if is_live(attempt) { (attempt.count, attempt.at) } else { (0, 0) };
        if let Some(least) = set.iter_mut().min_by_key(|attempt| value(attempt)) {
            *least = Attempt { hash, at, count: 1 };
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn id(network: u32, number: u32) -> LoginId {
        let [a, b, c, _] = network.to_le_bytes();
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_le_bytes());
        (([11, a, b, c], 1).into(), hash)
    }

    fn admission() -> LoginAdmission {
        LoginAdmission::new(2_000, [1, 2], 3)
    }

    #[test]
    fn w65_without_a_flood_every_login_is_answered_at_once() {
        let mut now = Instant::now();
        let mut admission = admission();
        for number in 0..1_000 {
            now += Duration::from_millis(5);
            assert_eq!(admission.admit(now, &id(number, number)), Some(Admission { is_trusted: false }));
        }
        assert!(admission.attempts.is_empty());
    }

    #[test]
    fn w65_repeated_logins_are_answered_during_a_flood_of_single_ones() {
        let mut now = Instant::now();
        let mut admission = admission();
        let mut flood = 0..;
        let mut answered = 0;
        for honest in 0..100 {
            for attempt in 1..=3 {
                for _ in 0..2_000 {
                    let number = flood.next().unwrap();
                    answered += u32::from(admission.admit(now, &id(number, number)).is_some());
                }
                now += Duration::from_millis(100);
                let admitted = admission.admit(now, &id(1 << 20 | honest, honest));
                if attempt > 1 {
                    assert_eq!(admitted, Some(Admission { is_trusted: true }));
                }
            }
        }
        // 400 per second in the lane of new logins.
        assert!((12_000..13_000).contains(&answered), "{answered}");
    }

    #[test]
    fn w65_the_total_is_never_exceeded() {
        let start = Instant::now();
        let mut admission = admission();
        admission.on_proven([11, 1, 0, 0].into());
        let mut answered = 0;
        for ms in 0..5_000 {
            let now = start + Duration::from_millis(ms);
            for number in 0..20 {
                // Each of them is repeated ten times within a second.
                let number = (ms as u32 / 1_000) * 2_000 + (ms as u32 % 100) * 20 + number;
                answered += u32::from(admission.admit(now, &id(number, number)).is_some());
            }
        }
        assert!(answered <= 6 * 2_000, "{answered}");
    }

    #[test]
    fn w65_one_network_cannot_use_up_the_budget() {
        let now = Instant::now();
        let mut admission = admission();
        let from_one_network = (0..10_000).filter(|number| admission.admit(now, &id(5, *number)).is_some()).count();
        assert_eq!(from_one_network, 250);
        assert!(admission.admit(now, &id(6, 0)).is_some());
    }

    #[test]
    fn w65_a_known_address_is_answered_during_a_flood() {
        let now = Instant::now();
        let mut admission = admission();
        let known = id(77, 1);
        admission.on_proven(known.0.ip());
        (1_000..50_000).for_each(|number| {
            admission.admit(now, &id(number, number));
        });
        assert_eq!(admission.admit(now, &known), Some(Admission { is_trusted: true }));
        for number in 0..2 * MAX_KNOWN as u32 {
            admission.on_proven(id(number << 4, 0).0.ip());
        }
        assert_eq!(admission.known.order.len(), MAX_KNOWN);
        assert!(admission.known.counts.len() <= MAX_KNOWN);
    }
}
