//! The order in which waiting requests are rendered: sites take turns, and those that have paused go first.
//!
//! The site (IPv4 /24, IPv6 /48) that was served longest ago goes first, and of one site the customer (IPv4 address, IPv6 /56) that
//! was served longest ago. A client that sends as many requests as it may waits behind one that sends a few, and a network of such
//! clients has the turns of one site.
//!
//! Turns alone do not protect a visitor from many sites: a hundred of them that always have a request waiting get as many turns
//! each as a person. The pause distinguishes them: a person reads a page before the next request. So requests of sites that have
//! paused go first. A site that pauses as a person does, but on purpose, gains no more than a person.

use rallypoint_limit::{Customer, Site};
use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Maximum number of requests that wait.
const MAX_WAITING: usize = 64;

/// Time without a request after which the next one of a site goes first.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of consecutive turns that go to sites that have paused: the next one is shared by all.
const MAX_AFTER_PAUSE: u32 = 4;

/// Maximum number of sites, and of customers, whose last turn is remembered.
const MAX_REMEMBERED: usize = 4_096;

/// Waiting requests.
#[derive(Debug)]
pub(super) struct RenderQueue<T> {
    waiting: Vec<Waiting<T>>,
    /// Number of the next request.
    next: u64,
    sites: LastTurns<Site>,
    customers: LastTurns<Customer>,
    /// Number of consecutive turns that went to sites that had paused.
    after_pause: u32,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    number: u64,
    ip: IpAddr,
    /// Whether it is the first request of its site after a pause.
    is_after_pause: bool,
}

/// When a site or customer was served or refused last.
#[derive(Debug)]
struct LastTurns<K>(HashMap<K, Instant>);

impl<T> Default for RenderQueue<T> {
    fn default() -> Self {
        let (sites, customers) = (LastTurns(HashMap::new()), LastTurns(HashMap::new()));
        Self { waiting: Vec::new(), next: 0, sites, customers, after_pause: 0 }
    }
}

impl<T> RenderQueue<T> {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.waiting.retain(|waiting| is_kept(&waiting.item));
    }

    /// Adds a request. If too many wait, the last one of the site that has most of them is removed and returned; it may be the new
    /// one.
    pub fn push(&mut self, ip: IpAddr, item: T, now: Instant) -> Option<T> {
        let is_after_pause = self.has_paused(Site::of(ip), now);
        self.waiting.push(Waiting { item, number: self.next, ip, is_after_pause });
        self.next += 1;
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        let mut sites = HashMap::<Site, usize>::new();
        let mut customers = HashMap::<Customer, usize>::new();
        for Waiting { ip, .. } in &self.waiting {
            *sites.entry(Site::of(*ip)).or_default() += 1;
            *customers.entry(Customer::of(*ip)).or_default() += 1;
        }
        let last = (0..self.waiting.len()).max_by_key(|&index| {
            let Waiting { ip, number, is_after_pause, .. } = self.waiting[index];
            (!is_after_pause, sites[&Site::of(ip)], customers[&Customer::of(ip)], number)
        })?;
        let refused = self.waiting.swap_remove(last);
        // A request that is refused is no pause.
        self.record_turn(refused.ip, now);
        Some(refused.item)
    }

    /// Whether a site has no other request, and has had none for a while.
    pub fn has_paused(&self, site: Site, now: Instant) -> bool {
        self.sites.get(&site).is_none_or(|at| now.saturating_duration_since(at) >= PAUSE)
            && !self.waiting.iter().any(|waiting| Site::of(waiting.ip) == site)
    }

    /// Removes the request that is to be rendered next, with the address of its client, and whether its site had paused. Without a
    /// shared turn only such requests are eligible.
    pub fn pop(&mut self, has_shared_turn: bool, now: Instant) -> Option<(IpAddr, T, bool)> {
        let first_after_pause = (0..self.waiting.len())
            .filter(|&index| self.waiting[index].is_after_pause)
            .filter(|_| !has_shared_turn || self.after_pause < MAX_AFTER_PAUSE)
            .min_by_key(|&index| self.waiting[index].number);
        let next = match first_after_pause {
            Some(next) => {
                self.after_pause += 1;
                next
            }
            None if has_shared_turn => {
                self.after_pause = 0;
                (0..self.waiting.len()).min_by_key(|&index| {
                    let Waiting { ip, number, .. } = self.waiting[index];
                    (self.sites.get(&Site::of(ip)), self.customers.get(&Customer::of(ip)), number)
                })?
            }
            None => return None,
        };
        let Waiting { item, ip, is_after_pause, .. } = self.waiting.swap_remove(next);
        self.record_turn(ip, now);
        Some((ip, item, is_after_pause))
    }

    /// Records that a request of a client begins or ends to be rendered, or is refused.
    pub fn record_turn(&mut self, ip: IpAddr, now: Instant) {
        self.sites.set(Site::of(ip), now);
        self.customers.set(Customer::of(ip), now);
    }
}

impl<K: Eq + Hash> LastTurns<K> {
    /// `None`, which comes first, if it is not remembered.
    fn get(&self, key: &K) -> Option<Instant> {
        self.0.get(key).copied()
    }

    fn set(&mut self, key: K, now: Instant) {
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(&key) {
            // Visitors that were served longest ago are forgotten: they are the next ones, remembered or not.
            let mut turns: Vec<_> = self.0.values().map(|at| Reverse(*at)).collect();
            let (_, Reverse(median), _) = turns.select_nth_unstable(MAX_REMEMBERED / 2);
            let median = *median;
            self.0.retain(|_, at| *at > median);
        }
        self.0.insert(key, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const COST: Duration = Duration::from_millis(20);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Renders the next request, and returns it.
    fn render(queue: &mut RenderQueue<&'static str>, now: &mut Instant) -> Option<&'static str> {
        let (ip, item, _) = queue.pop(true, *now)?;
        *now += COST;
        queue.record_turn(ip, *now);
        Some(item)
    }

    #[test]
    fn a_visitor_goes_before_a_network_that_was_served_more_often() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for number in 0..40 {
            queue.push(ip(&format!("2a00:1:1:{number:x}00::1")), "attack", now);
        }
        assert_eq!(render(&mut queue, &mut now), Some("attack"));
        for _ in 0..10 {
            queue.push(ip("2a00:2:2::1"), "visitor", now);
            assert_eq!(render(&mut queue, &mut now), Some("visitor"));
            for _ in 0..3 {
                assert_eq!(render(&mut queue, &mut now), Some("attack"));
                queue.push(ip("2a00:1:1:100::1"), "attack", now);
            }
        }
    }

    /// Sites that are new go first once, not until each was served as often as the visitor.
    #[test]
    fn a_visitor_who_has_browsed_for_a_while_waits_for_one_turn_of_each_new_site() {
        const SITES: u32 = 60;
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for _ in 0..100 {
            queue.push(ip("8.8.8.8"), "visitor", now);
            render(&mut queue, &mut now);
        }
        let attacker = |number: u32| IpAddr::from((0x0901_0101 + (number << 8)).to_be_bytes());
        for number in 0..SITES {
            queue.push(attacker(number), "attack", now);
        }
        queue.push(ip("8.8.8.8"), "visitor", now);
        let mut turns = 0;
        while let Some((ip, item, _)) = queue.pop(true, now)
            && item == "attack"
        {
            now += COST;
            queue.record_turn(ip, now);
            // It has the next request ready.
            queue.push(ip, "attack", now);
            turns += 1;
        }
        assert!(turns <= 2 * SITES, "{turns} turns");
    }

    /// The wait does not depend on the number of sites that always have a request: more than the queue holds, too.
    #[test]
    fn a_visitor_who_pauses_waits_for_one_turn_whatever_the_number_of_attackers() {
        const VISITOR: u32 = u32::MAX;
        const INTERVAL: Duration = Duration::from_secs(1);
        for sites in [1, 10, 64, 200, 1_000] {
            let mut queue = RenderQueue::default();
            let mut now = Instant::now();
            let address = |number| match number {
                VISITOR => ip("8.8.8.8"),
                number => IpAddr::from((0x0901_0101 + (number << 8)).to_be_bytes()),
            };
            // Those that are refused try again after a while.
            let mut refused: VecDeque<(Instant, u32)> = VecDeque::new();
            let mut idle: Vec<u32> = (0..sites).collect();
            // When each of the attackers, which are new at first, has been served or refused.
            let mut next_visit = now + 10 * INTERVAL;
            let mut visits = 0;
            let mut turns = None;
            while visits < 10 {
                let mut arrivals = std::mem::take(&mut idle);
                while let Some((_, number)) = refused.pop_front_if(|(at, _)| *at <= now) {
                    arrivals.push(number);
                }
                if now >= next_visit && turns.is_none() {
                    // It comes last.
                    arrivals.push(VISITOR);
                    next_visit = now + INTERVAL;
                    turns = Some(0);
                }
                for number in arrivals {
                    let last = queue.push(address(number), number, now);
                    assert_ne!(last, Some(VISITOR), "{sites} sites");
                    refused.extend(last.map(|last| (now + PAUSE / 2, last)));
                }
                let (ip, served, _) = queue.pop(true, now).unwrap();
                now += COST;
                queue.record_turn(ip, now);
                if served == VISITOR {
                    assert!(turns.take() <= Some(1), "{sites} sites, visit {visits}");
                    visits += 1;
                } else {
                    idle.push(served);
                    turns = turns.map(|turns| turns + 1);
                }
            }
        }
    }

    #[test]
    fn a_turn_in_reserve_goes_to_sites_that_have_paused_only() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        queue.push(ip("9.9.9.9"), "steady", now);
        assert_eq!(render(&mut queue, &mut now), Some("steady"));
        queue.push(ip("9.9.9.9"), "steady", now);
        assert_eq!(queue.pop(false, now), None);
        for number in 0..2 * MAX_AFTER_PAUSE {
            queue.push(IpAddr::from([8, 8, number as u8, 8]), "visitor", now);
            assert_eq!(queue.pop(false, now).map(|(_, item, _)| item), Some("visitor"));
        }
        assert_eq!(queue.pop(true, now).map(|(_, item, _)| item), Some("steady"));
    }

    #[test]
    fn customers_of_one_site_take_turns() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for _ in 0..20 {
            queue.push(ip("9.9.9.1"), "greedy", now);
        }
        assert_eq!(render(&mut queue, &mut now), Some("greedy"));
        queue.push(ip("9.9.9.2"), "neighbour", now);
        assert_eq!(render(&mut queue, &mut now), Some("neighbour"));
        assert_eq!(render(&mut queue, &mut now), Some("greedy"));
    }

    #[test]
    fn requests_of_one_client_are_rendered_in_their_order() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for item in ["first", "second", "third"] {
            queue.push(ip("9.9.9.9"), item, now);
        }
        let order: Vec<_> = std::iter::from_fn(|| render(&mut queue, &mut now)).collect();
        assert_eq!(order, ["first", "second", "third"]);
    }

    #[test]
    fn a_full_queue_refuses_the_network_with_most() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for number in 0..MAX_WAITING {
            assert_eq!(queue.push(ip(&format!("9.9.9.{number}")), "attack", now), None);
        }
        assert_eq!(queue.push(ip("9.9.9.200"), "one more", now), Some("one more"));
        assert_eq!(queue.push(ip("8.8.8.8"), "visitor", now), Some("attack"));
        render(&mut queue, &mut now);
        assert_eq!(render(&mut queue, &mut now), Some("visitor"), "at the latest after one other");
    }

    #[test]
    fn the_memory_of_turns_is_bounded() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for number in 0..2 * MAX_REMEMBERED as u32 {
            let site = IpAddr::from((0x0901_0100 + (number << 8)).to_be_bytes());
            queue.push(site, "attack", now);
            render(&mut queue, &mut now);
        }
        assert!(queue.sites.0.len() <= MAX_REMEMBERED && queue.customers.0.len() <= MAX_REMEMBERED);
        assert_eq!(queue.sites.get(&Site::of(ip("9.1.1.0"))), None, "the oldest are forgotten");
    }
}
