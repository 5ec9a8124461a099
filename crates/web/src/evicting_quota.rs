//! A bound on what connections have in use: it makes room by closing connections of the network that has most.
//!
//! A client can hold a connection, an event stream or a long response for a long time at no cost, and an attacker with a network
//! of addresses can hold as many as a bound allows. So a full quota does not refuse a client for lack of room. It evicts another
//! one: first a connection that has not made a request, then one of the site (IPv4 /24, IPv6 /48) with most units, of the
//! customer (IPv4 address, IPv6 /56) with most units there, that has made no progress for the longest time.
//!
//! Privileged clients are those of this machine and of networks that are exempt from limits. They are evicted only by each other:
//! health checks, metrics and the admin API work whatever other networks do.

use crate::server::{Connection, Phase};
use rallypoint_limit::{Customer, Site};
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

/// A bound on units in use, in total and per [`Customer`]. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct EvictingQuota(Arc<Inner>);

/// The bounds of an [`EvictingQuota`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaLimits {
    pub max: usize,
    pub max_per_customer: usize,
    /// Age that an entry must have to be evicted: long enough for clients that are not slow to finish.
    pub min_age: Duration,
    /// Whether a customer that has as many units as any other may evict its own. Otherwise it is refused: a client that comes back
    /// at once would evict another one of the same customer, without end.
    pub evicts_own: bool,
}

/// A client that takes units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaClient {
    pub ip: IpAddr,
    /// Whether the bound per customer does not apply.
    pub is_exempt: bool,
}

#[derive(Debug)]
struct Inner {
    limits: QuotaLimits,
    state: Mutex<State>,
    refused: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<u64, Entry>,
    /// Number of the next entry.
    next: u64,
    total: usize,
    by_customer: HashMap<Customer, usize>,
    by_site: HashMap<Site, usize>,
    /// Numbers of eviction candidates, with their progress when they were chosen; the next one to evict comes last.
    candidates: Vec<(u64, Instant)>,
    candidates_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    customer: Customer,
    site: Site,
    units: usize,
    is_privileged: bool,
    taken_at: Instant,
}

/// A client that needs units.
#[derive(Clone, Copy, Debug)]
struct Newcomer {
    customer: Customer,
    site: Site,
    units: usize,
    is_privileged: bool,
}

/// Units in use. Dropping the permit returns them.
#[derive(Debug)]
pub(crate) struct EvictingPermit {
    quota: EvictingQuota,
    number: u64,
}

impl EvictingQuota {
    pub fn new(limits: QuotaLimits) -> Self {
        let inner = Inner { limits, state: Mutex::default(), refused: AtomicU64::new(0), evicted: AtomicU64::new(0) };
        Self(Arc::new(inner))
    }

    /// Takes units for a connection, and evicts others if there are not enough. `None` if the customer has too many, or if nothing
    /// can be evicted.
    #[must_use]
    pub fn take(
        &self,
        client: QuotaClient,
        units: usize,
        connection: &Arc<Connection>,
        now: Instant,
    ) -> Option<EvictingPermit> {
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

    /// Number of requests that were refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }

    /// Number of connections that were evicted.
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Relaxed)
    }

    /// Number of units in use.
    pub fn used(&self) -> usize {
        self.state().total
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(
        &mut self,
        quota: &Inner,
        client: QuotaClient,
        units: usize,
        connection: &Arc<Connection>,
        now: Instant,
    ) -> Option<u64> {
        let customer = Customer::of(client.ip);
        let site = Site::of(client.ip);
        let of_customer = self.by_customer.get(&customer).copied().unwrap_or(0).saturating_add(units);
        let limits = &quota.limits;
        if units > limits.max || !client.is_exempt && of_customer > limits.max_per_customer {
            return None;
        }
        let is_privileged = client.is_exempt || client.ip.to_canonical().is_loopback();
        let newcomer = Newcomer { customer, site, units, is_privileged };
        while self.total.saturating_add(units) > limits.max {
            if !self.evict(quota, Some(newcomer), now) {
                return None;
            }
        }
        let number = self.next;
        self.next += 1;
        self.total += units;
        *self.by_customer.entry(customer).or_default() += units;
        *self.by_site.entry(site).or_default() += units;
        let connection = Arc::clone(connection);
        self.entries.insert(number, Entry { connection, customer, site, units, is_privileged, taken_at: now });
        Some(number)
    }

    /// Evicts one entry, in favour of a newcomer if there is one. Returns whether there was one that may be evicted.
    fn evict(&mut self, quota: &Inner, newcomer: Option<Newcomer>, now: Instant) -> bool {
        let may_evict = |state: &Self, number: u64| match newcomer {
            Some(newcomer) if !quota.limits.evicts_own => state.is_heavier(number, &newcomer),
            _ => true,
        };
        if self.candidates_at.is_none_or(|at| now.saturating_duration_since(at) > CANDIDATES_TTL) {
            self.candidates.clear();
        }
        while let Some((number, progress_at)) = self.candidates.pop() {
            // It may have made progress since it was chosen.
            if self.entries.get(&number).is_some_and(|entry| entry.connection.progress_at() == progress_at)
                && may_evict(self, number)
            {
                return self.evict_entry(quota, number);
            }
        }
        let count = (self.entries.len() / MAX_CANDIDATES).clamp(1, MAX_CANDIDATES);
        self.candidates = self.eviction_order(count, quota.limits.min_age, false, now);
        self.candidates_at = Some(now);
        while let Some((number, _)) = self.candidates.pop() {
            if may_evict(self, number) {
                return self.evict_entry(quota, number);
            }
        }
        if !newcomer.is_some_and(|newcomer| newcomer.is_privileged) {
            return false;
        }
        let chosen = self.eviction_order(1, quota.limits.min_age, true, now).pop();
        chosen.is_some_and(|(number, _)| may_evict(self, number) && self.evict_entry(quota, number))
    }

    /// Whether the site of an entry, or its customer if the site is the same, has at least as many units as the newcomer would
    /// have.
    fn is_heavier(&self, number: u64, newcomer: &Newcomer) -> bool {
        let Some(entry) = self.entries.get(&number) else { return false };
        if newcomer.is_privileged && !entry.is_privileged {
            return true;
        }
        let of_site = |site| self.by_site.get(site).copied().unwrap_or(0);
        let of_customer = |customer| self.by_customer.get(customer).copied().unwrap_or(0);
        if entry.site == newcomer.site {
            of_customer(&entry.customer) >= of_customer(&newcomer.customer).saturating_add(newcomer.units)
        } else {
            of_site(&entry.site) >= of_site(&newcomer.site).saturating_add(newcomer.units)
        }
    }

    fn evict_entry(&mut self, quota: &Inner, number: u64) -> bool {
        let Some(entry) = self.entries.get(&number) else { return false };
        // It is no longer counted, although the task of the connection has yet to end.
        entry.connection.evict();
        self.remove(number);
        quota.evicted.fetch_add(1, Relaxed);
        true
    }

    /// Up to `count` entries in the reverse of the order in which they are to be evicted.
    fn eviction_order(
        &self,
        count: usize,
        min_age: Duration,
        is_privileged: bool,
        now: Instant,
    ) -> Vec<(u64, Instant)> {
        let is_eligible = |entry: &Entry| {
            entry.is_privileged == is_privileged && now.saturating_duration_since(entry.taken_at) >= min_age
        };
        let rank = |(&number, entry): (&u64, &Entry)| {
            let phase = entry.connection.phase();
            let progress_at = entry.connection.progress_at();
            let is_overdue = phase == Phase::New && now.saturating_duration_since(progress_at) > REQUEST_GRACE;
            let of_site = self.by_site.get(&entry.site).copied().unwrap_or(0);
            let of_customer = self.by_customer.get(&entry.customer).copied().unwrap_or(0);
            (
                (!is_overdue, Reverse(of_site), Reverse(of_customer), phase, Reverse(entry.units), progress_at, number),
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

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        self.total -= entry.units;
        subtract(&mut self.by_customer, &entry.customer, entry.units);
        subtract(&mut self.by_site, &entry.site, entry.units);
    }
}

impl Drop for EvictingPermit {
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
