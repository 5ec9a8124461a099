//! A node can be restarted at its place, and it can go away.

mod common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{Link, Network, Puppet};

#[test]
fn a_restarted_node_has_forgotten_everything() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(20)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(secs(1));
    let old = net.replace(echo, Echo::default());
    assert_eq!((old.seen, net.machine(echo).seen), (99, 0));
    net.run_for(ms(100));
    // What was on the way reaches the new one.
    assert_eq!(net.machine(echo).seen, 10);
    assert_eq!(net.totals().no_receiver.datagrams, 0);
    assert_eq!(net.take_events(ping).len(), 107);
}

#[test]
fn a_new_machine_sends_and_wakes_at_once() {
    let mut net = Network::new(1);
    let echo = net.add(address(1), Echo::default());
    let now = net.now();
    let ping = net.add(address(2), Ping::new(now + secs(1000), address(1), ms(10)));
    net.replace(ping, Ping::new(now, address(1), secs(1)));
    net.run_for(secs(2));
    assert_eq!(net.machine(echo).seen, 3);
}

#[test]
fn a_removed_node_is_nobody() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(20)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(ms(95));
    assert_eq!(net.remove(echo).seen, 8);
    net.run_for(ms(100));
    assert_eq!(net.totals().no_receiver.datagrams, 10);
    // Another, of another type, in its place.
    let puppet = net.add(address(1), Puppet::default());
    net.run_for(ms(100));
    assert_eq!(net.take_events(puppet).len(), 10);
    // Nobody wakes one that is gone.
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
