//! The network: its nodes and its links.

use crate::{
    Bottleneck, Counters, DeliveryStatus, Link, Node, NodeId, PacketLog, PacketRecord, Rng,
    in_flight::{InFlight, InFlightQueue},
    node::{AnyMachine, MachineState, Outbox},
    paths::{Map, Paths, RateChanges},
    run::Schedule,
};
use rallypoint_machine::Machine;
use std::{
    any::Any,
    collections::VecDeque,
    mem,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A virtual network with a virtual clock. See the [first page](crate) for an overview.
///
/// Its methods come in groups: nodes and their machines, links and faults, results, time. Those that take a node panic if it
/// has been removed or belongs to another network.
///
/// ```
/// use rallypoint_netsim::{Link, ManualPeer, Network};
/// use std::time::Duration;
///
/// let mut net = Network::new(1);
/// let alice = net.add(([10, 0, 0, 1], 1000), ManualPeer::default());
/// let bob = net.add(([10, 0, 0, 2], 2000), ManualPeer::default());
/// net.set_links(alice, bob, Link::default().delay(Duration::from_millis(25)));
/// let to = net.address(bob);
/// net.with(alice, |alice, _now| alice.send(to, b"hello"));
/// let (_at, (_from, bytes)) = net.wait_event(bob, Duration::from_secs(1)).unwrap();
/// assert_eq!(bytes, b"hello");
/// assert_eq!(net.elapsed(), Duration::from_millis(25));
/// ```
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) start: Instant,
    pub(crate) now: Instant,
    pub(crate) in_flight: InFlightQueue,
    pub(crate) schedule: Schedule,
    pub(crate) nodes: Vec<Entry>,
    pub(crate) addresses: Map<SocketAddr, NodeId>,
    /// Changes whenever `addresses` changes.
    pub(crate) epoch: u64,
    pub(crate) paths: Paths,
    pub(crate) filter: Option<Filter>,
    pub(crate) filtered: Vec<u8>,
    pub(crate) log: PacketLog,
    pub(crate) totals: Counters,
    rng: Rng,
    pub(crate) outbox: Outbox,
}

/// A datagram that is being sent, as a filter sees it.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Time of sending, from the start of the network.
    pub at: Duration,
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Payload, which the filter may change.
    pub bytes: &'a mut Vec<u8>,
}

/// Identifies a bottleneck that several directions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BottleneckId(pub(crate) u32);

/// The action of a filter on a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterAction {
    /// It is sent, with the bytes as the filter left them.
    Pass,
    /// It is dropped.
    Drop,
}

pub(crate) type Filter = Box<dyn FnMut(Packet<'_>) -> FilterAction>;

/// A node: its address, its machine and its timer.
pub(crate) struct Entry {
    pub(crate) address: SocketAddr,
    /// `None` if the node has been removed.
    pub(crate) machine: Option<Box<dyn AnyMachine>>,
    /// Its timer, as in `wakes`.
    pub(crate) wake: Option<Instant>,
    pub(crate) is_isolated: bool,
    /// Time of its last wake-up, and the number of wake-ups at that instant.
    pub(crate) woken: (Instant, u32),
}

/// Nodes and their machines.
impl Network {
    /// An empty network. The same seed gives the same run. The clock starts at an arbitrary time and advances only in `run_*`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let now = Instant::now();
        Self {
            seed,
            start: now,
            now,
            in_flight: InFlightQueue::default(),
            schedule: Schedule::default(),
            nodes: Vec::new(),
            addresses: Map::default(),
            epoch: 0,
            paths: Paths::new(seed),
            filter: None,
            filtered: Vec::new(),
            log: PacketLog::default(),
            totals: Counters::default(),
            rng: Rng::stream(seed, u64::MAX),
            outbox: Outbox::default(),
        }
    }

    /// Adds a node, and sends what it has to send.
    ///
    /// # Panics
    /// If another node has the address.
    pub fn add<M: Machine + 'static>(&mut self, address: impl Into<SocketAddr>, machine: M) -> Node<M> {
        let node = Node::new(self.nodes.len());
        let address = address.into();
        self.claim(address, node.id());
        let machine = Some(Box::new(MachineState { machine, events: VecDeque::new() }) as Box<dyn AnyMachine>);
        self.nodes.push(Entry { address, machine, wake: None, is_isolated: false, woken: (self.start, 0) });
        self.drain(node.id());
        node
    }

    /// The machine of a node.
    pub fn machine<M: Machine + 'static>(&self, node: Node<M>) -> &M {
        let any: &dyn Any = self.nodes[node.id().index()].machine.as_deref().expect("a node that was not removed");
        &any.downcast_ref::<MachineState<M>>().expect("a node of this network").machine
    }

    /// Runs a closure on a machine, then sends what the machine has to send.
    pub fn with<M: Machine + 'static, R>(&mut self, node: Node<M>, command: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.now;
        let result = command(&mut self.state(node).machine, now);
        self.drain(node.id());
        result
    }

    /// Takes the events of a machine, with their times.
    pub fn take_events<M: Machine + 'static>(&mut self, node: Node<M>) -> Vec<(Instant, M::Event)> {
        self.state(node).events.drain(..).collect()
    }

    /// Takes the next event of a machine.
    pub fn take_event<M: Machine + 'static>(&mut self, node: Node<M>) -> Option<(Instant, M::Event)> {
        self.state(node).events.pop_front()
    }

    /// Restarts a node: replaces its machine, and returns the old one. Events that were not taken stay.
    pub fn replace<M: Machine + 'static>(&mut self, node: Node<M>, machine: M) -> M {
        let old = mem::replace(&mut self.state(node).machine, machine);
        self.drain(node.id());
        old
    }

    /// Removes a node and returns its machine. Datagrams to it have no receiver from now on.
    pub fn remove<M: Machine + 'static>(&mut self, node: Node<M>) -> M {
        let entry = &mut self.nodes[node.id().index()];
        let any: Box<dyn Any> = entry.machine.take().expect("a node that was not removed");
        if let Some(wake) = entry.wake.take() {
            self.schedule.wakes.remove(&(wake, node.id()));
        }
        self.addresses.retain(|_, owner| *owner != node.id());
        self.epoch += 1;
        any.downcast::<MachineState<M>>().expect("a node of this network").machine
    }

    /// The address of a node.
    pub fn address(&self, node: impl Into<NodeId>) -> SocketAddr {
        self.nodes[node.into().index()].address
    }

    /// Whether a node has this address, as its own or as an alias.
    #[must_use]
    pub fn is_address_used(&self, address: SocketAddr) -> bool {
        self.addresses.contains_key(&address)
    }

    /// Gives a node another address, as a NAT does whose mapping has expired: the node sends from there from now on, and
    /// datagrams to the old address, also those in flight, have no receiver. Its links stay the same.
    ///
    /// # Panics
    /// If another node has the address.
    pub fn rebind(&mut self, node: impl Into<NodeId>, address: impl Into<SocketAddr>) {
        let node = node.into();
        let address = address.into();
        self.addresses.remove(&self.address(node));
        self.alias(node, address);
        self.nodes[node.index()].address = address;
    }

    /// Makes a node also receive datagrams to this address; for example, after [`rebind`](Self::rebind), to the old one.
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

    fn state<M: Machine + 'static>(&mut self, node: Node<M>) -> &mut MachineState<M> {
        let machine = self.nodes[node.id().index()].machine.as_deref_mut().expect("a node that was not removed");
        (machine as &mut dyn Any).downcast_mut().expect("a node of this network")
    }
}

/// Links and faults.
impl Network {
    /// Sets the link of all pairs that have no link of their own. The default is perfect.
    pub fn set_default_link(&mut self, link: Link) {
        let changes = self.paths.set_default(self.now, link);
        self.reschedule(&changes);
    }

    /// Sets the link in one direction. Datagrams in flight are not affected, except that what waits for a bottleneck passes it
    /// at the new rate.
    pub fn set_link(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>, link: Link) {
        let changes = self.paths.set(self.now, from.into(), to.into(), link);
        self.reschedule(&changes);
    }

    /// Sets the links in both directions.
    pub fn set_links(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, link: Link) {
        let a = a.into();
        let b = b.into();
        self.set_link(a, b, link);
        self.set_link(b, a, link);
    }

    /// The link in one direction.
    pub fn link(&self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> Link {
        self.paths.link(from.into(), to.into())
    }

    /// Makes several directions (from, to) share one link, the first one's: one rate and one queue, as at a server's uplink.
    /// From then on, setting the link of one of them sets it for all.
    pub fn share_link(&mut self, directions: &[(NodeId, NodeId)]) {
        for &other in directions.iter().skip(1) {
            self.paths.share(directions[0], other);
        }
    }

    /// Adds a bottleneck that any number of directions can share.
    pub fn add_bottleneck(&mut self, bits_per_second: u64, queue: usize) -> BottleneckId {
        self.paths.add_bottleneck(Bottleneck { bits_per_second, queue })
    }

    /// Changes the rate and the queue of a shared bottleneck. Datagrams in the queue still leave at the old rate.
    pub fn set_bottleneck(&mut self, bottleneck: BottleneckId, bits_per_second: u64, queue: usize) {
        let changes = self.paths.set_bottleneck(self.now, bottleneck, Bottleneck { bits_per_second, queue });
        self.reschedule(&changes);
    }

    /// What waits in the queues of bottlenecks whose rate has changed arrives at other times.
    fn reschedule(&mut self, changes: &RateChanges) {
        if !changes.is_empty() {
            let mut last = Map::default();
            let paths = &mut self.paths;
            self.in_flight.reschedule(|datagram, at| paths.arrival(changes, &mut last, datagram, at));
        }
    }

    /// Leads one direction through a shared bottleneck, and then through its own link. Flows with different delays can so
    /// compete for one queue; [`share_link`](Self::share_link) shares the delay and the losses as well.
    pub fn pass_bottleneck(&mut self, from: impl Into<NodeId>, to: impl Into<NodeId>, bottleneck: BottleneckId) {
        self.paths.pass_bottleneck(from.into(), to.into(), bottleneck);
    }

    /// Cuts the path between two nodes in both directions, or restores it. Datagrams in flight still arrive.
    pub fn partition(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, is_cut: bool) {
        let a = a.into();
        let b = b.into();
        for (from, to) in [(a, b), (b, a)] {
            let route = self.paths.route(from, to);
            self.paths.at(route).is_cut = is_cut;
        }
    }

    /// Cuts a node off from all others, or reconnects it. Datagrams in flight still arrive.
    pub fn isolate(&mut self, node: impl Into<NodeId>, is_isolated: bool) {
        self.nodes[node.into().index()].is_isolated = is_isolated;
    }

    /// Passes every datagram that a machine sends through this function, which may alter or drop it. There is at most one
    /// filter; it can draw random numbers from a [fork](Rng::fork) of [`Network::rng`].
    pub fn set_filter(&mut self, filter: impl FnMut(Packet<'_>) -> FilterAction + 'static) {
        self.filter = Some(Box::new(filter));
    }

    /// Removes the filter.
    pub fn clear_filter(&mut self) {
        self.filter = None;
    }

    /// Injects a forged datagram: it arrives now (as soon as the network runs), from any address, and bypasses links and
    /// filter.
    pub fn inject(&mut self, from: impl Into<SocketAddr>, to: impl Into<SocketAddr>, bytes: &[u8]) {
        let from = from.into();
        let to = to.into();
        self.totals.forged.add(bytes.len());
        let record = self.log.is_on().then(|| {
            let status = DeliveryStatus::InFlight { arrives: self.elapsed() };
            let record = PacketRecord::new(self.elapsed(), from, to, bytes, status);
            self.log.push(PacketRecord { is_forged: true, ..record })
        });
        let bytes = self.in_flight.buffer(bytes);
        let receiver = self.addresses.get(&to).copied();
        let departs = self.now;
        let epoch = self.epoch;
        self.in_flight.push(self.now, InFlight { from, to, bytes, departs, route: None, record, receiver, epoch });
    }

    /// A random number generator for the test itself and for seeding machines: a stream of its own, which no link uses.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

/// Results.
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

    /// Counters of the datagrams from one node to another.
    pub fn counters(&self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> Counters {
        self.paths.counters(from.into(), to.into())
    }

    /// Counters of all datagrams.
    #[must_use]
    pub fn totals(&self) -> Counters {
        self.totals
    }

    /// Number of datagrams in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Keeps the last `limit` datagrams in the [log](Self::log) from now on; 0 stops recording.
    pub fn record(&mut self, limit: usize) {
        self.log.set_limit(limit);
    }

    /// The datagrams sent since [`record`](Self::record).
    #[must_use]
    pub fn log(&self) -> &PacketLog {
        &self.log
    }
}

impl Drop for Network {
    /// Prints how to repeat a test that fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("netsim: seed {}, {:?} after the start\n{}", self.seed, self.elapsed(), self.log);
        }
    }
}
