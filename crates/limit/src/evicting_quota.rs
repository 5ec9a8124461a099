//! A bound on what connections have in use: it makes room by closing connections of the network that has most.
//!
//! A client can hold a connection, an event stream or a long response for a long time at no cost, and an attacker with a network
//! of addresses can hold as many as a bound allows. So a full quota does not refuse a client for lack of room. It evicts another
//! one: first a connection that has been answered and only has to close, then one that has not made a request, then one of the
//! site (IPv4 /24, IPv6 /48) with most units, of the client (IPv4 address, IPv6 /56 or another prefix) with most units there, that
//! has made no progress for the longest time.
//!
//! Privileged clients are evicted only by each other: health checks, metrics and the admin API of a web server work whatever other
//! networks do.

use crate::{Prefix, Site};
use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Age at which a connection without a request is evicted before any that has made one. Most clients send their request with
/// their first bytes, a round trip after they have connected.
const REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of eviction candidates that are chosen at once. Choosing takes a pass over all entries.
const MAX_CANDIDATES: usize = 64;

/// How long chosen candidates stay valid.
const CANDIDATES_TTL: Duration = Duration::from_secs(1);

/// A connection that can be closed to make room for others.
pub trait Evictable {
    /// Its phase and its progress.
    fn activity(&self) -> Activity;

    /// Closes the connection, without waiting: it no longer counts when this returns.
    fn evict(&self);
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Its phase.
    pub phase: Phase,
    /// Last change of the phase, or last time that the client took a part of its response.
    pub progress_at: Instant,
}

/// The phase of a connection. Of one client, connections in the first phase are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Nothing is left to do but to close: it is evicted before any other, whatever else its network has.
    Closing,
    /// It has not completed a request yet.
    New,
    /// Its last response is sent, and it has no next request.
    Idle,
    /// The last bytes of its response are on their way to the system.
    Ending,
    /// A request is being answered.
    Busy,
}

/// A bound on units in use, in total and per client: an IPv4 address or an IPv6 prefix of `V6` bits. Clones share it.
#[derive(Debug)]
pub struct EvictingQuota<T: Evictable, const V6: u8 = 56>(Arc<Inner<T, V6>>);

/// The bounds of an [`EvictingQuota`].
#[derive(Clone, Copy, Debug)]
pub struct QuotaLimits {
    /// Maximum number of units in use, at least 1.
    pub max: usize,
    /// Maximum number of units that one client has in use.
    pub max_per_client: usize,
    /// Age that an entry must have to be evicted: long enough for clients that are not slow to finish.
    pub min_age: Duration,
    /// Whether a client that has as many units as any other may evict its own. Otherwise it is refused: one that comes back at
    /// once would evict another connection of its own, without end.
    pub evicts_own: bool,
}

/// A client that takes units.
#[derive(Clone, Copy, Debug)]
pub struct QuotaClient {
    /// Its address.
    pub ip: IpAddr,
    /// Whether the bound per client does not apply.
    pub is_exempt: bool,
    /// Whether only privileged clients may evict it.
    pub is_privileged: bool,
}

#[derive(Debug)]
struct Inner<T: Evictable, const V6: u8> {
    limits: QuotaLimits,
    state: Mutex<State<T, V6>>,
    refused: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Debug)]
struct State<T, const V6: u8> {
    entries: HashMap<u64, Entry<T, V6>>,
    /// Number of the next entry.
    next: u64,
    total: usize,
    by_client: HashMap<Prefix<32, V6>, usize>,
    by_site: HashMap<Site, usize>,
    /// Numbers of eviction candidates, with their progress when they were chosen; the next one to evict comes last.
    candidates: Vec<(u64, Instant)>,
    candidates_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T, const V6: u8> {
    connection: Arc<T>,
    client: Prefix<32, V6>,
    site: Site,
    units: usize,
    is_privileged: bool,
    taken_at: Instant,
}

/// A client that needs units.
#[derive(Clone, Copy, Debug)]
struct Newcomer<const V6: u8> {
    client: Prefix<32, V6>,
    site: Site,
    units: usize,
    is_privileged: bool,
}

/// Units in use. Dropping the permit returns them.
#[derive(Debug)]
pub struct EvictingPermit<T: Evictable, const V6: u8 = 56> {
    quota: EvictingQuota<T, V6>,
    number: u64,
}

impl<T: Evictable, const V6: u8> EvictingQuota<T, V6> {
    /// A quota of which nothing is in use.
    #[must_use]
    pub fn new(limits: QuotaLimits) -> Self {
        let state = State {
            entries: HashMap::new(),
            next: 0,
            total: 0,
            by_client: HashMap::new(),
            by_site: HashMap::new(),
            candidates: Vec::new(),
            candidates_at: None,
        };
        let inner = Inner { limits, state: Mutex::new(state), refused: AtomicU64::new(0), evicted: AtomicU64::new(0) };
        Self(Arc::new(inner))
    }

    /// Takes units for a connection, and evicts others if there are not enough. `None` if the client has too many, or if nothing
    /// can be evicted.
    #[must_use]
    pub fn take(
        &self,
        client: QuotaClient,
        units: usize,
        connection: &Arc<T>,
        now: Instant,
    ) -> Option<EvictingPermit<T, V6>> {
        let mut state = self.state();
        let Some(number) = state.take(&self.0, client, units, connection, now) else {
            self.0.refused.fetch_add(1, Relaxed);
            return None;
        };
        Some(EvictingPermit { quota: self.clone(), number })
    }

    /// Evicts one entry, if there is any: for a shortage that this quota does not count, such as of file descriptors.
    pub fn evict_one(&self, now: Instant) {
        self.state().evict(&self.0, None, now);
    }

    /// Evicts eligible entries in their order, for as long as `is_short`: for a shortage that this quota does not count.
    pub fn evict_while(&self, now: Instant, is_eligible: impl Fn(&T) -> bool, is_short: impl Fn() -> bool) {
        let mut state = self.state();
        let mut order = state.eviction_order(usize::MAX, now, |entry| is_eligible(&entry.connection));
        while is_short()
            && let Some((number, _)) = order.pop()
        {
            state.evict_entry(&self.0, number);
        }
    }

    /// Closes all connections that are chosen. It is no eviction, and not counted as one.
    pub fn close(&self, is_chosen: impl Fn(&T) -> bool) {
        let mut state = self.state();
        let chosen = state.entries.iter().filter(|(_, entry)| is_chosen(&entry.connection));
        for number in chosen.map(|(number, _)| *number).collect::<Vec<_>>() {
            if let Some(entry) = state.remove(number) {
                entry.connection.evict();
            }
        }
    }

    /// Number of requests that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }

    /// Number of connections that were evicted.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Relaxed)
    }

    /// Number of units in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state().total
    }

    /// Maximum number of units in use.
    #[must_use]
    pub fn max(&self) -> usize {
        self.0.limits.max
    }

    fn state(&self) -> MutexGuard<'_, State<T, V6>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Evictable, const V6: u8> Clone for EvictingQuota<T, V6> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Evictable, const V6: u8> State<T, V6> {
    fn take(
        &mut self,
        quota: &Inner<T, V6>,
        client: QuotaClient,
        units: usize,
        connection: &Arc<T>,
        now: Instant,
    ) -> Option<u64> {
        let prefix = Prefix::of(client.ip);
        let site = Site::of(client.ip);
        let of_client = self.by_client.get(&prefix).copied().unwrap_or(0).saturating_add(units);
        let limits = &quota.limits;
        if units > limits.max || !client.is_exempt && of_client > limits.max_per_client {
            return None;
        }
        let is_privileged = client.is_privileged;
        let newcomer = Newcomer { client: prefix, site, units, is_privileged };
        while self.total.saturating_add(units) > limits.max {
            if !self.evict(quota, Some(newcomer), now) {
                return None;
            }
        }
        let number = self.next;
        self.next += 1;
        self.total += units;
        *self.by_client.entry(prefix).or_default() += units;
        *self.by_site.entry(site).or_default() += units;
        let connection = Arc::clone(connection);
        self.entries.insert(number, Entry { connection, client: prefix, site, units, is_privileged, taken_at: now });
        Some(number)
    }

    /// Evicts one entry, in favour of a newcomer if there is one. Returns whether there was one that may be evicted.
    fn evict(&mut self, quota: &Inner<T, V6>, newcomer: Option<Newcomer<V6>>, now: Instant) -> bool {
        let min_age = quota.limits.min_age;
        let is_old = |entry: &Entry<T, V6>| now.saturating_duration_since(entry.taken_at) >= min_age;
        let may_evict = |state: &Self, number: u64| match newcomer {
            Some(newcomer) if !quota.limits.evicts_own => state.is_heavier(number, &newcomer),
            _ => true,
        };
        if self.candidates_at.is_none_or(|at| now.saturating_duration_since(at) > CANDIDATES_TTL) {
            self.candidates.clear();
        }
        while let Some((number, progress_at)) = self.candidates.pop() {
            // It may have made progress since it was chosen.
            if self.entries.get(&number).is_some_and(|entry| entry.connection.activity().progress_at == progress_at)
                && may_evict(self, number)
            {
                return self.evict_entry(quota, number);
            }
        }
        let count = (self.entries.len() / MAX_CANDIDATES).clamp(1, MAX_CANDIDATES);
        self.candidates = self.eviction_order(count, now, |entry| !entry.is_privileged && is_old(entry));
        self.candidates_at = Some(now);
        while let Some((number, _)) = self.candidates.pop() {
            if may_evict(self, number) {
                return self.evict_entry(quota, number);
            }
        }
        if !newcomer.is_some_and(|newcomer| newcomer.is_privileged) {
            return false;
        }
        let chosen = self.eviction_order(1, now, |entry| entry.is_privileged && is_old(entry)).pop();
        chosen.is_some_and(|(number, _)| may_evict(self, number) && self.evict_entry(quota, number))
    }

    /// Whether the site of an entry, or its client if the site is the same, has at least as many units as the newcomer would
    /// have.
    fn is_heavier(&self, number: u64, newcomer: &Newcomer<V6>) -> bool {
        let Some(entry) = self.entries.get(&number) else { return false };
        if newcomer.is_privileged && !entry.is_privileged {
            return true;
        }
        let of_site = |site| self.by_site.get(site).copied().unwrap_or(0);
        let of_client = |client| self.by_client.get(client).copied().unwrap_or(0);
        if entry.site == newcomer.site {
            of_client(&entry.client) >= of_client(&newcomer.client).saturating_add(newcomer.units)
        } else {
            of_site(&entry.site) >= of_site(&newcomer.site).saturating_add(newcomer.units)
        }
    }

    fn evict_entry(&mut self, quota: &Inner<T, V6>, number: u64) -> bool {
        // It is no longer counted, although the task of the connection has yet to end.
        let Some(entry) = self.remove(number) else { return false };
        entry.connection.evict();
        quota.evicted.fetch_add(1, Relaxed);
        true
    }

    /// Up to `count` entries in the reverse of the order in which they are to be evicted.
    fn eviction_order(
        &self,
        count: usize,
        now: Instant,
        is_eligible: impl Fn(&Entry<T, V6>) -> bool,
    ) -> Vec<(u64, Instant)> {
        let rank = |(&number, entry): (&u64, &Entry<T, V6>)| {
            let Activity { phase, progress_at } = entry.connection.activity();
            let class = match phase {
                Phase::Closing => 0,
                Phase::New if now.saturating_duration_since(progress_at) > REQUEST_GRACE => 1,
                _ => 2,
            };
            let of_site = self.by_site.get(&entry.site).copied().unwrap_or(0);
            let of_client = self.by_client.get(&entry.client).copied().unwrap_or(0);
            (
                (class, Reverse(of_site), Reverse(of_client), phase, Reverse(entry.units), progress_at, number),
                progress_at,
            )
        };
        let mut ranked: Vec<_> = self.entries.iter().filter(|(_, entry)| is_eligible(entry)).map(rank).collect();
        if count < ranked.len() {
            ranked.select_nth_unstable(count);
            ranked.truncate(count);
        }
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.into_iter().map(|(key, progress_at)| (key.6, progress_at)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<Entry<T, V6>> {
        let entry = self.entries.remove(&number)?;
        self.total -= entry.units;
        subtract(&mut self.by_client, &entry.client, entry.units);
        subtract(&mut self.by_site, &entry.site, entry.units);
        Some(entry)
    }
}

impl<T: Evictable, const V6: u8> Drop for EvictingPermit<T, V6> {
    fn drop(&mut self) {
        self.quota.state().remove(self.number);
    }
}

/// Subtracts from a count, and removes it when it reaches zero.
fn subtract<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K, units: usize) {
    if let Some(count) = counts.get_mut(key) {
        *count -= units;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
