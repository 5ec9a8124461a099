//! Every budget a datagram has to fit in, at once.

use crate::{
    BucketKey, Decision, Host, LimiterConfig, LimiterStats, Net, OverBudget, Scope, Site,
    clock::Clock,
    rate::{Meter, Paces},
    table::{Slot, Table},
};
use std::{fmt, net::IpAddr, time::Instant};

/// Budgets per address, per network, per site and in total.
///
/// * In: [`check`](Self::check) for every datagram, [`vouch`](Self::vouch) for an address that has proved itself,
///   [`set_config`](Self::set_config).
/// * Out: the [`Decision`], [`stats`](Self::stats), [`memory`](Self::memory).
///
/// Nothing happens between calls: there is no timer, and time is an argument. A time that jumps ahead or goes back is
/// harmless: buckets fill when it goes ahead, and keep what they have when it goes back.
pub struct Limiter {
    /// Addresses, networks, sites.
    levels: [Level; 3],
    total: Paces,
    used: Meter,
    share: Share,
    clock: Clock,
    allowed: u64,
    guaranteed: u64,
    refused: [u64; OverBudget::ALL.len()],
}

struct Level {
    scope: Scope,
    paces: Paces,
    table: Table,
}

impl Limiter {
    /// All budgets are full, and nobody is known. The seed has to be one that nobody can guess; everything that will
    /// ever be needed is allocated here. Values that [`LimiterConfig::validate`] refuses are taken as the nearest that it
    /// accepts.
    pub fn new(config: &LimiterConfig, seed: u128) -> Self {
        let level = |scope| Level {
            scope,
            paces: Paces::new(config.budget(scope)),
            table: Table::new(config.entries(scope), seed),
        };
        let levels = [Scope::Host, Scope::Net, Scope::Site].map(level);
        let total = Paces::new(config.total);
        Self {
            share: Share::new(config, &total, &levels),
            levels,
            total,
            used: Meter::default(),
            clock: Clock::new(),
            allowed: 0,
            guaranteed: 0,
            refused: [0; _],
        }
    }

    /// Whether a datagram of `bytes` bytes from (or to) `source` may pass.
    ///
    /// Either it is charged to every budget, or to none: what is refused for one reason takes nothing from the
    /// neighbours.
    pub fn check(&mut self, now: Instant, source: IpAddr, bytes: usize) -> Decision {
        let now = self.clock.advance(now);
        match self.charge(now, source, bytes as u64) {
            Ok(()) => {
                self.allowed += 1;
                Decision::Allowed
            }
            Err(refusal) => {
                self.refused[refusal.index()] += 1;
                Decision::Refused(refusal)
            }
        }
    }

    /// Makes a source known at once, instead of after it has come back: for one that was seen to receive what is sent
    /// to it (so it is not forged), or that was known before a restart. False if there is no seat left for it.
    pub fn vouch(&mut self, now: Instant, source: IpAddr) -> bool {
        let now = self.clock.advance(now);
        let Path { keys, party, .. } = Path::of(source);
        let table = &mut self.levels[party].table;
        let mut slot = table.find(keys[party], now);
        let seated = table.give_seat(&mut slot, now);
        if seated {
            table.put(&slot);
        }
        seated
    }

    /// Other budgets from now on. What was used stays used, and who was known stays known, unless there are fewer
    /// entries than before.
    pub fn set_config(&mut self, config: &LimiterConfig) {
        let now = self.clock.now();
        for level in &mut self.levels {
            level.paces = Paces::new(config.budget(level.scope));
            level.table.resize(config.entries(level.scope));
            level.table.adopt(&level.paces, now);
        }
        self.total = Paces::new(config.total);
        self.used = self.total.adopt(self.used, now);
        self.share = Share::new(config, &self.total, &self.levels);
    }

    /// What has happened so far.
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

    /// How many bytes of memory the tables take. Only [`set_config`](Self::set_config) can change it.
    pub fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.table.memory()).sum()
    }

    fn charge(&mut self, now: u64, source: IpAddr, bytes: u64) -> Result<(), OverBudget> {
        let Path { keys, levels, party } = Path::of(source);
        let mut slots = [Slot::default(); 3];
        // All are looked up before any is looked at, so that the memory of one is fetched while another is awaited.
        for index in 0..levels {
            slots[index] = self.levels[index].table.find(keys[index], now);
        }
        let slots = &mut slots[..levels];
        // Before the meter moves: it tells how long the source was away.
        let known = self.levels[party].table.meet(&mut slots[party], now);
        for (level, slot) in self.levels.iter().zip(&mut *slots) {
            let meter = &mut slot.state.meter;
            *meter = level.paces.take(*meter, now, bytes, 0).map_err(|unit| OverBudget { scope: level.scope, unit })?;
        }
        self.used = match self.total.take(self.used, now, bytes, self.share.reserved) {
            Ok(used) => used,
            Err(unit) => {
                let over = |unit| OverBudget { scope: Scope::Total, unit };
                let share = &mut slots[party].state.share;
                *share = self.share.take(*share, now, &self.total, bytes).filter(|_| known).ok_or(over(unit))?;
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

/// The keys of an address, one for each level that it has.
struct Path {
    keys: [u128; 3],
    levels: usize,
    /// The level at which it can be known: what one customer is commonly given, and an attacker can't have many of.
    /// That is an IPv4 address, or an IPv6 /56. If every IPv6 address could be known, a single customer could take
    /// every seat.
    party: usize,
}

impl Path {
    fn of(source: IpAddr) -> Self {
        let host = Host::of(source).bits();
        let net = Net::of(source).bits();
        if source.to_canonical().is_ipv4() {
            Self { keys: [host, net, 0], levels: 2, party: 0 }
        } else {
            Self { keys: [host, net, Site::of(source).bits()], levels: 3, party: 1 }
        }
    }
}

/// What each known source is guaranteed: an equal part of the reserved part of the total. All of them together can't
/// use more than is there, so nobody can use up the share of another.
struct Share {
    /// The reserved part of the total, in percent.
    reserved: u64,
    seats: u64,
    depth: u64,
}

impl Share {
    fn new(config: &LimiterConfig, total: &Paces, levels: &[Level; 3]) -> Self {
        let depths = [total.packets.depth(), total.bytes.depth()];
        Self {
            reserved: config.reserved(),
            seats: levels.iter().take(2).map(|level| level.table.seats() as u64).sum(),
            // The total's own burst divided by its own rate: dividing both by the number of seats changes nothing.
            depth: depths.into_iter().filter(|&depth| depth > 0).min().unwrap_or(0),
        }
    }

    /// When the share is full again if a packet is taken out of it now. One packet always fits a full share.
    fn take(&self, full_at: u64, now: u64, total: &Paces, bytes: u64) -> Option<u64> {
        let of_total = total.packets.cost(1).max(total.bytes.cost(bytes));
        let cost = of_total.saturating_mul(self.seats).saturating_mul(100).checked_div(self.reserved)?;
        let depth = self.depth.max(cost);
        let missing = full_at.saturating_sub(now).saturating_add(cost);
        (missing <= depth).then(|| now.saturating_add(missing))
    }
}
