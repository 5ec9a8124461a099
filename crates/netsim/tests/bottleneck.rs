//! A bottleneck passes its rate, delays what is in its queue, and drops what does not fit.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{Link, ManualPeer, Network, Node};
use std::time::Duration;

/// 16 Mbit/s: a datagram of 400 bytes takes 200 microseconds.
const RATE: u64 = 16_000_000;

fn pair(link: Link) -> (Network, Node<ManualPeer>, Node<ManualPeer>) {
    let mut net = Network::new(1);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    net.set_link(a, b, link);
    (net, a, b)
}

#[test]
fn goodput_is_the_rate() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    let mut ping = Ping::new(net.now(), address(1), Duration::from_micros(50)); // four times the rate
    ping.len = 400;
    let ping = net.add(address(2), ping);
    net.set_default_link(Link::default().delay(ms(10)).bottleneck(RATE, 32_000));
    net.run_for(secs(10));
    let received = net.take_events(ping).len() as u64 * 400;
    let expected = RATE / 8 * 10;
    assert!(received.abs_diff(expected) < expected / 100, "{received} of {expected} bytes");
}

#[test]
fn queued_datagrams_are_delayed_and_the_excess_is_dropped() {
    let (mut net, a, b) = pair(Link::default().delay(ms(10)).bottleneck(RATE, 4000));
    let start = net.now();
    net.with(a, |a, _| (0..20).for_each(|number| a.send(address(2), &[number; 400])));
    net.run_for(secs(1));
    let counters = net.counters(a, b);
    assert_eq!((counters.delivered.datagrams, counters.lost_queue.datagrams), (10, 10));
    for (position, (at, (_, bytes))) in net.take_events(b).into_iter().enumerate() {
        assert_eq!(bytes[0] as usize, position); // the last ones are dropped, not the first
        assert_eq!(at - start, ms(10) + Duration::from_micros(200) * (position as u32 + 1));
    }
}

#[test]
fn the_queue_drains_with_time() {
    let (mut net, a, b) = pair(Link::default().bottleneck(RATE, 4000));
    for _ in 0..10 {
        net.with(a, |a, _| (0..10).for_each(|_| a.send(address(2), &[0; 400])));
        net.run_for(ms(2)); // the time of ten datagrams
    }
    assert_eq!(net.counters(a, b).delivered.datagrams, 100);
}

#[test]
fn an_idle_link_accepts_a_datagram_larger_than_its_queue() {
    let (mut net, a, b) = pair(Link::default().bottleneck(RATE, 0));
    net.with(a, |a, _| (0..2).for_each(|_| a.send(address(2), &[0; 400])));
    net.run_for(ms(1));
    assert_eq!(net.counters(a, b).delivered.datagrams, 1);
    assert_eq!(net.counters(a, b).lost_queue.datagrams, 1);
}

#[test]
fn a_rate_of_zero_passes_nothing() {
    let (mut net, a, b) = pair(Link::default().bottleneck(0, 4000));
    net.with(a, |a, _| a.send(address(2), b"x"));
    assert!(net.run_until_idle(secs(1)));
    assert_eq!(net.counters(a, b).lost_queue.datagrams, 1);
}

#[test]
fn a_shared_link_has_one_queue() {
    let (mut net, a, b) = pair(Link::default());
    let c = net.add(address(3), ManualPeer::default());
    net.share_link(&[(a.id(), b.id()), (a.id(), c.id())]);
    net.set_link(a, c, Link::default().bottleneck(RATE, 4000));
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

#[test]
fn directions_that_share_a_bottleneck_keep_their_own_delay() {
    let mut net = Network::new(1);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    let c = net.add(address(3), ManualPeer::default());
    let id = net.add_bottleneck(RATE, 2_000);
    net.set_link(a, b, Link::default().delay(ms(10)));
    net.set_link(a, c, Link::default().delay(ms(30)));
    net.pass_bottleneck(a, b, id);
    net.pass_bottleneck(a, c, id);
    let start = net.now();
    net.with(a, |a, _| (0..8).for_each(|number| a.send(address(2 + u32::from(number % 2)), &[number; 400])));
    net.run_for(secs(1));
    let lost = net.counters(a, b).lost_queue.datagrams + net.counters(a, c).lost_queue.datagrams;
    assert_eq!(lost, 3);
    let first = |node, net: &mut Network| net.take_event(node).map(|(at, _)| at - start);
    assert_eq!(first(b, &mut net), Some(ms(10) + Duration::from_micros(200)));
    assert_eq!(first(c, &mut net), Some(ms(30) + Duration::from_micros(400)));
    net.set_bottleneck(id, 0, 2_000);
    net.with(a, |a, _| a.send(address(2), &[0; 400]));
    net.run_for(secs(1));
    assert_eq!(net.counters(a, b).lost_queue.datagrams, lost - net.counters(a, c).lost_queue.datagrams + 1);
}

/// 100 datagrams of 400 bytes in the queue of a link whose rate then changes: when the first of those that still wait and the
/// last arrive after the change, and how many of 100 more are dropped that are sent at once.
fn after_change(change: impl Fn(&mut Network, Node<ManualPeer>, Node<ManualPeer>)) -> (Duration, Duration, u64) {
    let (mut net, a, b) = pair(Link::default().delay(ms(10)).bottleneck(RATE, 40_000));
    net.with(a, |a, _| (0..100).for_each(|number| a.send(address(2), &[number; 400])));
    // Half of them have passed the bottleneck.
    net.run_for(ms(10));
    let start = net.now();
    change(&mut net, a, b);
    net.with(a, |a, _| (100..200).for_each(|number| a.send(address(2), &[number; 400])));
    net.run_for(secs(10));
    let events = net.take_events(b);
    assert!(events.iter().map(|(_, (_, bytes))| bytes[0]).is_sorted(), "no datagram overtakes another");
    let at = |number: usize| events[number].0 - start;
    (at(50), at(99), net.counters(a, b).lost_queue.datagrams)
}

#[test]
fn what_waits_when_the_rate_changes_passes_at_the_new_rate() {
    let link = Link::default().delay(ms(10));
    let set = |rate: u64| {
        move |net: &mut Network, a: Node<ManualPeer>, b: Node<ManualPeer>| {
            net.set_link(a, b, link.bottleneck(rate, 40_000));
        }
    };
    let us = Duration::from_micros;
    assert_eq!(after_change(set(RATE)), (us(10_200), us(20_000), 50));
    assert_eq!(after_change(set(10 * RATE)), (us(10_020), us(11_000), 50));
    assert_eq!(after_change(set(RATE / 10)), (us(12_000), us(110_000), 50));
    assert_eq!(after_change(move |net, a, b| net.set_link(a, b, link)), (us(10_000), us(10_000), 0));
}

#[test]
fn what_waits_for_a_shared_bottleneck_when_its_rate_changes_passes_at_the_new_rate() {
    let (mut net, a, b) = pair(Link::default().delay(ms(10)));
    let id = net.add_bottleneck(500_000, 200_000);
    net.pass_bottleneck(a, b, id);
    net.with(a, |a, _| (0..500).for_each(|_| a.send(address(2), &[0; 400])));
    // It would take 3.2 s, and drop everything for as long.
    net.set_bottleneck(id, 5_000_000, 200_000);
    net.run_for(ms(160));
    net.with(a, |a, _| (0..250).for_each(|_| a.send(address(2), &[0; 400])));
    net.run_for(ms(330));
    assert_eq!((net.counters(a, b).delivered.datagrams, net.counters(a, b).lost_queue.datagrams), (750, 0));
}

#[test]
fn a_rate_of_zero_for_a_while_delays_what_waits_by_as_long() {
    let (mut net, a, b) = pair(Link::default().bottleneck(RATE, 4_000));
    let start = net.now();
    net.with(a, |a, _| a.send(address(2), &[0; 400]));
    net.set_link(a, b, Link::default().bottleneck(0, 4_000));
    net.run_for(secs(5));
    net.set_link(a, b, Link::default().bottleneck(RATE, 4_000));
    net.run_for(secs(1));
    let (at, _) = net.take_event(b).unwrap();
    assert!((at - start).abs_diff(secs(5)) <= Duration::from_micros(200), "{:?}", at - start);
}
