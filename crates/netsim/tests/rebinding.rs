//! A rebound node sends from its new address; datagrams to the old one have no receiver, or are forwarded.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{Link, ManualPeer, Network};

#[test]
fn later_datagrams_have_the_new_source() {
    let mut net = Network::new(1);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    net.set_links(a, b, Link::default().delay(ms(10)));
    net.with(a, |a, _| a.send(address(2), b"before"));
    net.rebind(a, address(9));
    assert_eq!(net.address(a), address(9));
    net.with(a, |a, _| a.send(address(2), b"after"));
    net.run_for(secs(1));
    let sources: Vec<_> = net.take_events(b).into_iter().map(|(_, (from, _))| from).collect();
    assert_eq!(sources, [address(1), address(9)]);
    // The path stays the same.
    assert_eq!(net.counters(a, b).delivered.datagrams, 2);
    assert_eq!(net.link(a, b).delay, ms(10));
}

#[test]
fn the_old_address_has_no_receiver() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(10)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(ms(15));
    net.rebind(ping, address(9)); // while a reply to the old address and a request from it are in flight
    net.run_for(ms(985));
    assert_eq!(net.totals().no_receiver.datagrams, 2);
    assert_eq!(net.machine(ping).sent(), 101);
    assert_eq!(net.machine(echo).received, 100);
    assert_eq!(net.take_events(ping).len(), 97);
    // Another node can have it now.
    net.add(address(2), ManualPeer::default());
}

#[test]
fn an_alias_forwards() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(10)));
    net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(ms(15));
    net.rebind(ping, address(9));
    net.alias(ping, address(2));
    net.run_for(ms(985));
    assert_eq!(net.totals().no_receiver.datagrams, 0);
    assert_eq!(net.take_events(ping).len(), 99);
}

#[test]
#[should_panic(expected = "10.0.0.2:4000 belongs to node 1 already")]
fn an_address_has_one_owner() {
    let mut net = Network::new(1);
    let a = net.add(address(1), ManualPeer::default());
    net.add(address(2), ManualPeer::default());
    net.rebind(a, address(2));
}
