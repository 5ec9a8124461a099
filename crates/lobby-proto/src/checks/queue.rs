//! The order in which servers are checked when more of them wait than can be checked at once.
//!
//! (W33) Sources can be forged by the thousand, each in a network of its own, so fairness between networks is not enough. An
//! honest server differs from a forgery: it was reached before, or it returns every 30 seconds, or it has not failed yet. So
//! there are four lanes, each with its own capacity and its own share of the checks; to fill all of them, an attacker has to
//! send again and again, from sources that have never been checked.
//!
//! Within a lane, networks take turns; the servers that have returned most often come first. When a lane is full, the network
//! with the most places in it gives one up.

use crate::hash::{KeyedHash, KeyedMap, decrement};
use rallypoint_limit::Site;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The lane of a target, by what is known about it. Places in an earlier lane are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// It was reached before.
    Proven,
    /// It was never checked, and its server has returned.
    Returning,
    /// Nothing is known about it.
    New,
    /// It was not reached by the last check.
    Failed,
}

/// Number of lanes.
pub(super) const LANES: usize = 4;

/// The lane of a target, and the number of times that its server has returned. What is less is checked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub lane: Lane,
    returns: Reverse<u8>,
}

impl Rank {
    /// The returns count while nothing else is known.
    pub const fn new(lane: Lane, returns: u8) -> Self {
        let counted = if matches!(lane, Lane::Returning) { returns } else { 0 };
        Self { lane, returns: Reverse(counted) }
    }
}

/// The order in which lanes are served, over and over. Targets that failed the last check are the least likely to pass.
const SCHEDULE: [Lane; 7] =
    [Lane::Proven, Lane::Returning, Lane::New, Lane::Proven, Lane::Returning, Lane::New, Lane::Failed];

/// Key of a target within its network: more returns come first, then earlier arrival.
type Priority = (Reverse<u8>, u64);

/// The place of a target in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub rank: Rank,
    site: Site,
    arrival: u64,
}

/// A queue of items by lane and network.
#[derive(Debug)]
pub(super) struct CheckQueue<T> {
    lanes: [FairLane<T>; LANES],
    /// Number of items in flight, per network.
    in_flight: KeyedMap<Site, usize>,
    /// Number of items that were ever added.
    arrivals: u64,
    /// Position in [`SCHEDULE`].
    next_turn: usize,
}

impl<T: Copy> CheckQueue<T> {
    pub fn new(keyed: KeyedHash) -> Self {
        let lanes = std::array::from_fn(|_| FairLane::new(keyed));
        Self { lanes, in_flight: keyed.map(), arrivals: 0, next_turn: 0 }
    }

    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.len).sum()
    }

    /// Adds an item to a lane of this capacity. Returns its ticket and the item that was evicted for it; `None` if the lane
    /// is full and no other network has more places in it.
    pub fn push(&mut self, rank: Rank, site: Site, item: T, capacity: usize) -> Option<(Ticket, Option<T>)> {
        let lane = &mut self.lanes[rank.lane as usize];
        let evicted = if lane.len < capacity { None } else { Some(lane.evict(site, rank.returns)?) };
        self.arrivals += 1;
        lane.insert(site, (rank.returns, self.arrivals), item);
        Some((Ticket { rank, site, arrival: self.arrivals }, evicted))
    }

    /// Removes an item that has not been taken.
    pub fn remove(&mut self, Ticket { rank, site, arrival }: Ticket) {
        self.lanes[rank.lane as usize].remove(site, (rank.returns, arrival));
    }

    /// Takes the next item of a network that has fewer than `share` items in flight. The item is in flight then.
    pub fn pop(&mut self, share: usize) -> Option<T> {
        for step in 0..SCHEDULE.len() {
            let turn = (self.next_turn + step) % SCHEDULE.len();
            let Self { lanes, in_flight, .. } = self;
            let is_busy = |site: &Site| in_flight.get(site).is_some_and(|&count| count >= share);
            if let Some((site, item)) = lanes[SCHEDULE[turn] as usize].pop(is_busy) {
                self.next_turn = (turn + 1) % SCHEDULE.len();
                *self.in_flight.entry(site).or_default() += 1;
                return Some(item);
            }
        }
        None
    }

    /// Records that an item of a network is no longer in flight.
    pub fn finish(&mut self, site: Site) {
        decrement(&mut self.in_flight, site);
        self.lanes.iter_mut().for_each(|lane| lane.enqueue(site));
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, in_flight: usize) {
        assert_eq!(self.in_flight.values().sum::<usize>(), in_flight, "in flight per network");
        for lane in &self.lanes {
            lane.check_invariants(|site| self.in_flight.contains_key(site));
        }
    }
}

/// One lane, in which networks take turns.
#[derive(Debug)]
struct FairLane<T> {
    by_site: KeyedMap<Site, SiteQueue<T>>,
    /// Networks in the order of their turns. Networks that have too many items in flight are left out.
    order: BTreeMap<Turn, Site>,
    /// Networks by their number of items; the largest is last.
    sizes: BTreeSet<(usize, Site)>,
    len: usize,
    /// The current round.
    round: u64,
}

/// Key of a network in the order of turns: the returns of its first item, its round, the arrival of its first item.
type Turn = (Reverse<u8>, u64, u64);

/// The waiting items of one network.
#[derive(Debug)]
struct SiteQueue<T> {
    items: BTreeMap<Priority, T>,
    /// The next round in which it takes part.
    round: u64,
    /// Its key in the order; `None` if it is left out.
    turn: Option<Turn>,
}

impl<T: Copy> FairLane<T> {
    fn new(keyed: KeyedHash) -> Self {
        Self { by_site: keyed.map(), order: BTreeMap::new(), sizes: BTreeSet::new(), len: 0, round: 0 }
    }

    fn insert(&mut self, site: Site, priority: Priority, item: T) {
        let is_new = !self.by_site.contains_key(&site);
        let round = self.round + 1;
        let network =
            self.by_site.entry(site).or_insert_with(|| SiteQueue { items: BTreeMap::new(), round, turn: None });
        self.sizes.remove(&(network.items.len(), site));
        network.items.insert(priority, item);
        self.sizes.insert((network.items.len(), site));
        self.len += 1;
        // A network that is left out stays so until one of its items is finished.
        if is_new || network.turn.is_some() {
            self.enqueue(site);
        }
    }

    fn remove(&mut self, site: Site, priority: Priority) -> Option<T> {
        let network = self.by_site.get_mut(&site)?;
        let item = network.items.remove(&priority)?;
        self.len -= 1;
        self.sizes.remove(&(network.items.len() + 1, site));
        if !network.items.is_empty() {
            self.sizes.insert((network.items.len(), site));
        }
        if network.turn.is_some() {
            self.enqueue(site);
        } else if network.items.is_empty() {
            self.by_site.remove(&site);
        }
        Some(item)
    }

    /// Puts a network at its place in the order; a network without items is removed.
    fn enqueue(&mut self, site: Site) {
        let Some(network) = self.by_site.get_mut(&site) else { return };
        if let Some(turn) = network.turn.take() {
            self.order.remove(&turn);
        }
        match network.items.first_key_value() {
            Some((&(returns, arrival), _)) => {
                let turn = (returns, network.round, arrival);
                network.turn = Some(turn);
                self.order.insert(turn, site);
            }
            None => {
                self.by_site.remove(&site);
            }
        }
    }

    fn pop(&mut self, is_busy: impl Fn(&Site) -> bool) -> Option<(Site, T)> {
        loop {
            let (_, site) = self.order.pop_first()?;
            let network = self.by_site.get_mut(&site)?;
            network.turn = None;
            if is_busy(&site) {
                continue;
            }
            self.round = self.round.max(network.round);
            network.round = self.round + 1;
            let (&priority, _) = network.items.first_key_value()?;
            let item = self.remove(site, priority)?;
            self.enqueue(site);
            return Some((site, item));
        }
    }

    /// Evicts an item in favour of one of this network with this number of returns: the last item of the largest network; if
    /// every network has one, the last item of all, unless it has returned more often.
    fn evict(&mut self, site: Site, returns: Reverse<u8>) -> Option<T> {
        let own = self.by_site.get(&site).map_or(0, |network| network.items.len());
        let &(most, largest) = self.sizes.last()?;
        if own >= most {
            return None;
        }
        let loser = if most > 1 {
            largest
        } else {
            let (&(last_returns, ..), &last) = self.order.last_key_value()?;
            if last_returns < returns {
                return None;
            }
            last
        };
        let (&priority, _) = self.by_site.get(&loser)?.items.last_key_value()?;
        self.remove(loser, priority)
    }

    #[cfg(any(test, feature = "invariants"))]
    fn check_invariants(&self, is_busy: impl Fn(&Site) -> bool) {
        assert_eq!(self.by_site.values().map(|network| network.items.len()).sum::<usize>(), self.len, "items");
        assert_eq!(self.sizes.len(), self.by_site.len(), "networks by size");
        for (site, network) in &self.by_site {
            assert!(
                self.sizes.contains(&(network.items.len(), *site)) && !network.items.is_empty(),
                "size of a network"
            );
            match network.turn {
                Some(turn) => assert_eq!(self.order.get(&turn), Some(site), "a network in the order"),
                None => assert!(is_busy(site), "a network that is left out for no reason"),
            }
        }
        assert_eq!(self.order.len(), self.by_site.values().filter(|network| network.turn.is_some()).count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn site(number: u8) -> Site {
        Site::of(IpAddr::from([203, 0, number, 1]))
    }

    const NEW: Rank = Rank::new(Lane::New, 0);

    fn returning(returns: u8) -> Rank {
        Rank::new(Lane::Returning, returns)
    }

    fn queue() -> CheckQueue<u32> {
        CheckQueue::new(KeyedHash::new(7))
    }

    #[test]
    fn networks_take_turns() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)] {
            queue.push(NEW, site(network), item, 100).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(100)).collect();
        assert_eq!(order, [10, 20, 30, 11, 21, 12]);
    }

    #[test]
    fn a_late_network_does_not_wait_for_the_backlog_of_another() {
        let mut queue = queue();
        (0..1_000).for_each(|item| assert!(queue.push(NEW, site(1), item, 10_000).is_some()));
        (0..500).for_each(|_| assert!(queue.pop(1_000).is_some()));
        queue.push(NEW, site(2), 7_777, 10_000).unwrap();
        let next: Vec<_> = (0..2).map_while(|_| queue.pop(1_000)).collect();
        assert!(next.contains(&7_777), "{next:?}");
    }

    #[test]
    fn lanes_take_turns_and_returning_servers_go_first() {
        let mut queue = queue();
        for (rank, item) in [
            (Rank::new(Lane::Failed, 0), 40),
            (NEW, 30),
            (NEW, 31),
            (returning(1), 21),
            (returning(3), 23),
            (Rank::new(Lane::Proven, 0), 10),
        ] {
            queue.push(rank, site(item as u8), item, 100).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(100)).collect();
        assert_eq!(order, [10, 23, 30, 21, 31, 40]);
    }

    #[test]
    fn a_network_with_too_many_items_in_flight_is_skipped_until_one_is_finished() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (2, 20)] {
            queue.push(NEW, site(network), item, 100).unwrap();
        }
        assert_eq!([queue.pop(1), queue.pop(1), queue.pop(1)], [Some(10), Some(20), None]);
        queue.check_invariants(2);
        queue.push(NEW, site(1), 12, 100).unwrap();
        assert_eq!(queue.pop(1), None);
        queue.finish(site(1));
        assert_eq!(queue.pop(1), Some(11));
        queue.check_invariants(2);
    }

    #[test]
    fn in_a_full_lane_the_largest_network_loses_a_place() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (1, 12), (2, 20)] {
            queue.push(NEW, site(network), item, 4).unwrap();
        }
        assert!(queue.push(NEW, site(1), 13, 4).is_none(), "not to itself");
        assert_eq!(queue.push(NEW, site(3), 30, 4).unwrap().1, Some(12));
        assert_eq!(queue.push(NEW, site(4), 40, 4).unwrap().1, Some(11));
        assert_eq!(queue.push(NEW, site(5), 50, 4).unwrap().1, Some(40), "the last of equals");
        queue.check_invariants(0);
    }

    #[test]
    fn in_a_full_lane_the_server_that_has_returned_less_often_loses_its_place() {
        let mut queue = queue();
        queue.push(returning(2), site(1), 10, 2).unwrap();
        queue.push(returning(1), site(2), 20, 2).unwrap();
        assert_eq!(queue.push(returning(2), site(3), 30, 2).unwrap().1, Some(20));
        assert!(queue.push(returning(1), site(4), 40, 2).is_none());
    }
}
