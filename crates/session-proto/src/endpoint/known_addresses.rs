//! Addresses at which players have proved themselves lately (W65).

use foldhash::quality::FixedState;
use rallypoint_limit::{Lan, Net, Rate, TokenBuckets};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    time::Instant,
};

/// Encrypted logins of one known address that have priority: a few players behind it reconnect at once.
const KNOWN_RATE: Rate = Rate::per_second(2, 8);

/// Number of known addresses, and of those of one network.
const MAX_KNOWN: usize = 1_024;
const MAX_KNOWN_PER_NETWORK: usize = MAX_KNOWN / 8;

/// The addresses of the last players, of which one network has a limited share.
pub(super) struct KnownAddresses {
    addresses: HashSet<Lan, FixedState>,
    per_network: HashMap<Net, usize, FixedState>,
    /// All of them, oldest first.
    order: VecDeque<(Lan, Net)>,
    budget: TokenBuckets<Lan>,
}

impl KnownAddresses {
    pub fn new(seed: u64, budget_seed: u128) -> Self {
        Self {
            addresses: HashSet::with_hasher(FixedState::with_seed(seed)),
            per_network: HashMap::with_hasher(FixedState::with_seed(seed)),
            order: VecDeque::new(),
            budget: TokenBuckets::new(KNOWN_RATE, MAX_KNOWN, budget_seed),
        }
    }

    /// Whether an address is known and has not used its budget.
    pub fn take(&mut self, now: Instant, ip: IpAddr) -> bool {
        let address = Lan::of(ip);
        self.addresses.contains(&address) && self.budget.take(now, address)
    }

    /// Adds an address, in place of the oldest one if there are too many; but not if its network has its share.
    pub fn insert(&mut self, ip: IpAddr) {
        let network = Net::of(ip);
        let of_network = self.per_network.entry(network).or_default();
        if *of_network >= MAX_KNOWN_PER_NETWORK || !self.addresses.insert(Lan::of(ip)) {
            return;
        }
        *of_network += 1;
        self.order.push_back((Lan::of(ip), network));
        if self.order.len() > MAX_KNOWN
            && let Some((oldest, network)) = self.order.pop_front()
        {
            self.addresses.remove(&oldest);
            if let Some(count) = self.per_network.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    self.per_network.remove(&network);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w65_one_host_or_network_does_not_displace_the_known_addresses_of_others() {
        let mut known = KnownAddresses::new(1, 2);
        let now = Instant::now();
        known.insert([192, 0, 2, 1].into());
        (0..2 * MAX_KNOWN).for_each(|_| known.insert([198, 51, 100, 1].into()));
        (0..=255).for_each(|host| known.insert([203, 0, 113, host].into()));
        assert!(known.take(now, [192, 0, 2, 1].into()) && known.take(now, [198, 51, 100, 1].into()));
        assert_eq!(known.order.len(), 2 + MAX_KNOWN_PER_NETWORK);
        for number in 0..2 * MAX_KNOWN as u32 {
            let [a, b, c, _] = number.to_le_bytes();
            known.insert([11, a, b, c].into());
        }
        assert_eq!((known.order.len(), known.addresses.len()), (MAX_KNOWN, MAX_KNOWN));
        assert_eq!(known.per_network.values().sum::<usize>(), MAX_KNOWN);
    }
}
