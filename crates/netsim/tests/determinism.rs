//! A seed determines a run; links do not influence each other.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{DeliveryStatus, Link, Network, Node, PacketRecord};

fn pair(seed: u64) -> (Network, Node<Ping>, Node<Echo>) {
    let mut net = Network::new(seed);
    net.record(100_000);
    net.set_default_link(Link::default().delay(ms(20)).loss(0.1));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(7)));
    (net, ping, echo)
}

fn chaotic(seed: u64) -> Vec<PacketRecord> {
    let (mut net, ping, echo) = pair(seed);
    net.start_chaos(ping, echo, secs(20));
    net.run_for(secs(30));
    net.log().records().cloned().collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(chaotic(1), chaotic(1));
    assert_ne!(chaotic(1), chaotic(2));
}

/// A seed in a bug report must give the same run next year. A change of this belongs into the changelog.
#[test]
fn a_seed_keeps_its_meaning() {
    let records = chaotic(1);
    let times = records.iter().flat_map(|record| match record.status {
        DeliveryStatus::Delivered { at } => [record.sent, at],
        _ => [record.sent, secs(0)],
    });
    let digest = times.fold(0_u64, |sum, time| sum.wrapping_mul(31).wrapping_add(time.as_nanos() as u64));
    assert_eq!((records.len(), digest), (8095, 5_216_096_625_289_794_277));
}

#[test]
fn traffic_on_one_link_does_not_change_another() {
    let (mut quiet, ..) = pair(3);
    let (mut busy, _, echo) = pair(3);
    let other = busy.add(address(3), Ping::new(busy.now(), address(1), ms(3)));
    busy.set_links(other, echo, Link::default().loss(0.5));
    quiet.run_for(secs(10));
    busy.run_for(secs(10));
    let without_other = |record: &&PacketRecord| record.from != address(3) && record.to != address(3);
    let quiet: Vec<_> = quiet.log().records().collect();
    let busy: Vec<_> = busy.log().records().filter(without_other).collect();
    assert_eq!(quiet, busy);
}
