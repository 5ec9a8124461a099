//! Which link leads from one node to another.

use crate::{Counters, Link, LinkState, NodeId, Rng};
use std::collections::HashMap;

/// The receiver of datagrams to an address that nobody has.
pub(crate) const NOBODY: NodeId = NodeId(u32::MAX);

/// Fast, and not seeded by the system. Nothing may depend on the order in such a map.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

pub(crate) struct Paths {
    seed: u64,
    default: Link,
    by_pair: Map<(NodeId, NodeId), u32>,
    routes: Vec<Route>,
    wires: Vec<Wire>,
}

/// One direction between two nodes.
pub(crate) struct Route {
    wire: u32,
    pub(crate) cut: bool,
    pub(crate) counters: Counters,
}

/// A link; several routes can lead through it.
struct Wire {
    state: LinkState,
    /// It does not follow the default link any more.
    own: bool,
}

impl Paths {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, default: Link::default(), by_pair: Map::default(), routes: Vec::new(), wires: Vec::new() }
    }

    /// The route from one node to another, which is made when it is first needed.
    pub(crate) fn route(&mut self, from: NodeId, to: NodeId) -> u32 {
        *self.by_pair.entry((from, to)).or_insert_with(|| {
            // Each link has its own stream, so that traffic on one does not change what happens on another.
            let rng = Rng::stream(self.seed, u64::from(from.0) << 32 | u64::from(to.0));
            self.wires.push(Wire { state: LinkState::new(self.default, rng), own: false });
            self.routes.push(Route { wire: index(&self.wires), cut: false, counters: Counters::default() });
            index(&self.routes)
        })
    }

    pub(crate) fn at(&mut self, route: u32) -> &mut Route {
        &mut self.routes[route as usize]
    }

    pub(crate) fn link_of(&mut self, route: u32) -> &mut LinkState {
        &mut self.wires[self.routes[route as usize].wire as usize].state
    }

    pub(crate) fn link(&self, from: NodeId, to: NodeId) -> Link {
        let route = self.by_pair.get(&(from, to)).map(|&route| &self.routes[route as usize]);
        route.map_or(self.default, |route| *self.wires[route.wire as usize].state.link())
    }

    pub(crate) fn counters(&self, from: NodeId, to: NodeId) -> Counters {
        let route = self.by_pair.get(&(from, to)).map(|&route| &self.routes[route as usize]);
        route.map_or_else(Counters::default, |route| route.counters)
    }

    pub(crate) fn set_default(&mut self, link: Link) {
        self.default = link;
        for wire in self.wires.iter_mut().filter(|wire| !wire.own) {
            wire.state.set_link(link);
        }
    }

    pub(crate) fn set(&mut self, from: NodeId, to: NodeId, link: Link) {
        let route = self.route(from, to);
        let wire = &mut self.wires[self.routes[route as usize].wire as usize];
        wire.own = true;
        wire.state.set_link(link);
    }

    /// Lets both directions go through the first one's link.
    pub(crate) fn share(&mut self, first: (NodeId, NodeId), other: (NodeId, NodeId)) {
        let (first, other) = (self.route(first.0, first.1), self.route(other.0, other.1));
        self.at(other).wire = self.at(first).wire;
    }
}

/// The index of what was pushed last.
fn index<T>(list: &[T]) -> u32 {
    u32::try_from(list.len() - 1).expect("less than 2^32 routes")
}
