//! What became of the last datagrams of an address, so that its owner can be told why a server is not listed.

use crate::{
    RegistrationOutcome,
    hash::{Keyed, KeyedMap},
};
use std::{fmt, net::IpAddr, sync::Arc, time::Instant};

/// How many addresses are remembered; then the one that was first heard of longest ago is forgotten.
const ADDRESSES: usize = 16_384;

/// How many different outcomes are remembered per address.
const PER_ADDRESS: usize = 8;

/// An outcome that an address had, perhaps several times in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentOutcome {
    /// When it last happened.
    pub at: Instant,
    /// What happened.
    pub outcome: RegistrationOutcome,
    /// What the operator has said about it: the reason of a ban.
    pub reason: Option<Arc<str>>,
    /// The port that was to be registered, if the datagram could be read that far.
    pub port: Option<u16>,
    /// How often it happened in a row.
    pub times: u32,
}

/// In plain words, as [`RegistrationOutcome`] says it, and with the operator's reason.
impl fmt::Display for RecentOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tell(f, self.outcome, self.reason.as_deref())
    }
}

/// An outcome in plain words, and the operator's reason for it.
pub(crate) fn tell(f: &mut fmt::Formatter<'_>, outcome: RegistrationOutcome, reason: Option<&str>) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, "{outcome} ({reason})"),
        None => write!(f, "{outcome}"),
    }
}

/// Outcomes by source address, in memory that does not grow.
#[derive(Debug)]
pub(crate) struct Past {
    by_ip: KeyedMap<IpAddr, u32>,
    rows: Vec<Row>,
    /// The row that is given away next.
    next: usize,
}

#[derive(Debug)]
struct Row {
    ip: IpAddr,
    outcomes: Vec<RecentOutcome>,
}

impl Past {
    pub fn new(keyed: Keyed) -> Self {
        Self { by_ip: keyed.map(), rows: Vec::new(), next: 0 }
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
            Some(&row) => row as usize,
            None => self.row_for(ip),
        };
        let outcomes = &mut self.rows[row].outcomes;
        if let Some(last) = outcomes.last_mut()
            && last.outcome == outcome
            && last.port == port
            && last.reason == reason
        {
            last.at = now;
            last.times = last.times.saturating_add(1);
            return;
        }
        if outcomes.len() == PER_ADDRESS {
            outcomes.remove(0);
        }
        outcomes.push(RecentOutcome { at: now, outcome, reason, port, times: 1 });
    }

    /// The outcomes of an address, the latest last.
    pub fn of(&self, ip: IpAddr) -> &[RecentOutcome] {
        self.by_ip.get(&ip).map_or(&[], |&row| &self.rows[row as usize].outcomes)
    }

    fn row_for(&mut self, ip: IpAddr) -> usize {
        let row = self.next;
        self.next = (self.next + 1) % ADDRESSES;
        if row == self.rows.len() {
            self.rows.push(Row { ip, outcomes: Vec::with_capacity(1) });
        } else {
            let old = &mut self.rows[row];
            self.by_ip.remove(&old.ip);
            old.ip = ip;
            old.outcomes.clear();
        }
        self.by_ip.insert(ip, row as u32);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let (mut past, now) = (Past::new(Keyed::new(7)), Instant::now());
        for n in 0..ADDRESSES as u32 + 1 {
            past.record(now, Ipv4Addr::from_bits(n).into(), RegistrationOutcome::TooLarge, None, None);
        }
        assert_eq!(past.rows.len(), ADDRESSES);
        assert!(past.of(Ipv4Addr::from_bits(0).into()).is_empty());
        assert_eq!(past.of(Ipv4Addr::from_bits(1).into()).len(), 1);
    }

    #[test]
    fn repeats_are_counted_and_only_the_last_eight_are_kept() {
        let (mut past, now, ip) = (Past::new(Keyed::new(7)), Instant::now(), Ipv4Addr::LOCALHOST.into());
        for port in 0..10 {
            past.record(now, ip, RegistrationOutcome::Unreachable, Some(port), None);
            past.record(now, ip, RegistrationOutcome::Unreachable, Some(port), None);
        }
        let ports: Vec<_> = past.of(ip).iter().map(|past| (past.port, past.times)).collect();
        assert_eq!(ports, (2..10).map(|port| (Some(port), 2)).collect::<Vec<_>>());
    }
}
