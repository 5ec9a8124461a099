//! Random operations and faults with real nodes and a real store: afterwards every node lists the servers that run, and no others. The same
//! is tested on virtual time, with thousands of seeds and a model of the store, in the crate of the cluster.

use rallypoint_harness::{GameServer, Lobby, RedisServer};
use rallypoint_netsim::is_full;
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

const NODES: usize = 3;
const PLACES: u64 = 6;
const STEPS: usize = 150;

/// Longest time after the last fault: a lease, the time of grace for leases after an outage, and a loaded machine.
const CONVERGENCE: Duration = Duration::from_secs(100);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn node(&mut self) -> usize {
        self.below(NODES as u64) as usize
    }
}

/// A server that runs at a place, and the node that it registers with.
struct Running {
    server: GameServer,
    node: usize,
}

struct World {
    store: RedisServer,
    nodes: Vec<Lobby>,
    running: BTreeMap<u64, Running>,
    random: Random,
    generation: u128,
    refreshed: Instant,
    /// The steps so far, for the message of a failure.
    history: Vec<String>,
}

impl World {
    fn start(seed: u64, store: RedisServer) -> Self {
        let node = |number: usize| {
            let builder = Lobby::builder().node(&store.url(), &format!("node{number}"));
            builder.set("lobby.lease=12s").start()
        };
        let nodes: Vec<_> = (0..NODES).map(node).collect();
        nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
        let (running, random) = (BTreeMap::new(), Random(seed));
        Self { store, nodes, running, random, generation: 0, refreshed: Instant::now(), history: Vec::new() }
    }

    fn refresh(&mut self) {
        if self.refreshed.elapsed() >= Duration::from_secs(3) {
            self.refreshed = Instant::now();
            self.running.values().for_each(|running| self.nodes[running.node].register(&running.server));
        }
    }

    fn operate(&mut self) {
        let place = self.random.below(PLACES);
        let node = self.random.node();
        match self.random.below(100) {
            0..30 => {
                // Any server that was there has ended without a word.
                self.generation += 1;
                let server = GameServer::named(&format!("place {place} start {}", self.generation));
                let server = server.from_ip(&format!("127.9.5.{}", place + 1)).with_id(self.generation.to_be_bytes());
                self.nodes[node].register(&server);
                self.history.push(format!("{} at node {node}", server.name()));
                self.running.insert(place, Running { server, node });
            }
            30..45 => {
                if let Some(ended) = self.running.remove(&place) {
                    self.history.push(format!("{} ends", ended.server.name()));
                    if self.random.below(100) < 70 {
                        self.nodes[node].unregister(&ended.server);
                    }
                }
            }
            45..65 => {
                if let Some(Running { server, node }) = self.running.remove(&place) {
                    let name = format!("{} changed", server.name());
                    let server = server.renamed(&name);
                    self.nodes[node].register(&server);
                    self.running.insert(place, Running { server, node });
                }
            }
            65..80 => {
                if let Some(running) = self.running.get_mut(&place) {
                    self.history.push(format!("{} moves to node {node}", running.server.name()));
                    running.node = node;
                }
            }
            80..88 => self.fail(),
            _ => {}
        }
    }

    fn fail(&mut self) {
        let faults: [&[&str]; 6] = [
            &["FLUSHALL"],
            &["CLIENT", "KILL", "TYPE", "normal"],
            &["XTRIM", "{rp:rallypoint}:log", "MAXLEN", "0"],
            &["DEL", "{rp:rallypoint}:entry"],
            &["DEL", "{rp:rallypoint}:lease"],
            &["HDEL", "{rp:rallypoint}:meta", "seq"],
        ];
        match self.random.below(8) {
            6 => {
                self.history.push("the store is started again, empty".into());
                self.store.restart();
            }
            7 => {
                let node = self.random.node();
                self.history.push(format!("node {node} is killed and started again"));
                self.nodes[node].kill();
                self.nodes[node].restart();
            }
            fault => {
                let fault = faults[fault as usize];
                self.history.push(fault.join(" "));
                let _ = self.store.command(fault);
            }
        }
    }

    /// Waits until every node lists what runs.
    fn converge(&mut self, seed: u64) {
        let mut expected: Vec<_> = self.running.values().map(|running| running.server.name()).collect();
        expected.sort();
        let end = Instant::now() + CONVERGENCE;
        loop {
            self.refresh();
            let lists: Vec<_> = self.nodes.iter().map(Lobby::names).collect();
            if lists.iter().all(|list| *list == expected) {
                return;
            }
            let history = self.history.join("\n");
            assert!(Instant::now() < end, "seed {seed}: {lists:#?} instead of {expected:#?} after\n{history}");
            thread::sleep(Duration::from_millis(200));
        }
    }
}

fn run_seed(seed: u64, store: RedisServer) {
    let mut world = World::start(seed, store);
    for _ in 0..STEPS {
        world.operate();
        world.refresh();
        let pause = world.random.below(150);
        thread::sleep(Duration::from_millis(pause));
    }
    world.converge(seed);
}

/// One seed, which takes about 45 seconds; two in a full run.
#[test]
fn all_nodes_list_what_runs_after_random_changes_and_faults() {
    let seeds = if is_full() { 2 } else { 1 };
    for seed in 0..seeds {
        let Some(store) = RedisServer::start(&[]) else { return };
        run_seed(seed, store);
    }
}
