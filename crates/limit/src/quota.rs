//! A bound on what is in use at the same time, in total and per client: connections, or bytes.

use crate::Customer;
use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A bound on units in use, in total and per [`Customer`]. Clones share it.
///
/// ```
/// use rallypoint_limit::Quota;
///
/// let connections = Quota::new(100, 1);
/// let ip = "192.0.2.1".parse().unwrap();
/// let permit = connections.take(ip, false);
/// assert!(permit.is_some());
/// assert!(connections.take(ip, false).is_none(), "one connection per customer");
/// drop(permit);
/// assert!(connections.take(ip, false).is_some(), "the unit was returned");
/// ```
#[derive(Clone, Debug)]
pub struct Quota(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: usize,
    max_per_customer: usize,
    used: Mutex<Used>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_customer: HashMap<Customer, usize>,
}

/// One or more units in use. Dropping the permit returns them.
#[derive(Debug)]
pub struct QuotaPermit {
    quota: Quota,
    count: usize,
    /// `None` for clients that are exempt from the bound per customer.
    customer: Option<Customer>,
}

impl Quota {
    /// A quota of `max` units in total and `max_per_customer` units per customer.
    #[must_use]
    pub fn new(max: usize, max_per_customer: usize) -> Self {
        Self(Arc::new(Inner { max, max_per_customer, used: Mutex::default(), refused: AtomicU64::new(0) }))
    }

    /// Takes one unit, if one is free. Exempt clients count towards the total only.
    #[must_use]
    pub fn take(&self, ip: IpAddr, is_exempt: bool) -> Option<QuotaPermit> {
        self.take_many(ip, is_exempt, 1)
    }

    /// Takes several units at once, or none if that many are not free.
    #[must_use]
    pub fn take_many(&self, ip: IpAddr, is_exempt: bool, count: usize) -> Option<QuotaPermit> {
        let permit = self.try_take(ip, is_exempt, count);
        if permit.is_none() {
            self.0.refused.fetch_add(1, Relaxed);
        }
        permit
    }

    fn try_take(&self, ip: IpAddr, is_exempt: bool, count: usize) -> Option<QuotaPermit> {
        let mut used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        let total = used.total.checked_add(count).filter(|total| *total <= self.0.max)?;
        let customer = (!is_exempt).then(|| Customer::of(ip));
        if let Some(customer) = customer {
            let of_customer = used.by_customer.get(&customer).copied().unwrap_or_default() + count;
            if of_customer > self.0.max_per_customer {
                return None;
            }
            used.by_customer.insert(customer, of_customer);
        }
        used.total = total;
        drop(used);
        Some(QuotaPermit { quota: self.clone(), count, customer })
    }

    /// Number of requests that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }

    /// Number of units in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut used = self.quota.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.total -= self.count;
        if let Some(customer) = self.customer
            && let Entry::Occupied(mut count) = used.by_customer.entry(customer)
        {
            *count.get_mut() -= self.count;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_and_returned() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let quota = Quota::new(3, 2);
        let first = quota.take(ip("192.0.2.1"), false);
        let second = quota.take(ip("::ffff:192.0.2.1"), false);
        assert!(first.is_some() && second.is_some());
        assert!(quota.take(ip("192.0.2.1"), false).is_none(), "the address has two");
        let exempt = quota.take(ip("192.0.2.1"), true);
        assert!(exempt.is_some(), "exempt clients count towards the total only");
        assert!(quota.take(ip("192.0.2.2"), false).is_none(), "all three are in use");
        assert_eq!(quota.refused(), 2);
        drop((first, exempt));
        assert_eq!(quota.used(), 1);
        assert!(quota.take(ip("192.0.2.1"), false).is_some());
        drop(second);
        assert!(quota.0.used.lock().unwrap().by_customer.is_empty());
    }

    #[test]
    fn several_units_are_taken_at_once_or_not_at_all() {
        let one = "192.0.2.1".parse().unwrap();
        let other = "192.0.2.2".parse().unwrap();
        let quota = Quota::new(10, 6);
        let first = quota.take_many(one, false, 4);
        assert!(first.is_some());
        assert!(quota.take_many(one, false, 3).is_none(), "six per address");
        assert!(quota.take_many(other, true, 7).is_none(), "ten in total");
        assert!(quota.take_many(other, true, usize::MAX).is_none());
        assert_eq!(quota.used(), 4, "a refused request takes nothing");
        drop(first);
        assert!(quota.take_many(one, false, 6).is_some());
        assert_eq!(quota.used(), 0);
        assert!(quota.0.used.lock().unwrap().by_customer.is_empty());
    }
}
