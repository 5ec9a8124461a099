//! Announcers and a registry over simulated networks with delay and loss.

use crate::support;
use rallypoint_announce::Announcer;
use rallypoint_lobby_proto::{Config, Registry};
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_wire::lobby::{Occupancy, Transport};
use std::net::SocketAddr;
use support::*;

const LOBBY_ADDRESS: &str = "203.0.113.1:29944";

struct World {
    net: Network,
    lobby: Node<Registry>,
    servers: Vec<Node<Announcer>>,
}

impl World {
    fn new(seed: u64, link: Link, servers: u8) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let now = net.now();
        let lobby_address: SocketAddr = LOBBY_ADDRESS.parse().unwrap();
        let lobby = net.add(lobby_address, Registry::new(Config::default(), KEYS, now).unwrap());
        let servers = (1..=servers)
            .map(|n| {
                let (id, port) = (udp(n.into()).server_id(), 8190.try_into().unwrap());
                let name = format!("server {n}");
                let to = vec![lobby_address];
                let announcer = Announcer::new(id, LOBBY, Transport::Udp, port, name.as_bytes(), to, now);
                net.add(([198, 51, 100, n], 50_000), announcer.unwrap())
            })
            .collect();
        Self { net, lobby, servers }
    }

    fn listed(&mut self) -> usize {
        let lobby = self.net.machine(self.lobby);
        lobby.check_invariants();
        published(lobby, LOBBY).len()
    }
}

#[test]
fn a_server_is_listed_within_the_delay_of_the_network() {
    let mut world = World::new(1, Link::default().delay(ms(50)), 10);
    world.net.run_for(ms(49));
    assert_eq!(world.listed(), 0);
    world.net.run_for(ms(2));
    assert_eq!(world.listed(), 10);
}

#[test]
fn a_server_that_loses_every_twentieth_datagram_stays_listed() {
    let mut world = World::new(2, Link::default().delay(ms(50)).jitter(ms(30)).loss(0.05), 50);
    world.net.run_for(secs(40));
    let mut seen = 0;
    for _ in 0..200 {
        world.net.run_for(secs(10));
        seen += world.listed();
    }
    // Two in a row are lost once in 400 times, and then the server is unlisted for 20 s.
    assert!(seen > 9_960, "{seen} of 10,000");
}

#[test]
fn duplicates_and_reordering_change_nothing() {
    let link = Link::default().delay(ms(50)).jitter_reordering(ms(2_000)).duplicate(0.3);
    let mut world = World::new(3, link, 20);
    world.net.run_for(secs(10));
    for _ in 0..60 {
        world.net.run_for(secs(10));
        assert_eq!(world.listed(), 20);
    }
}

#[test]
fn l11_a_stopped_server_is_removed_and_stays_removed() {
    let mut world = World::new(4, Link::default().delay(ms(50)).jitter_reordering(ms(1_000)), 20);
    world.net.run_for(secs(10));
    for server in world.servers.clone() {
        // It changes and stops at the same moment: the two datagrams may be reordered.
        world.net.with(server, |server, _| server.set_occupancy(Occupancy { players: 9, ..Occupancy::default() }));
        world.net.with(server, |server, _| server.stop());
    }
    world.net.run_for(secs(2));
    assert_eq!(world.listed(), 0);
    world.net.run_for(secs(100));
    assert_eq!(world.listed(), 0);
}

#[test]
fn l10_a_disconnected_server_expires_and_returns() {
    let mut world = World::new(5, Link::default().delay(ms(50)), 1);
    world.net.run_for(secs(60));
    world.net.isolate(world.servers[0], true);
    world.net.run_for(secs(71));
    assert_eq!(world.listed(), 0);
    world.net.isolate(world.servers[0], false);
    world.net.run_for(secs(31));
    assert_eq!(world.listed(), 1);
}

#[test]
fn a_restarted_lobby_lists_every_server_again_within_35_s() {
    let mut world = World::new(6, Link::default().delay(ms(50)), 20);
    world.net.run_for(secs(100));
    let now = world.net.now();
    let empty = Registry::new(Config::default(), KEYS, now).unwrap();
    world.net.replace(world.lobby, empty);
    world.net.run_for(secs(31));
    assert_eq!(world.listed(), 20);
}
