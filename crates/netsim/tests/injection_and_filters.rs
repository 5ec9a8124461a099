//! A test can inject datagrams from any address, and filter those that machines send.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{DeliveryStatus, FilterAction, Link, ManualPeer, Network};

#[test]
fn an_injected_datagram_arrives_from_any_address() {
    let mut net = Network::new(1);
    net.record(10);
    net.set_default_link(Link::default().loss(1.0));
    let victim = net.add(address(1), ManualPeer::default());
    net.inject(([1, 2, 3, 4], 5), address(1), b"forged");
    net.inject(address(1), address(1), b"from itself");
    net.inject(address(1), address(2), b"without receiver");
    net.run_for(ms(1));
    let events: Vec<_> = net.take_events(victim).into_iter().map(|(_, event)| event).collect();
    let first = (([1, 2, 3, 4], 5).into(), b"forged".to_vec());
    assert_eq!(events, [first, (address(1), b"from itself".to_vec())]);
    assert_eq!((net.totals().forged.datagrams, net.totals().no_receiver.datagrams), (3, 1));
    assert!(net.log().records().all(|record| record.is_forged));
}

#[test]
fn a_recorded_datagram_can_be_replayed() {
    let mut net = Network::new(1);
    net.record(10);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    net.with(a, |a, _| a.send(address(2), b"once"));
    net.run_for(ms(1));
    let old = net.log().records().next().cloned().unwrap();
    net.inject(old.from, old.to, &old.bytes);
    net.run_for(ms(1));
    let events = net.take_events(b);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].1, events[1].1);
}

#[test]
fn a_filter_drops_chosen_datagrams() {
    let mut net = Network::new(1);
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(1)));
    let mut rng = net.rng().fork();
    net.set_filter(
        move |packet| {
            if packet.from == address(1) && rng.chance(0.5) { FilterAction::Drop } else { FilterAction::Pass }
        },
    );
    net.run_for(secs(10));
    assert_eq!(net.counters(ping, echo).filtered.datagrams, 0);
    let filtered = net.counters(echo, ping).filtered.datagrams;
    assert!(filtered.abs_diff(5000) < 250, "{filtered}");
    net.clear_filter();
    net.run_for(secs(1));
    assert_eq!(net.counters(echo, ping).filtered.datagrams, filtered);
}

#[test]
fn a_filter_sees_and_alters_bytes() {
    let mut net = Network::new(1);
    net.record(10);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    net.set_filter(|packet| match packet.bytes.first() {
        Some(b'x') => FilterAction::Drop,
        _ => {
            packet.bytes.extend_from_slice(b" and more");
            FilterAction::Pass
        }
    });
    net.with(a, |a, _| {
        a.send(address(2), b"xyz");
        a.send(address(2), b"abc");
    });
    net.run_for(ms(1));
    let events: Vec<_> = net.take_events(b).into_iter().map(|(_, (_, bytes))| bytes).collect();
    assert_eq!(events, [b"abc and more"]);
    let statuses: Vec<_> = net.log().records().map(|record| (&record.bytes[..], record.status)).collect();
    assert_eq!(
        statuses,
        [(&b"xyz"[..], DeliveryStatus::Filtered), (b"abc and more", DeliveryStatus::Delivered { at: ms(0) })]
    );
}
