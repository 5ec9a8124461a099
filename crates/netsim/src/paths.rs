//! Which link leads from one node to another.

use crate::{
    Arrival, Bottleneck, Counters, Link, LinkResult, LinkState, Loss, NodeId, Rng,
    in_flight::InFlight,
    link::{BottleneckQueue, RateChange},
    network::BottleneckId,
};
use std::{collections::HashMap, time::Instant};

/// The receiver of datagrams to an address that no node has.
pub(crate) const NO_NODE: NodeId = NodeId(u32::MAX);

/// Fast, and not seeded by the system. Nothing may depend on the order in such a map.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// All routes, and the links that they lead through.
pub(crate) struct Paths {
    seed: u64,
    default: Link,
    by_pair: Map<(NodeId, NodeId), RouteIndex>,
    routes: Vec<Route>,
    links: Vec<ActiveLink>,
    bottlenecks: Vec<(Bottleneck, BottleneckQueue)>,
}

/// Position of a [`Route`] in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteIndex(u32);

/// Position of an [`ActiveLink`] in its list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LinkIndex(u32);

/// Bottlenecks whose rate has changed while something was in their queues.
pub(crate) struct RateChanges {
    links: Map<LinkIndex, RateChange>,
    bottleneck: Option<(BottleneckId, RateChange)>,
}

impl RateChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.bottleneck.is_none()
    }
}

/// One direction between two nodes.
pub(crate) struct Route {
    link: LinkIndex,
    /// The bottleneck before the link, which other routes share.
    bottleneck: Option<BottleneckId>,
    pub(crate) is_cut: bool,
    pub(crate) counters: Counters,
}

/// A link in use; several routes can lead through it.
struct ActiveLink {
    state: LinkState,
    /// Whether it was set for this route, so that it no longer follows the default link.
    is_own: bool,
}

impl Paths {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            default: Link::default(),
            by_pair: Map::default(),
            routes: Vec::new(),
            links: Vec::new(),
            bottlenecks: Vec::new(),
        }
    }

    /// The route from one node to another, created at its first use.
    pub(crate) fn route(&mut self, from: NodeId, to: NodeId) -> RouteIndex {
        *self.by_pair.entry((from, to)).or_insert_with(|| {
            // Each link has its own stream of random numbers, so that traffic on one does not change another.
            let rng = Rng::stream(self.seed, u64::from(from.0) << 32 | u64::from(to.0));
            self.links.push(ActiveLink { state: LinkState::new(self.default, rng), is_own: false });
            let link = LinkIndex(last_index(&self.links));
            self.routes.push(Route { link, bottleneck: None, is_cut: false, counters: Counters::default() });
            RouteIndex(last_index(&self.routes))
        })
    }

    pub(crate) fn at(&mut self, route: RouteIndex) -> &mut Route {
        &mut self.routes[route.0 as usize]
    }

    /// Sends a datagram of `len` bytes through the shared bottleneck, if the route has one, and its link.
    pub(crate) fn send(&mut self, route: RouteIndex, now: Instant, len: usize) -> LinkResult {
        let Some(BottleneckId(index)) = self.at(route).bottleneck else {
            return self.active_link(route).state.send(now, len);
        };
        let (bottleneck, queue) = &mut self.bottlenecks[index as usize];
        let Some(departs) = queue.pass(*bottleneck, now, len) else { return LinkResult::Lost(Loss::Queue) };
        // Of two bottlenecks, the first one counts.
        match self.active_link(route).state.send(departs, len) {
            LinkResult::Arrives(first, second) => {
                LinkResult::Arrives(Arrival { departs, ..first }, second.map(|second| Arrival { departs, ..second }))
            }
            lost @ LinkResult::Lost(_) => lost,
        }
    }

    pub(crate) fn link(&self, from: NodeId, to: NodeId) -> Link {
        self.find(from, to).map_or(self.default, |route| *self.links[route.link.0 as usize].state.link())
    }

    pub(crate) fn counters(&self, from: NodeId, to: NodeId) -> Counters {
        self.find(from, to).map_or_else(Counters::default, |route| route.counters)
    }

    pub(crate) fn set_default(&mut self, now: Instant, link: Link) -> RateChanges {
        self.default = link;
        let links = (0..).map(LinkIndex).zip(&mut self.links).filter(|(_, active)| !active.is_own);
        let links = links.filter_map(|(index, active)| Some((index, active.state.set_link(now, link)?))).collect();
        RateChanges { links, bottleneck: None }
    }

    pub(crate) fn set(&mut self, now: Instant, from: NodeId, to: NodeId, link: Link) -> RateChanges {
        let route = self.route(from, to);
        let index = self.at(route).link;
        let active = self.active_link(route);
        active.is_own = true;
        let links = active.state.set_link(now, link).map(|change| (index, change)).into_iter().collect();
        RateChanges { links, bottleneck: None }
    }

    /// Makes the second direction use the first one's link.
    pub(crate) fn share(&mut self, first: (NodeId, NodeId), second: (NodeId, NodeId)) {
        let first = self.route(first.0, first.1);
        let second = self.route(second.0, second.1);
        self.at(second).link = self.at(first).link;
    }

    pub(crate) fn add_bottleneck(&mut self, bottleneck: Bottleneck) -> BottleneckId {
        self.bottlenecks.push((bottleneck, BottleneckQueue::default()));
        BottleneckId(last_index(&self.bottlenecks))
    }

    pub(crate) fn set_bottleneck(&mut self, now: Instant, id: BottleneckId, bottleneck: Bottleneck) -> RateChanges {
        let (link, queue) = &mut self.bottlenecks[id.0 as usize];
        let before = std::mem::replace(link, bottleneck);
        let change = queue.change_rate(now, before, Some(bottleneck));
        RateChanges { links: Map::default(), bottleneck: change.map(|change| (id, change)) }
    }

    /// When a datagram arrives that would have arrived at `at`, after these changes. Those of one link keep their order: `last` are
    /// the times at which its last one arrives.
    pub(crate) fn arrival(
        &mut self,
        changes: &RateChanges,
        last: &mut Map<LinkIndex, Instant>,
        datagram: &mut InFlight,
        at: Instant,
    ) -> Instant {
        let Some(route) = datagram.route.map(|route| &self.routes[route.0 as usize]) else { return at };
        let link = route.link;
        let change = match (route.bottleneck, changes.bottleneck) {
            (Some(own), Some((id, change))) if own == id => change,
            (None, _) => match changes.links.get(&link) {
                Some(change) => *change,
                None => return at,
            },
            _ => return at,
        };
        let delay = at.saturating_duration_since(datagram.departs);
        datagram.departs = change.departs(datagram.departs);
        let last = last.entry(link).or_insert(datagram.departs);
        *last = (datagram.departs + delay).max(*last);
        self.links[link.0 as usize].state.on_rescheduled(at, *last);
        *last
    }

    pub(crate) fn pass_bottleneck(&mut self, from: NodeId, to: NodeId, id: BottleneckId) {
        let route = self.route(from, to);
        self.at(route).bottleneck = Some(id);
    }

    fn find(&self, from: NodeId, to: NodeId) -> Option<&Route> {
        self.by_pair.get(&(from, to)).map(|route| &self.routes[route.0 as usize])
    }

    fn active_link(&mut self, route: RouteIndex) -> &mut ActiveLink {
        &mut self.links[self.routes[route.0 as usize].link.0 as usize]
    }
}

/// The index of the element that was pushed last.
fn last_index<T>(list: &[T]) -> u32 {
    // The memory is full long before.
    u32::try_from(list.len() - 1).expect("fewer than 2^32 routes")
}
