//! A node can be restarted at its address, and it can be removed.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{Link, ManualPeer, Network};

#[test]
fn a_restarted_node_has_no_memory() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(20)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(secs(1));
    let old = net.replace(echo, Echo::default());
    assert_eq!((old.received, net.machine(echo).received), (99, 0));
    net.run_for(ms(100));
    // Datagrams in flight reach the new machine.
    assert_eq!(net.machine(echo).received, 10);
    assert_eq!(net.totals().no_receiver.datagrams, 0);
    assert_eq!(net.take_events(ping).len(), 107);
}

#[test]
fn a_new_machine_is_polled_at_once() {
    let mut net = Network::new(1);
    let echo = net.add(address(1), Echo::default());
    let now = net.now();
    let ping = net.add(address(2), Ping::new(now + secs(1000), address(1), ms(10)));
    net.replace(ping, Ping::new(now, address(1), secs(1)));
    net.run_for(secs(2));
    assert_eq!(net.machine(echo).received, 3);
}

#[test]
fn a_removed_node_receives_nothing() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(20)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(ms(95));
    assert_eq!(net.remove(echo).received, 8);
    net.run_for(ms(100));
    assert_eq!(net.totals().no_receiver.datagrams, 10);
    // Another node, of another type, at the same address.
    let peer = net.add(address(1), ManualPeer::default());
    net.run_for(ms(100));
    assert_eq!(net.take_events(peer).len(), 10);
    // A removed node is not woken.
    let sent = net.remove(ping).sent();
    assert!(net.run_until_idle(secs(1)));
    assert_eq!(net.totals().sent.datagrams as usize, sent + 8);
}

#[test]
#[should_panic(expected = "a node that was not removed")]
fn a_removed_node_cannot_be_used() {
    let mut net = Network::new(1);
    let echo = net.add(address(1), Echo::default());
    net.remove(echo);
    net.machine(echo);
}
