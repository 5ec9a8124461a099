//! The recent outcomes by source address, which explain to the owner of a server why it is not listed.

use crate::{
    RegistrationOutcome,
    hash::{KeyedHash, KeyedMap},
    index::index_type,
};
use std::{fmt, net::IpAddr, sync::Arc, time::Instant};

/// Number of addresses that are remembered. Beyond it the address that was added first is forgotten.
const MAX_ADDRESSES: usize = 16_384;

/// Number of different outcomes that are remembered per address.
const MAX_PER_ADDRESS: usize = 8;

/// An outcome of datagrams from one address, possibly of several in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentOutcome {
    /// When it last happened.
    pub at: Instant,
    /// The outcome.
    pub outcome: RegistrationOutcome,
    /// The operator's reason, if it was a ban that has one.
    pub reason: Option<Arc<str>>,
    /// The port that was to be registered, if the datagram has one.
    pub port: Option<u16>,
    /// Number of times that it happened in a row.
    pub times: u32,
    /// Whether it is a ban that may have been lifted since: see [`Registry::mark_former_bans`](crate::Registry::mark_former_bans).
    pub is_former_ban: bool,
}

impl RecentOutcome {
    /// Whether the lobby refused what was requested, and would still do so as far as is known.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.outcome.is_refusal() && !self.is_former_ban
    }
}

/// The explanation of the [`RegistrationOutcome`], followed by the operator's reason.
impl fmt::Display for RecentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_with_reason(f, self.outcome, self.reason.as_deref())?;
        if self.is_former_ban {
            f.write_str("; bans were changed since then, and the next registration shows whether this one was lifted")?;
        }
        Ok(())
    }
}

/// Writes the explanation of an outcome, followed by the operator's reason.
pub(crate) fn fmt_with_reason(
    f: &mut fmt::Formatter<'_>,
    outcome: RegistrationOutcome,
    reason: Option<&str>,
) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, "{outcome} ({reason})"),
        None => write!(f, "{outcome}"),
    }
}

index_type! {
    /// A row of [`RecentOutcomes`].
    RowIndex
}

/// Outcomes by source address, in bounded memory.
#[derive(Debug)]
pub(crate) struct RecentOutcomes {
    by_ip: KeyedMap<IpAddr, RowIndex>,
    rows: Vec<Row>,
    /// The row that is reused next.
    next: RowIndex,
}

#[derive(Debug)]
struct Row {
    ip: IpAddr,
    outcomes: Vec<RecentOutcome>,
}

impl RecentOutcomes {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_ip: keyed.map(), rows: Vec::new(), next: RowIndex::new(0) }
    }

    pub fn record(
        &mut self,
        now: Instant,
        ip: IpAddr,
        outcome: RegistrationOutcome,
        port: Option<u16>,
        reason: Option<Arc<str>>,
    ) {
        let row = match self.by_ip.get(&ip) {
            Some(&row) => row,
            None => self.add_row(ip),
        };
        let outcomes = &mut self.rows[row.get()].outcomes;
        if let Some(last) = outcomes.last_mut()
            && last.outcome == outcome
            && last.port == port
            && last.reason == reason
        {
            last.at = now;
            last.times = last.times.saturating_add(1);
            return;
        }
        if outcomes.len() == MAX_PER_ADDRESS {
            outcomes.remove(0);
        }
        outcomes.push(RecentOutcome { at: now, outcome, reason, port, times: 1, is_former_ban: false });
    }

    /// The outcomes of an address, oldest first.
    pub fn of(&self, ip: IpAddr) -> &[RecentOutcome] {
        self.by_ip.get(&ip).map_or(&[], |row| &self.rows[row.get()].outcomes)
    }

    fn add_row(&mut self, ip: IpAddr) -> RowIndex {
        let row = self.next;
        self.next = RowIndex::new((row.get() + 1) % MAX_ADDRESSES);
        if row.get() == self.rows.len() {
            self.rows.push(Row { ip, outcomes: Vec::with_capacity(1) });
        } else {
            let old = &mut self.rows[row.get()];
            self.by_ip.remove(&old.ip);
            old.ip = ip;
            old.outcomes.clear();
            // Most addresses have one outcome. Otherwise all rows would grow in the course of time to the most that one has had.
            old.outcomes.shrink_to(1);
        }
        self.by_ip.insert(ip, row);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn memory_is_bounded_and_the_oldest_address_is_forgotten_first() {
        let mut recent = RecentOutcomes::new(KeyedHash::new(7));
        for n in 0..MAX_ADDRESSES as u32 + 1 {
            recent.record(Instant::now(), Ipv4Addr::from_bits(n).into(), RegistrationOutcome::TooLarge, None, None);
        }
        assert_eq!(recent.rows.len(), MAX_ADDRESSES);
        assert!(recent.of(Ipv4Addr::from_bits(0).into()).is_empty());
        assert_eq!(recent.of(Ipv4Addr::from_bits(1).into()).len(), 1);
    }

    #[test]
    fn a_row_does_not_keep_the_memory_of_its_former_address() {
        let mut recent = RecentOutcomes::new(KeyedHash::new(7));
        let address = |n: usize| Ipv4Addr::from_bits(n as u32).into();
        for n in 0..2 * MAX_ADDRESSES {
            // Addresses of the first round have many outcomes.
            let ports = if n < MAX_ADDRESSES { MAX_PER_ADDRESS as u16 } else { 1 };
            for port in 0..ports {
                recent.record(Instant::now(), address(n), RegistrationOutcome::TooLarge, Some(port), None);
            }
        }
        assert_eq!(recent.rows.iter().map(|row| row.outcomes.capacity()).sum::<usize>(), MAX_ADDRESSES);
    }

    #[test]
    fn repeats_are_counted_and_only_the_last_eight_are_kept() {
        let mut recent = RecentOutcomes::new(KeyedHash::new(7));
        let now = Instant::now();
        let ip = Ipv4Addr::LOCALHOST.into();
        for port in 0..10 {
            recent.record(now, ip, RegistrationOutcome::Unreachable, Some(port), None);
            recent.record(now, ip, RegistrationOutcome::Unreachable, Some(port), None);
        }
        let ports: Vec<_> = recent.of(ip).iter().map(|outcome| (outcome.port, outcome.times)).collect();
        assert_eq!(ports, (2..10).map(|port| (Some(port), 2)).collect::<Vec<_>>());
    }
}
