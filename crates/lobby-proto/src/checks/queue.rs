//! Whose turn it is, when more servers want to be checked than can be.
//!
//! (W33) Sources can be forged by the thousand, each in a network of its own, so being fair to networks is not enough. What an
//! honest server has that a forgery has not: it was reached before, or it comes back every 30 seconds, or it has not failed
//! yet. So there are four lanes, each with its own places and its own part of the turns, and somebody who wants to fill all
//! of them has to send again and again, from sources that have never been checked.
//!
//! Within a lane networks take turns, whoever has come back most often first. When a lane is full, the network with most
//! places gives one up.

use crate::hash::{Keyed, KeyedMap};
use rallypoint_limit::Site;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// What is known of a target that wants to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// It could be reached before.
    Proven,
    /// It has come back, so many times, and was never checked.
    Returning(u8),
    /// Nothing.
    New,
    /// It could not be reached the last time.
    Failed,
}

/// How many lanes there are.
pub(super) const LANES: usize = 4;

/// Who is next, over and over: lanes by index. What has failed is least likely to be worth the while.
const TURNS: [usize; 7] = [0, 1, 2, 0, 1, 2, 3];

/// Where somebody stands: the more returns the further in front, then by arrival.
type Spot = (Reverse<u8>, u64);

/// What finds a place again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub lane: Lane,
    area: Site,
    spot: Spot,
}

impl Lane {
    pub const fn index(self) -> usize {
        match self {
            Self::Proven => 0,
            Self::Returning(_) => 1,
            Self::New => 2,
            Self::Failed => 3,
        }
    }

    const fn returns(self) -> u8 {
        match self {
            Self::Returning(returns) => returns,
            _ => 0,
        }
    }

    /// Whether it is better to stand here than there.
    pub const fn is_before(self, other: Self) -> bool {
        self.index() < other.index() || self.index() == other.index() && self.returns() > other.returns()
    }
}

#[derive(Debug)]
pub(super) struct Queue<T> {
    lanes: [Networks<T>; LANES],
    /// Under way, per network.
    busy: KeyedMap<Site, usize>,
    arrivals: u64,
    next_turn: usize,
}

impl<T: Copy> Queue<T> {
    pub fn new(keyed: Keyed) -> Self {
        Self { lanes: std::array::from_fn(|_| Networks::new(keyed)), busy: keyed.map(), arrivals: 0, next_turn: 0 }
    }

    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.len).sum()
    }

    /// Gives somebody a place, in a lane that has `room` of them. Says where, and who lost a place for it; nothing if the
    /// lane is full, and not of networks that have more in it.
    pub fn push(&mut self, lane: Lane, area: Site, item: T, room: usize) -> Option<(Ticket, Option<T>)> {
        let networks = &mut self.lanes[lane.index()];
        let lost = if networks.len < room { None } else { Some(networks.make_room(area, lane.returns())?) };
        self.arrivals += 1;
        let spot = (Reverse(lane.returns()), self.arrivals);
        networks.insert(area, spot, item);
        Some((Ticket { lane, area, spot }, lost))
    }

    /// Gives up a place.
    pub fn remove(&mut self, Ticket { lane, area, spot }: Ticket) {
        self.lanes[lane.index()].remove(area, spot);
    }

    /// Whose turn it is, of those whose network has fewer than `share` under way. It is under way then.
    pub fn pop(&mut self, share: usize) -> Option<T> {
        for step in 0..TURNS.len() {
            let turn = (self.next_turn + step) % TURNS.len();
            let is_busy = |area: &Site| self.busy.get(area).is_some_and(|&busy| busy >= share);
            if let Some((area, item)) = self.lanes[TURNS[turn]].pop(is_busy) {
                self.next_turn = (turn + 1) % TURNS.len();
                *self.busy.entry(area).or_default() += 1;
                return Some(item);
            }
        }
        None
    }

    /// One of a network is no longer under way.
    pub fn done(&mut self, area: Site) {
        crate::registry::uncount(&mut self.busy, area);
        self.lanes.iter_mut().for_each(|lane| lane.line_up(area));
    }

    pub fn check_invariants(&self, in_flight: usize) {
        assert_eq!(self.busy.values().sum::<usize>(), in_flight, "under way per network");
        for lane in &self.lanes {
            lane.check_invariants(|area| self.busy.contains_key(area));
        }
    }
}

/// One lane: networks take turns.
#[derive(Debug)]
struct Networks<T> {
    by_area: KeyedMap<Site, Network<T>>,
    /// Networks in the order of their turns, by the first of each. Those that have too many under way stand aside.
    order: BTreeMap<(Reverse<u8>, u64, u64), Site>,
    /// The one with most places is last.
    sizes: BTreeSet<(usize, Site)>,
    len: usize,
    /// The round that goes on.
    round: u64,
}

#[derive(Debug)]
struct Network<T> {
    items: BTreeMap<Spot, T>,
    /// The next round that it takes part in.
    round: u64,
    /// Where it is in the order; `None` if it stands aside.
    place: Option<(Reverse<u8>, u64, u64)>,
}

impl<T: Copy> Networks<T> {
    fn new(keyed: Keyed) -> Self {
        Self { by_area: keyed.map(), order: BTreeMap::new(), sizes: BTreeSet::new(), len: 0, round: 0 }
    }

    fn insert(&mut self, area: Site, spot: Spot, item: T) {
        let is_new = !self.by_area.contains_key(&area);
        let round = self.round + 1;
        let network =
            self.by_area.entry(area).or_insert_with(|| Network { items: BTreeMap::new(), round, place: None });
        self.sizes.remove(&(network.items.len(), area));
        network.items.insert(spot, item);
        self.sizes.insert((network.items.len(), area));
        self.len += 1;
        // One that stands aside stays there until it is called.
        if is_new || network.place.is_some() {
            self.line_up(area);
        }
    }

    fn remove(&mut self, area: Site, spot: Spot) -> Option<T> {
        let network = self.by_area.get_mut(&area)?;
        let item = network.items.remove(&spot)?;
        self.len -= 1;
        self.sizes.remove(&(network.items.len() + 1, area));
        if !network.items.is_empty() {
            self.sizes.insert((network.items.len(), area));
        }
        if network.place.is_some() {
            self.line_up(area);
        } else if network.items.is_empty() {
            self.by_area.remove(&area);
        }
        Some(item)
    }

    /// Puts a network where its first one belongs; one that has none is forgotten.
    fn line_up(&mut self, area: Site) {
        let Some(network) = self.by_area.get_mut(&area) else { return };
        if let Some(place) = network.place.take() {
            self.order.remove(&place);
        }
        match network.items.first_key_value() {
            Some((&(returns, arrival), _)) => {
                let place = (returns, network.round, arrival);
                network.place = Some(place);
                self.order.insert(place, area);
            }
            None => {
                self.by_area.remove(&area);
            }
        }
    }

    fn pop(&mut self, is_busy: impl Fn(&Site) -> bool) -> Option<(Site, T)> {
        loop {
            let (_, area) = self.order.pop_first()?;
            let network = self.by_area.get_mut(&area)?;
            network.place = None;
            if is_busy(&area) {
                continue;
            }
            self.round = self.round.max(network.round);
            network.round = self.round + 1;
            let (&spot, _) = network.items.first_key_value()?;
            let item = self.remove(area, spot)?;
            self.line_up(area);
            return Some((area, item));
        }
    }

    /// Takes away a place for somebody of this network who has come back so many times: the last of the network that has
    /// most; if every one has one, the last of all who has come back no more often.
    fn make_room(&mut self, area: Site, returns: u8) -> Option<T> {
        let ours = self.by_area.get(&area).map_or(0, |network| network.items.len());
        let &(most, largest) = self.sizes.last()?;
        if ours >= most {
            return None;
        }
        let loser = if most > 1 {
            largest
        } else {
            let (&(Reverse(theirs), ..), &last) = self.order.last_key_value()?;
            if theirs > returns {
                return None;
            }
            last
        };
        let (&spot, _) = self.by_area.get(&loser)?.items.last_key_value()?;
        self.remove(loser, spot)
    }

    fn check_invariants(&self, is_busy: impl Fn(&Site) -> bool) {
        assert_eq!(self.by_area.values().map(|network| network.items.len()).sum::<usize>(), self.len, "places");
        assert_eq!(self.sizes.len(), self.by_area.len(), "networks by size");
        for (area, network) in &self.by_area {
            assert!(
                self.sizes.contains(&(network.items.len(), *area)) && !network.items.is_empty(),
                "size of a network"
            );
            match network.place {
                Some(place) => assert_eq!(self.order.get(&place), Some(area), "a network in the order"),
                None => assert!(is_busy(area), "a network that nobody calls"),
            }
        }
        assert_eq!(self.order.len(), self.by_area.values().filter(|network| network.place.is_some()).count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn area(number: u8) -> Site {
        Site::of(IpAddr::from([203, 0, number, 1]))
    }

    fn queue() -> Queue<u32> {
        Queue::new(Keyed::new(7))
    }

    #[test]
    fn networks_take_turns() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)] {
            queue.push(Lane::New, area(network), item, 100).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(100)).collect();
        assert_eq!(order, [10, 20, 30, 11, 21, 12]);
    }

    #[test]
    fn a_network_that_comes_late_does_not_wait_for_the_backlog_of_another() {
        let mut queue = queue();
        (0..1_000).for_each(|item| assert!(queue.push(Lane::New, area(1), item, 10_000).is_some()));
        (0..500).for_each(|_| assert!(queue.pop(1_000).is_some()));
        queue.push(Lane::New, area(2), 7_777, 10_000).unwrap();
        let next: Vec<_> = (0..2).map_while(|_| queue.pop(1_000)).collect();
        assert!(next.contains(&7_777), "{next:?}");
    }

    #[test]
    fn lanes_take_turns_and_returns_go_first() {
        let mut queue = queue();
        for (lane, item) in [
            (Lane::Failed, 40),
            (Lane::New, 30),
            (Lane::New, 31),
            (Lane::Returning(1), 21),
            (Lane::Returning(3), 23),
            (Lane::Proven, 10),
        ] {
            queue.push(lane, area(item as u8), item, 100).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(100)).collect();
        assert_eq!(order, [10, 23, 30, 21, 31, 40]);
    }

    #[test]
    fn a_network_with_too_many_under_way_stands_aside_until_one_is_done() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (2, 20)] {
            queue.push(Lane::New, area(network), item, 100).unwrap();
        }
        assert_eq!([queue.pop(1), queue.pop(1), queue.pop(1)], [Some(10), Some(20), None]);
        queue.check_invariants(2);
        queue.push(Lane::New, area(1), 12, 100).unwrap();
        assert_eq!(queue.pop(1), None);
        queue.done(area(1));
        assert_eq!(queue.pop(1), Some(11));
        queue.check_invariants(2);
    }

    #[test]
    fn in_a_full_lane_the_largest_network_makes_room() {
        let mut queue = queue();
        for (network, item) in [(1, 10), (1, 11), (1, 12), (2, 20)] {
            queue.push(Lane::New, area(network), item, 4).unwrap();
        }
        assert!(queue.push(Lane::New, area(1), 13, 4).is_none(), "not for itself");
        assert_eq!(queue.push(Lane::New, area(3), 30, 4).unwrap().1, Some(12));
        assert_eq!(queue.push(Lane::New, area(4), 40, 4).unwrap().1, Some(11));
        assert_eq!(queue.push(Lane::New, area(5), 50, 4).unwrap().1, Some(40), "the last of equals");
        queue.check_invariants(0);
    }

    #[test]
    fn who_has_come_back_less_often_makes_room() {
        let mut queue = queue();
        queue.push(Lane::Returning(2), area(1), 10, 2).unwrap();
        queue.push(Lane::Returning(1), area(2), 20, 2).unwrap();
        assert_eq!(queue.push(Lane::Returning(2), area(3), 30, 2).unwrap().1, Some(20));
        assert!(queue.push(Lane::Returning(1), area(4), 40, 2).is_none());
    }
}
