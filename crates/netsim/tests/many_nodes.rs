//! One server with 255 clients, one prober with 10,000 targets, and transmits of several segments.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{Link, ManualPeer, Network};
use std::{net::SocketAddr, time::Instant};

#[test]
fn one_server_with_255_clients() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)));
    let server = net.add(address(0), Echo::default());
    let now = net.now();
    let clients: Vec<_> = (1..=255).map(|n| net.add(address(n), Ping::new(now, address(0), ms(16)))).collect();
    net.run_for(secs(1));
    for client in clients {
        assert_eq!(net.take_events(client).len(), 60);
    }
    assert_eq!(net.machine(server).received, 255 * 61);
}

#[test]
fn one_prober_with_10000_targets() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(10)));
    let targets: Vec<_> = (1..=10_000).map(|n| net.add(address(n), Echo::default())).collect();
    let prober = net.add(address(0), ManualPeer::default());
    net.with(prober, |prober, _| (1..=10_000).for_each(|n| prober.send(address(n), b"status?")));
    assert!(net.run_until_idle(secs(1)));
    let replies: Vec<_> = net.take_events(prober).into_iter().map(|(_, (from, _))| from).collect();
    assert!(replies.into_iter().eq((1..=10_000).map(address)));
    assert!(targets.into_iter().all(|target| net.machine(target).received == 1));
}

/// Sends one transmit of several segments.
struct Segments(Option<SocketAddr>);

impl Machine for Segments {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let to = self.0.take()?;
        out.extend(0..10);
        Some(Transmit { to, len: 10, segment: Some(4), from: None })
    }
}

#[test]
fn segments_arrive_as_datagrams() {
    let mut net = Network::new(1);
    let peer = net.add(address(1), ManualPeer::default());
    let sender = net.add(address(2), Segments(Some(address(1))));
    net.run_for(ms(1));
    let parts: Vec<_> = net.take_events(peer).into_iter().map(|(_, (_, bytes))| bytes).collect();
    assert_eq!(parts, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!(net.counters(sender, peer).sent.datagrams, 3);
}
