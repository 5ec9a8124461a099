//! A bottleneck lets its rate through, delays what waits, and drops what does not fit into its queue.

mod common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{Link, Network, Puppet};
use std::time::Duration;

/// 16 Mbit/s, so a datagram of 400 bytes takes 200 microseconds.
const RATE: u64 = 16_000_000;

fn puppets(link: Link) -> (Network, rallypoint_netsim::Node<Puppet>, rallypoint_netsim::Node<Puppet>) {
    let mut net = Network::new(1);
    let a = net.add(address(1), Puppet::default());
    let b = net.add(address(2), Puppet::default());
    net.set_link(a, b, link);
    (net, a, b)
}

#[test]
fn goodput_is_the_rate() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    let mut ping = Ping::new(net.now(), address(1), Duration::from_micros(50)); // four times too much
    ping.len = 400;
    let ping = net.add(address(2), ping);
    net.set_default_link(Link::default().delay(ms(10)).rate(RATE, 32_000));
    net.run_for(secs(10));
    let received = net.take_events(ping).len() as u64 * 400;
    let expected = RATE / 8 * 10;
    assert!(received.abs_diff(expected) < expected / 100, "{received} of {expected} bytes");
}

#[test]
fn what_waits_is_delayed_and_what_does_not_fit_is_dropped() {
    let (mut net, a, b) = puppets(Link::default().delay(ms(10)).rate(RATE, 4000));
    let start = net.now();
    net.with(a, |a, _| (0..20).for_each(|number| a.send(address(2), &[number; 400])));
    net.run_for(secs(1));
    let counters = net.counters(a, b);
    assert_eq!((counters.delivered.datagrams, counters.lost_queue.datagrams), (10, 10));
    for (position, (at, (_, bytes))) in net.take_events(b).into_iter().enumerate() {
        assert_eq!(bytes[0] as usize, position); // the last ones are dropped, not the first ones
        assert_eq!(at - start, ms(10) + Duration::from_micros(200) * (position as u32 + 1));
    }
}

#[test]
fn the_queue_empties_with_time() {
    let (mut net, a, b) = puppets(Link::default().rate(RATE, 4000));
    for _ in 0..10 {
        net.with(a, |a, _| (0..10).for_each(|_| a.send(address(2), &[0; 400])));
        net.run_for(ms(2)); // as long as ten datagrams take
    }
    assert_eq!(net.counters(a, b).delivered.datagrams, 100);
}

#[test]
fn an_idle_link_takes_what_is_larger_than_its_queue() {
    let (mut net, a, b) = puppets(Link::default().rate(RATE, 0));
    net.with(a, |a, _| (0..2).for_each(|_| a.send(address(2), &[0; 400])));
    net.run_for(ms(1));
    assert_eq!(net.counters(a, b).delivered.datagrams, 1);
    assert_eq!(net.counters(a, b).lost_queue.datagrams, 1);
}

#[test]
fn no_rate_is_no_traffic() {
    let (mut net, a, b) = puppets(Link::default().rate(0, 4000));
    net.with(a, |a, _| a.send(address(2), b"x"));
    assert!(net.run_until_idle(secs(1)));
    assert_eq!(net.counters(a, b).lost_queue.datagrams, 1);
}

#[test]
fn a_shared_link_is_shared() {
    let (mut net, a, b) = puppets(Link::default());
    let c = net.add(address(3), Puppet::default());
    net.share_link(&[(a.id(), b.id()), (a.id(), c.id())]);
    net.set_link(a, c, Link::default().rate(RATE, 4000));
    assert_eq!(net.link(a, b), net.link(a, c));
    net.with(a, |a, _| {
        for _ in 0..10 {
            a.send(address(2), &[0; 400]);
            a.send(address(3), &[0; 400]);
        }
    });
    net.run_for(secs(1));
    assert_eq!(net.counters(a, b).delivered.datagrams, 5);
    assert_eq!(net.counters(a, c).delivered.datagrams, 5);
}
