//! The limiter: all budgets that a datagram has to fit in, checked at once.

use crate::{
    BucketKey, Decision, Host, LimiterConfig, LimiterStats, Net, OverBudget, Scope, Site,
    clock::Clock,
    rate::{BucketStates, BudgetParams},
    table::{Slot, Table},
};
use std::{fmt, net::IpAddr, time::Instant};

/// Limits datagrams per address, per network, per site and in total.
///
/// * In: [`check`](Self::check) for every datagram, [`mark_known`](Self::mark_known) for a verified address,
///   [`set_config`](Self::set_config).
/// * Out: the [`Decision`], [`stats`](Self::stats), [`memory`](Self::memory).
///
/// Nothing happens between calls: there is no timer, and time is an argument. A time that jumps ahead or goes back is
/// harmless: buckets are refilled when it goes ahead, and keep their contents when it goes back.
///
/// ```
/// use rallypoint_limit::{Decision, Limiter, LimiterConfig};
/// use std::time::Instant;
///
/// let seed = 0x5eed; // in a server: random and secret
/// let mut limiter = Limiter::new(&LimiterConfig::default(), seed);
/// match limiter.check(Instant::now(), "192.0.2.1".parse().unwrap(), 512) {
///     Decision::Allowed => {} // handle the datagram
///     Decision::Refused(over) => println!("dropped: {over}"),
/// }
/// ```
pub struct Limiter {
    /// Addresses, networks, sites.
    levels: [Level; 3],
    total: BudgetParams,
    used: BucketStates,
    share: Share,
    clock: Clock,
    allowed: u64,
    guaranteed: u64,
    refused: [u64; OverBudget::ALL.len()],
}

struct Level {
    scope: Scope,
    params: BudgetParams,
    table: Table,
}

impl Limiter {
    /// Makes a limiter with full budgets and no known customers. The seed must not be predictable. All memory is allocated
    /// here. The nearest valid values are used for those that [`LimiterConfig::validate`] rejects.
    pub fn new(config: &LimiterConfig, seed: u128) -> Self {
        let level = |scope| Level {
            scope,
            params: BudgetParams::new(config.budget(scope)),
            table: Table::new(config.entries(scope), seed),
        };
        let levels = [Scope::Host, Scope::Net, Scope::Site].map(level);
        let total = BudgetParams::new(config.total);
        Self {
            share: Share::new(config, &total, &levels),
            levels,
            total,
            used: BucketStates::default(),
            clock: Clock::new(),
            allowed: 0,
            guaranteed: 0,
            refused: [0; _],
        }
    }

    /// Decides whether a datagram of `bytes` bytes from (or to) `source` may pass.
    ///
    /// It is charged either to every budget or to none: a refused datagram takes nothing from its neighbours.
    pub fn check(&mut self, now: Instant, source: IpAddr, bytes: usize) -> Decision {
        self.decide(now, source, bytes, true)
    }

    /// Decides about a datagram whose sender has proven itself, when [`check`](Self::check) has refused it because the budget of
    /// its address or network is used up, which a forger can do: it is charged to the total only.
    pub fn check_total(&mut self, now: Instant, source: IpAddr, bytes: usize) -> Decision {
        self.decide(now, source, bytes, false)
    }

    fn decide(&mut self, now: Instant, source: IpAddr, bytes: usize, is_charged_here: bool) -> Decision {
        let now = self.clock.advance(now);
        match self.charge(now, source, bytes as u64, is_charged_here) {
            Ok(()) => {
                self.allowed += 1;
                Decision::Allowed
            }
            Err(over) => {
                self.refused[over.index()] += 1;
                Decision::Refused(over)
            }
        }
    }

    /// Makes a source known at once, instead of after it has come back: for one that has received what was sent to it (so its
    /// address is not forged), or that was known before a restart. Returns false if there is no reserved slot left for it.
    pub fn mark_known(&mut self, now: Instant, source: IpAddr) -> bool {
        let now = self.clock.advance(now);
        let SourceKeys { keys, customer_level, .. } = SourceKeys::of(source);
        let table = &mut self.levels[customer_level].table;
        let mut slot = table.find(keys[customer_level], now);
        let is_known = table.reserve(&mut slot, now);
        if is_known {
            table.put(&slot);
        }
        is_known
    }

    /// Changes the budgets. What was used stays used, and known customers stay known, unless the tables become smaller.
    pub fn set_config(&mut self, config: &LimiterConfig) {
        let now = self.clock.now();
        for level in &mut self.levels {
            level.params = BudgetParams::new(config.budget(level.scope));
            level.table.resize(config.entries(level.scope));
            level.table.adapt(&level.params, now);
        }
        self.total = BudgetParams::new(config.total);
        self.used = self.total.adapt(self.used, now);
        self.share = Share::new(config, &self.total, &self.levels);
    }

    /// Counters since the creation, and how full the tables are.
    pub fn stats(&self) -> LimiterStats {
        let [hosts, nets, sites] = [0, 1, 2].map(|level| self.levels[level].table.counts);
        LimiterStats {
            allowed: self.allowed,
            guaranteed: self.guaranteed,
            refused: self.refused,
            hosts: hosts.entries,
            nets: nets.entries,
            sites: sites.entries,
            known: hosts.known + nets.known,
            evicted: hosts.evicted + nets.evicted + sites.evicted,
            probes: hosts.probes + nets.probes + sites.probes,
        }
    }

    /// Memory of the tables, in bytes. Only [`set_config`](Self::set_config) can change it.
    pub fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.table.memory()).sum()
    }

    /// Charges the total, and the source's own budgets if `is_charged_here`.
    fn charge(&mut self, now: u64, source: IpAddr, bytes: u64, is_charged_here: bool) -> Result<(), OverBudget> {
        let SourceKeys { keys, levels, customer_level } = SourceKeys::of(source);
        let mut slots = [Slot::default(); 3];
        // All are looked up before any is examined, so that their cache misses overlap.
        for index in 0..levels {
            slots[index] = self.levels[index].table.find(keys[index], now);
        }
        let slots = &mut slots[..levels];
        // Before the buckets change: their state shows how long the source was away.
        let is_known = self.levels[customer_level].table.update_known(&mut slots[customer_level], now);
        for (level, slot) in self.levels.iter().zip(&mut *slots).filter(|_| is_charged_here) {
            let buckets = &mut slot.state.buckets;
            *buckets =
                level.params.take(*buckets, now, bytes, 0).map_err(|unit| OverBudget { scope: level.scope, unit })?;
        }
        self.used = match self.total.take(self.used, now, bytes, self.share.reserved) {
            Ok(used) => used,
            Err(unit) => {
                let over = |unit| OverBudget { scope: Scope::Total, unit };
                let share = &mut slots[customer_level].state.share;
                *share = self.share.take(*share, now, &self.total, bytes).filter(|_| is_known).ok_or(over(unit))?;
                let used = self.total.take(self.used, now, bytes, 0).map_err(over)?;
                self.guaranteed += 1;
                used
            }
        };
        for (level, slot) in self.levels.iter_mut().zip(slots) {
            level.table.put(slot);
        }
        Ok(())
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The keys of an address, one for each level.
struct SourceKeys {
    keys: [u128; 3],
    levels: usize,
    /// The level of the [`Customer`](crate::Customer), at which a source can be known: an IPv4 address (the host), or an IPv6
    /// /56 (the network). If every IPv6 address could be known, a single customer could take every reserved slot.
    customer_level: usize,
}

impl SourceKeys {
    fn of(source: IpAddr) -> Self {
        let host = Host::of(source).bits();
        let net = Net::of(source).bits();
        if source.to_canonical().is_ipv4() {
            Self { keys: [host, net, 0], levels: 2, customer_level: 0 }
        } else {
            Self { keys: [host, net, Site::of(source).bits()], levels: 3, customer_level: 1 }
        }
    }
}

/// The guarantee of each known customer: an equal share of the reserved part of the total. All of them together cannot use
/// more than is reserved, so none can use up the share of another.
struct Share {
    /// The reserved part of the total, in percent.
    reserved: u64,
    /// Number of reserved slots.
    slots: u64,
    depth: u64,
}

impl Share {
    fn new(config: &LimiterConfig, total: &BudgetParams, levels: &[Level; 3]) -> Self {
        let depths = [total.packets.depth(), total.bytes.depth()];
        Self {
            reserved: config.reserved(),
            slots: levels.iter().take(2).map(|level| level.table.reserved_slots() as u64).sum(),
            // The total's own burst divided by its own rate: dividing both by the number of slots changes nothing.
            depth: depths.into_iter().filter(|&depth| depth > 0).min().unwrap_or(0),
        }
    }

    /// When the share is full again if a packet is taken out of it now; `None` if it does not fit. One packet always fits a
    /// full share.
    fn take(&self, full_at: u64, now: u64, total: &BudgetParams, bytes: u64) -> Option<u64> {
        let of_total = total.packets.cost(1).max(total.bytes.cost(bytes));
        let cost = of_total.saturating_mul(self.slots).saturating_mul(100).checked_div(self.reserved)?;
        let depth = self.depth.max(cost);
        let missing = full_at.saturating_sub(now).saturating_add(cost);
        (missing <= depth).then(|| now.saturating_add(missing))
    }
}
