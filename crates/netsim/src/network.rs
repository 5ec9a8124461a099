//! The network: its nodes, its links, and what happens when a machine sends something.

use crate::{
    Counters, Fate, Link, Log, Node, NodeId, Record, Rng,
    flight::{Flight, Flyer},
    node::{AnyMachine, Holder, Outbox},
    paths::{Map, Paths},
};
use rallypoint_machine::Machine;
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A virtual network with a virtual clock. See the [first page](crate) for how to use it.
///
/// Its methods come in groups: nodes and their machines, links and trouble, what happened, time. Those that take a node
/// panic if it has been removed.
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) start: Instant,
    pub(crate) now: Instant,
    pub(crate) flight: Flight,
    /// When nodes want to be woken. At most one entry per node.
    pub(crate) wakes: BTreeSet<(Instant, NodeId)>,
    /// What the test has planned, in the order of time and then of planning.
    pub(crate) plans: BTreeMap<(Instant, u64), Plan>,
    pub(crate) planned: u64,
    /// How many things have happened at this instant.
    pub(crate) at_this_instant: u32,
    pub(crate) nodes: Vec<Entry>,
    pub(crate) addresses: Map<SocketAddr, NodeId>,
    /// Changes whenever `addresses` changes.
    pub(crate) epoch: u64,
    pub(crate) paths: Paths,
    pub(crate) filter: Option<Filter>,
    pub(crate) filtered: Vec<u8>,
    pub(crate) log: Log,
    pub(crate) totals: Counters,
    rng: Rng,
    pub(crate) outbox: Outbox,
}

/// A datagram that is being sent, as a filter sees it.
#[derive(Debug)]
pub struct Packet<'a> {
    /// When, from the start of the network.
    pub at: Duration,
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The bytes; a filter may change them.
    pub bytes: &'a mut Vec<u8>,
}

/// What a filter says about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, with what the filter made of its bytes.
    Pass,
    /// It is lost.
    Drop,
}

pub(crate) type Plan = Box<dyn FnOnce(&mut Network)>;
pub(crate) type Filter = Box<dyn FnMut(Packet<'_>) -> Verdict>;

pub(crate) struct Entry {
    pub(crate) address: SocketAddr,
    /// None if it has been removed.
    pub(crate) machine: Option<Box<dyn AnyMachine>>,
    /// Its entry in `wakes`.
    pub(crate) wake: Option<Instant>,
    pub(crate) isolated: bool,
    /// How often it was woken at which instant.
    pub(crate) woken: (Instant, u32),
}

/// Nodes and their machines.
impl Network {
    /// An empty network; the same seed gives the same run. The clock starts at some time and only moves in `run_*`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let now = Instant::now();
        Self {
            seed,
            start: now,
            now,
            flight: Flight::default(),
            wakes: BTreeSet::new(),
            plans: BTreeMap::new(),
            planned: 0,
            at_this_instant: 0,
            nodes: Vec::new(),
            addresses: Map::default(),
            epoch: 0,
            paths: Paths::new(seed),
            filter: None,
            filtered: Vec::new(),
            log: Log::default(),
            totals: Counters::default(),
            rng: Rng::stream(seed, u64::MAX),
            outbox: Outbox::default(),
        }
    }

    /// Adds a node and sends what it has to send.
    ///
    /// # Panics
    /// If another node has the address.
    pub fn add<M: Machine + 'static>(&mut self, address: impl Into<SocketAddr>, machine: M) -> Node<M> {
        let (node, address) = (Node::new(self.nodes.len()), address.into());
        self.claim(address, node.id());
        let machine = Some(Box::new(Holder { machine, events: VecDeque::new() }) as Box<dyn AnyMachine>);
        self.nodes.push(Entry { address, machine, wake: None, isolated: false, woken: (self.start, 0) });
        self.drain(node.id());
        node
    }

    /// Looks at a machine.
    pub fn machine<M: Machine + 'static>(&self, node: Node<M>) -> &M {
        let any: &dyn Any = self.nodes[node.id().index()].machine.as_deref().expect("a node that was not removed");
        &any.downcast_ref::<Holder<M>>().expect("a node of this network").machine
    }

    /// Calls a command on a machine, then sends what it has to send.
    pub fn with<M: Machine + 'static, R>(&mut self, node: Node<M>, command: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.now;
        let result = command(&mut self.holder(node).machine, now);
        self.drain(node.id());
        result
    }

    /// Takes what a machine has told its owner, with the times.
    pub fn take_events<M: Machine + 'static>(&mut self, node: Node<M>) -> Vec<(Instant, M::Event)> {
        self.holder(node).events.drain(..).collect()
    }

    /// Takes the next event of a machine.
    pub fn take_event<M: Machine + 'static>(&mut self, node: Node<M>) -> Option<(Instant, M::Event)> {
        self.holder(node).events.pop_front()
    }

    /// Restarts a node: another machine at the same place, without the memory of the old one, which is given back.
    /// Events that were not taken stay.
    pub fn replace<M: Machine + 'static>(&mut self, node: Node<M>, machine: M) -> M {
        let old = mem::replace(&mut self.holder(node).machine, machine);
        self.drain(node.id());
        old
    }

    /// Removes a node and gives its machine back. What is sent to it finds nobody.
    pub fn remove<M: Machine + 'static>(&mut self, node: Node<M>) -> M {
        let entry = &mut self.nodes[node.id().index()];
        let any: Box<dyn Any> = entry.machine.take().expect("a node that was not removed");
        if let Some(wake) = entry.wake.take() {
            self.wakes.remove(&(wake, node.id()));
        }
        self.addresses.retain(|_, owner| *owner != node.id());
        self.epoch += 1;
        any.downcast::<Holder<M>>().expect("a node of this network").machine
    }

    /// The address of a node.
    pub fn address(&self, node: impl Into<NodeId>) -> SocketAddr {
        self.nodes[node.into().index()].address
    }

    /// Whether a node has this address, as its own or as an alias.
    #[must_use]
    pub fn is_taken(&self, address: SocketAddr) -> bool {
        self.addresses.contains_key(&address)
    }

    /// Gives a node another address, as a NAT does that has forgotten it: what it sends from now on comes from there, and
    /// what is sent (or on the way) to the old address finds nobody. Its links stay the same.
    ///
    /// # Panics
    /// If another node has the address.
    pub fn rebind(&mut self, node: impl Into<NodeId>, address: impl Into<SocketAddr>) {
        let (node, address) = (node.into(), address.into());
        self.addresses.remove(&self.address(node));
        self.alias(node, address);
        self.nodes[node.index()].address = address;
    }

    /// Lets a node also receive what is sent to this address; after [`rebind`](Self::rebind), for example, to the old one.
    ///
    /// # Panics
    /// If another node has the address.
    pub fn alias(&mut self, node: impl Into<NodeId>, address: impl Into<SocketAddr>) {
        let node = node.into();
        assert!(self.nodes[node.index()].machine.is_some(), "a node that was not removed");
        self.claim(address.into(), node);
    }

    fn claim(&mut self, address: SocketAddr, node: NodeId) {
        let owner = *self.addresses.entry(address).or_insert(node);
        assert!(owner == node, "{address} belongs to node {} already", owner.0);
        self.epoch += 1;
    }

    fn holder<M: Machine + 'static>(&mut self, node: Node<M>) -> &mut Holder<M> {
        let machine = self.nodes[node.id().index()].machine.as_deref_mut().expect("a node that was not removed");
        (machine as &mut dyn Any).downcast_mut().expect("a node of this network")
    }
}

/// Links and trouble.
impl Network {
    /// Sets the link of all pairs that have no link of their own. The default is perfect.
    pub fn set_default_link(&mut self, link: Link) {
        self.paths.set_default(link);
    }

    /// Sets the link in one direction. What is on the way stays on the way.
    pub fn set_link(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>, link: Link) {
        self.paths.set(from.into(), to.into(), link);
    }

    /// Sets the links in both directions.
    pub fn set_links(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, link: Link) {
        let (a, b) = (a.into(), b.into());
        self.set_link(a, b, link);
        self.set_link(b, a, link);
    }

    /// The link in one direction.
    pub fn link(&self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> Link {
        self.paths.link(from.into(), to.into())
    }

    /// Lets several directions (from, to) share one link, the first one's: one rate, one queue, as at a server's uplink.
    /// From then on, setting the link of one of them sets it for all.
    pub fn share_link(&mut self, directions: &[(NodeId, NodeId)]) {
        for &other in directions.iter().skip(1) {
            self.paths.share(directions[0], other);
        }
    }

    /// Cuts the path between two nodes in both directions, or mends it. What is on the way still arrives.
    pub fn partition(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, cut: bool) {
        let (a, b) = (a.into(), b.into());
        for (from, to) in [(a, b), (b, a)] {
            let route = self.paths.route(from, to);
            self.paths.at(route).cut = cut;
        }
    }

    /// Cuts a node off from all others, or lets it back. What is on the way still arrives.
    pub fn isolate(&mut self, node: impl Into<NodeId>, cut: bool) {
        self.nodes[node.into().index()].isolated = cut;
    }

    /// Shows every datagram that a machine sends to this function first, which may alter or drop it. There is at most one;
    /// chance for it can come from a [fork](Rng::fork) of [`Network::rng`].
    pub fn set_filter(&mut self, filter: impl FnMut(Packet<'_>) -> Verdict + 'static) {
        self.filter = Some(Box::new(filter));
    }

    /// Removes the filter.
    pub fn clear_filter(&mut self) {
        self.filter = None;
    }

    /// A forged datagram: it arrives now (as soon as the network runs), from any address, and no link or filter touches it.
    pub fn inject(&mut self, from: impl Into<SocketAddr>, to: impl Into<SocketAddr>, bytes: &[u8]) {
        let (from, to) = (from.into(), to.into());
        self.totals.forged.add(bytes.len());
        let record = self.log.is_on().then(|| {
            let fate = Fate::InFlight { arrives: self.elapsed() };
            self.log.push(Record { forged: true, ..Record::new(self.elapsed(), from, to, bytes, fate) })
        });
        let bytes = self.flight.buffer(bytes);
        let receiver = self.addresses.get(&to).copied();
        self.flight.push(self.now, Flyer { from, to, bytes, route: None, record, receiver, epoch: self.epoch });
    }

    /// Chance for the test itself, and to seed machines with: a stream of its own, which no link uses.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

/// What happened.
impl Network {
    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// What became of the datagrams from one node to another.
    pub fn counters(&self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> Counters {
        self.paths.counters(from.into(), to.into())
    }

    /// What became of all datagrams.
    #[must_use]
    pub fn totals(&self) -> Counters {
        self.totals
    }

    /// How many datagrams are on the way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// From now on, keeps the last `limit` datagrams in the [log](Self::log); 0 ends it.
    pub fn record(&mut self, limit: usize) {
        self.log.set_limit(limit);
    }

    /// What was sent since [`record`](Self::record).
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Network {
    /// A test that fails says how to repeat it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("netsim: seed {}, {:?} after the start\n{}", self.seed, self.elapsed(), self.log);
        }
    }
}
