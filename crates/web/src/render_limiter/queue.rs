//! The order in which waiting requests are rendered.
//!
//! A site (IPv4 /24, IPv6 /48) that has used less rendering time recently goes first, and of one site the customer (IPv4 address,
//! IPv6 /56) that has used less. A client that sends as many requests as it may waits behind one that sends a few, and a network
//! of such clients behind all others. Every second turn goes to the site, and of one site the customer, that was served longest
//! ago: otherwise a visitor that has browsed for a while would wait until each of many new sites has used as much as that.

use rallypoint_limit::{Customer, Site};
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Maximum number of requests that wait.
const MAX_WAITING: usize = 64;

/// Time after which used time counts half.
const HALF_LIFE: Duration = Duration::from_secs(4);

/// Maximum number of sites, and of customers, whose used time is remembered.
const MAX_REMEMBERED: usize = 4_096;

/// Cost of a response in seconds that is assumed before the first one was measured.
const FIRST_COST: f64 = 0.005;

/// Weight of the latest response in the average cost.
const COST_WEIGHT: f64 = 0.1;

/// Waiting requests.
#[derive(Debug)]
pub(super) struct RenderQueue<T> {
    waiting: Vec<Waiting<T>>,
    /// Number of the next request.
    next: u64,
    sites: UsedTime<Site>,
    customers: UsedTime<Customer>,
    /// Average cost of a response in seconds.
    cost: f64,
    /// Whether the next turn goes to the site that was served longest ago.
    is_by_age: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    number: u64,
    ip: IpAddr,
}

/// Rendering time in seconds that was charged in advance, and is corrected when a response is rendered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge(f64);

/// Seconds used recently, by site or customer.
#[derive(Debug)]
struct UsedTime<K>(HashMap<K, (f64, Instant)>);

impl<T> Default for RenderQueue<T> {
    fn default() -> Self {
        let (sites, customers) = (UsedTime(HashMap::new()), UsedTime(HashMap::new()));
        Self { waiting: Vec::new(), next: 0, sites, customers, cost: FIRST_COST, is_by_age: false }
    }
}

impl<T> RenderQueue<T> {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.waiting.retain(|waiting| is_kept(&waiting.item));
    }

    /// Adds a request. If too many wait, the one that would be rendered last is removed and returned; it may be the new one.
    pub fn push(&mut self, ip: IpAddr, item: T, now: Instant) -> Option<T> {
        self.waiting.push(Waiting { item, number: self.next, ip });
        self.next += 1;
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        // The time that clients will have used when all their waiting requests are rendered.
        let mut sites = HashMap::<Site, f64>::new();
        let mut customers = HashMap::<Customer, f64>::new();
        for Waiting { ip, .. } in &self.waiting {
            let (site, customer) = (Site::of(*ip), Customer::of(*ip));
            *sites.entry(site).or_insert_with(|| self.sites.get(&site, now)) += self.cost;
            *customers.entry(customer).or_insert_with(|| self.customers.get(&customer, now)) += self.cost;
        }
        let rank =
            |waiting: &Waiting<T>| (sites[&Site::of(waiting.ip)], customers[&Customer::of(waiting.ip)], waiting.number);
        let ranks: Vec<_> = self.waiting.iter().map(rank).collect();
        let last = (0..ranks.len()).max_by(|&one, &other| {
            let (one, other) = (ranks[one], ranks[other]);
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
        })?;
        Some(self.waiting.swap_remove(last).item)
    }

    /// Removes the request that is to be rendered next, with the address of its client.
    pub fn pop(&mut self, now: Instant) -> Option<(IpAddr, T)> {
        let next = (0..self.waiting.len()).min_by(|&one, &other| {
            let (one, other) = (&self.waiting[one], &self.waiting[other]);
            let order = if self.is_by_age {
                let served = |Waiting { ip, .. }: &Waiting<T>| {
                    (self.sites.served(&Site::of(*ip)), self.customers.served(&Customer::of(*ip)))
                };
                served(one).cmp(&served(other))
            } else {
                let site = |waiting: &Waiting<T>| self.sites.get(&Site::of(waiting.ip), now);
                let customer = |waiting: &Waiting<T>| self.customers.get(&Customer::of(waiting.ip), now);
                site(one).total_cmp(&site(other)).then_with(|| customer(one).total_cmp(&customer(other)))
            };
            order.then(one.number.cmp(&other.number))
        })?;
        self.is_by_age = !self.is_by_age;
        let Waiting { item, ip, .. } = self.waiting.swap_remove(next);
        Some((ip, item))
    }

    /// Charges a client with the average cost of a response, when it starts to be rendered.
    pub fn charge(&mut self, ip: IpAddr, now: Instant) -> Charge {
        self.add(ip, self.cost, now);
        Charge(self.cost)
    }

    /// Corrects a charge when the cost of the response is known.
    pub fn settle(&mut self, ip: IpAddr, charge: Charge, cost: Duration, now: Instant) {
        let cost = cost.as_secs_f64();
        self.add(ip, cost - charge.0, now);
        self.cost += (cost - self.cost) * COST_WEIGHT;
    }

    fn add(&mut self, ip: IpAddr, seconds: f64, now: Instant) {
        self.sites.add(Site::of(ip), seconds, now);
        self.customers.add(Customer::of(ip), seconds, now);
    }
}

impl<K: Eq + Hash> UsedTime<K> {
    fn get(&self, key: &K, now: Instant) -> f64 {
        self.0.get(key).map_or(0.0, |used| decayed(*used, now))
    }

    /// When it was served last; `None`, which comes first, if that is not remembered.
    fn served(&self, key: &K) -> Option<Instant> {
        self.0.get(key).map(|(_, at)| *at)
    }

    fn add(&mut self, key: K, seconds: f64, now: Instant) {
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(&key) {
            // Those that have used little are forgotten first.
            let mut used: Vec<f64> = self.0.values().map(|used| decayed(*used, now)).collect();
            let middle = used.len() / 2;
            let (_, median, _) = used.select_nth_unstable_by(middle, f64::total_cmp);
            let median = *median;
            self.0.retain(|_, used| decayed(*used, now) > median);
        }
        let used = self.0.entry(key).or_insert((0.0, now));
        *used = ((decayed(*used, now) + seconds).max(0.0), now);
    }
}

fn decayed((seconds, at): (f64, Instant), now: Instant) -> f64 {
    let age = now.saturating_duration_since(at).as_secs_f64() / HALF_LIFE.as_secs_f64();
    seconds * (-age).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Duration = Duration::from_millis(20);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Renders the next request, and returns it.
    fn render(queue: &mut RenderQueue<&'static str>, now: &mut Instant) -> Option<&'static str> {
        let (ip, item) = queue.pop(*now)?;
        let charge = queue.charge(ip, *now);
        *now += COST;
        queue.settle(ip, charge, COST, *now);
        Some(item)
    }

    #[test]
    fn a_visitor_goes_before_a_network_that_has_used_more() {
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

    /// New sites have used nothing, and would all go first until each has used as much as the visitor.
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
        while let Some((ip, item)) = queue.pop(now)
            && item == "attack"
        {
            let charge = queue.charge(ip, now);
            now += COST;
            queue.settle(ip, charge, COST, now);
            // It has the next request ready.
            queue.push(ip, "attack", now);
            turns += 1;
        }
        assert!(turns <= 2 * SITES, "{turns} turns");
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
    fn used_time_is_forgotten_and_bounded() {
        let mut queue = RenderQueue::default();
        let mut now = Instant::now();
        for number in 0..2 * MAX_REMEMBERED as u32 {
            let site = IpAddr::from((0x0901_0100 + (number << 8)).to_be_bytes());
            queue.push(site, "attack", now);
            render(&mut queue, &mut now);
        }
        assert!(queue.sites.0.len() <= MAX_REMEMBERED && queue.customers.0.len() <= MAX_REMEMBERED);
        let used = queue.sites.get(&Site::of(ip("9.1.1.0")), now);
        assert!(used < 0.001, "{used}");
    }
}
