//! Nodes of a cluster on virtual time: real registries, real nodes, and a model of the store.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod model;
mod peer;

pub use model::ModelStore;
pub use peer::Peer;
use rallypoint_cluster::{
    ClusterNode, ClusterSecret, ContactEvent, ContactMonitor, NodeConfig, NodeState, Reply, Request, RequestId,
    RequestKind, StoreError, StoreErrorKind,
};
use rallypoint_lobby_proto::{CheckResult, CheckTarget, Config, Event, HashKeys, RegistrationOutcome, Registry};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

pub const LOBBY: ListId = ListId::GANG_GARRISON_2;
pub const STEP: Duration = Duration::from_millis(10);

/// A small random number generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn secret() -> ClusterSecret {
    ClusterSecret::new("the secret of the tests' cluster").unwrap()
}

/// The configuration of a node with this number.
pub fn node_config(number: u64) -> NodeConfig {
    let outage_limit = Duration::from_secs(300);
    NodeConfig { node: number, secret_check: secret().check_value(), outage_limit, max_servers: 1_000_000 }
}

/// An empty registry of a node, without checks.
pub fn registry(number: u64, now: Instant) -> Registry {
    let mut config = Config::default();
    config.checks.enabled = false;
    let keys = HashKeys { tables: number, public_ids: secret().public_id_key() };
    let mut registry = Registry::new(config, keys, now).unwrap();
    registry.enable_replication(now, [3; 16]);
    registry
}

/// A game server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    pub id: u128,
    pub lobby: ListId,
    pub is_tcp: bool,
    pub port: u16,
    pub name: String,
    pub players: u16,
    /// How it can be queried (E1).
    pub x_query: Option<&'static str>,
}

pub fn server(id: u128) -> Server {
    Server { id, lobby: LOBBY, is_tcp: false, port: 8190, name: format!("server {id}"), players: 0, x_query: None }
}

impl Server {
    pub fn datagram(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        table.push(b"name", self.name.as_bytes()).unwrap();
        self.x_query.iter().for_each(|value| table.push(b"x-query", value.as_bytes()).unwrap());
        let transport = if self.is_tcp { Transport::Tcp } else { Transport::Udp };
        let occupancy = Occupancy { players: self.players, ..Occupancy::default() };
        let id = ServerId::from_bytes(self.id.to_be_bytes());
        let port = self.port.try_into().unwrap();
        let mut datagram = Vec::new();
        Registration::new(id, self.lobby, transport, port, occupancy, table.as_table()).unwrap().emit(&mut datagram);
        datagram
    }
}

pub fn unregistration(id: u128) -> Vec<u8> {
    let mut datagram = Vec::new();
    Unregister { server_id: ServerId::from_bytes(id.to_be_bytes()) }.emit(&mut datagram);
    datagram
}

/// A request under way: executed by the store at one time, and answered at another.
struct Exchange {
    id: RequestId,
    request: Request,
    sent: Instant,
    execute_at: Instant,
    reply: Option<Result<Reply, StoreError>>,
    reply_at: Instant,
    waits_until: Instant,
}

pub struct TestNode {
    pub registry: Registry,
    pub node: ClusterNode,
    monitor: ContactMonitor,
    /// Reports about the contact with the store.
    pub events: Vec<ContactEvent>,
    /// Whether the store can be reached.
    pub is_linked: bool,
    /// How far its clock is ahead of the world's.
    pub ahead: Duration,
    exchanges: Vec<Exchange>,
    /// Reachability checks under way.
    checks: Vec<(Instant, CheckTarget)>,
    next_sweep: Instant,
}

/// All nodes and the store.
pub struct World {
    pub now: Instant,
    pub store: ModelStore,
    pub nodes: Vec<TestNode>,
    pub random: Random,
    pub is_read_only: bool,
    /// A kind of requests that the store refuses.
    pub refused: Option<RequestKind>,
    /// Maximum delay in each direction.
    pub delay: Duration,
    /// Addresses that checks reach; without a set there are no checks.
    pub reachable: Option<BTreeSet<SocketAddr>>,
    /// Difference between the clocks of two nodes.
    pub clock_step: Duration,
    starts: u64,
}

fn unreachable() -> StoreError {
    StoreError { kind: StoreErrorKind::Unreachable, message: "no contact".into() }
}

impl World {
    pub fn new(nodes: usize, seed: u64) -> Self {
        Self::start(nodes, seed, None)
    }

    /// A world in which servers are checked, and reached at these addresses.
    pub fn with_checks(nodes: usize, seed: u64, reachable: &[impl AsRef<str>]) -> Self {
        Self::start(nodes, seed, Some(reachable.iter().map(|addr| addr.as_ref().parse().unwrap()).collect()))
    }

    fn start(nodes: usize, seed: u64, reachable: Option<BTreeSet<SocketAddr>>) -> Self {
        let mut world = Self {
            now: Instant::now(),
            store: ModelStore::at(1_000_000),
            nodes: Vec::new(),
            random: Random(seed),
            is_read_only: false,
            refused: None,
            delay: Duration::from_millis(30),
            reachable,
            // Nodes have clocks of their own; nothing may depend on them.
            clock_step: Duration::from_secs(300),
            starts: 0,
        };
        for _ in 0..nodes {
            world.add_node();
        }
        world
    }

    pub fn add_node(&mut self) -> usize {
        let node = self.start_node();
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Kills a node and starts it again, empty.
    pub fn restart_node(&mut self, index: usize) {
        self.nodes[index] = self.start_node();
    }

    fn start_node(&mut self) -> TestNode {
        self.starts += 1;
        let ahead = self.clock_step * u32::try_from(self.starts % 3).unwrap();
        let now = self.now + ahead;
        let mut config = Config::default();
        config.checks.enabled = self.reachable.is_some();
        let keys = HashKeys { tables: self.starts, public_ids: secret().public_id_key() };
        let mut registry = Registry::new(config, keys, now).unwrap();
        registry.enable_replication(now, (u128::from(self.starts) << 64 | 0x5eed).to_be_bytes());
        let node = ClusterNode::new(node_config(self.starts), now);
        TestNode {
            registry,
            node,
            monitor: ContactMonitor::default(),
            events: Vec::new(),
            is_linked: true,
            ahead,
            exchanges: Vec::new(),
            checks: Vec::new(),
            next_sweep: now,
        }
    }

    pub fn send(&mut self, node: usize, from: &str, datagram: &[u8]) -> RegistrationOutcome {
        let ip: IpAddr = from.parse().unwrap();
        let port = 40_000 + (self.random.below(20_000) as u16);
        let now = self.now + self.nodes[node].ahead;
        self.nodes[node].registry.handle_datagram(now, SocketAddr::new(ip, port), datagram)
    }

    pub fn register(&mut self, node: usize, from: &str, server: &Server) -> RegistrationOutcome {
        self.send(node, from, &server.datagram())
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Runs until all nodes list this number of servers, and returns how long it took.
    pub fn run_until_listed(&mut self, count: usize, limit: Duration) -> Duration {
        let start = self.now;
        while !(0..self.nodes.len()).all(|node| self.list(node).len() == count) {
            let counts: Vec<_> = (0..self.nodes.len()).map(|node| self.list(node).len()).collect();
            assert!(self.now - start < limit, "the nodes list {counts:?} servers instead of {count}");
            self.step();
        }
        self.now - start
    }

    pub fn step(&mut self) {
        self.now += STEP;
        self.store.now += STEP.as_millis() as u64;
        for index in 0..self.nodes.len() {
            self.step_node(index);
        }
    }

    fn step_node(&mut self, index: usize) {
        let now = self.now + self.nodes[index].ahead;
        let Self { store, nodes, random, is_read_only, refused, delay, reachable, .. } = self;
        let node = &mut nodes[index];
        // The store executes, and replies arrive.
        let mut delays = || Duration::from_millis(random.below(delay.as_millis() as u64 + 1));
        for exchange in &mut node.exchanges {
            if exchange.reply.is_some() || exchange.execute_at > now {
                continue;
            }
            let is_write = matches!(
                exchange.request,
                Request::Tick { .. } | Request::Write { .. } | Request::Renew(_) | Request::Open { .. }
            );
            if !node.is_linked {
                exchange.reply = Some(Err(unreachable()));
                exchange.reply_at = now + Duration::from_secs(1);
            } else if (*is_read_only && is_write) || *refused == Some(exchange.request.kind()) {
                exchange.reply = Some(Err(StoreError { kind: StoreErrorKind::ReadOnly, message: "read only".into() }));
                exchange.reply_at = now + delays();
            } else if let Some(reply) = store.execute(&exchange.request) {
                exchange.reply = Some(Ok(reply));
                exchange.reply_at = now + delays();
            } else if exchange.waits_until <= now {
                exchange.reply = Some(Ok(Reply::Log { records: Vec::new(), is_malformed: false }));
                exchange.reply_at = now + delays();
            }
        }
        while let Some(position) =
            node.exchanges.iter().position(|exchange| exchange.reply.is_some() && exchange.reply_at <= now)
        {
            let exchange = node.exchanges.remove(position);
            // A reply does not arrive either.
            let reply = if node.is_linked { exchange.reply.unwrap() } else { Err(unreachable()) };
            node.node.handle_reply(exchange.sent, now, exchange.id, reply);
        }
        // The registry.
        while let Some(at) = node.registry.poll_timeout().filter(|at| *at <= now) {
            node.registry.handle_timeout(at.max(now - STEP));
        }
        while let Some(event) = node.registry.poll_event() {
            if let Event::Check(request) = event {
                node.checks.push((now + Duration::from_millis(200), request.target));
            }
        }
        while let Some(position) = node.checks.iter().position(|(at, _)| *at <= now) {
            let (_, target) = node.checks.remove(position);
            let is_reached = reachable.as_ref().is_some_and(|reachable| reachable.contains(&target.addr));
            let result = if is_reached { CheckResult::Reachable(STEP) } else { CheckResult::Unreachable };
            node.registry.handle_check(now, target, result);
        }
        let changes = node.registry.take_changes(node.node.free_changes());
        node.node.handle_changes(now, changes);
        if now >= node.next_sweep && node.node.has_room_for_renewals() {
            let mut renewals = Vec::new();
            while !node.registry.take_renewals(4, 64, &mut renewals) {}
            node.node.handle_renewals(renewals);
            node.next_sweep = now + Duration::from_secs(2);
        }
        while let Some(update) = node.node.poll_update(now) {
            update.apply_to(now, &mut node.registry);
        }
        node.events.extend(node.monitor.poll_event(now, &node.node));
        while let Some((id, request)) = node.node.poll_request(now) {
            let execute_at = now + delays();
            let waits_until = execute_at + Duration::from_secs(1);
            node.exchanges.push(Exchange {
                id,
                request,
                sent: now,
                execute_at,
                reply: None,
                reply_at: now,
                waits_until,
            });
        }
    }

    /// The list of a node: lobby, addresses, name, players and transport of each server.
    pub fn list(&mut self, node: usize) -> BTreeSet<String> {
        let now = self.now + self.nodes[node].ahead;
        let registry = &mut self.nodes[node].registry;
        registry.publish(now);
        let snapshot = registry.lists().snapshot();
        let mut list = BTreeSet::new();
        for (lobby, servers) in snapshot.lists() {
            for server in servers.servers() {
                let block = server.block();
                let name = String::from_utf8_lossy(block.table.get(b"name").unwrap()).into_owned();
                let mut addrs: Vec<_> = block.endpoints().map(|addr| addr.to_string()).collect();
                addrs.sort();
                let players = block.occupancy.players;
                list.insert(format!("{lobby} {} {name} {players} {:?}", addrs.join(" "), block.transport));
            }
        }
        list
    }

    pub fn is_following(&self, node: usize) -> bool {
        *self.nodes[node].node.state() == NodeState::Following
    }
}
