//! A partition drops what is sent into it, but not what is in flight, and can be healed.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{DeliveryStatus, Link, Network, Node};

fn pinging() -> (Network, Node<Echo>, Node<Ping>) {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)));
    let echo = net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    (net, echo, ping)
}

#[test]
fn nothing_passes_for_five_seconds() {
    let (mut net, echo, ping) = pinging();
    let start = net.now();
    net.schedule_in(secs(1), move |net| net.partition(ping, echo, true));
    net.schedule_in(secs(6), move |net| net.partition(ping, echo, false));
    net.run_for(secs(10));
    let times: Vec<_> = net.take_events(ping).iter().map(|(at, _)| *at - start).collect();
    // What the server sent before the cut still arrives, and the first reply after it takes a round trip.
    assert!(times.iter().all(|at| *at <= secs(1) + ms(25) || *at >= secs(6) + ms(50)));
    assert!(times.contains(&(secs(6) + ms(50))));
    assert!(times.iter().any(|at| (secs(1)..secs(1) + ms(25)).contains(at)));
    // At 1.0 the cut comes before the datagram of that instant, and at 6.0 so does the healing.
    assert_eq!(net.counters(ping, echo).partitioned.datagrams, 500);
}

#[test]
fn other_pairs_are_not_affected() {
    let (mut net, echo, ping) = pinging();
    let other = net.add(address(3), Ping::new(net.now(), address(1), ms(10)));
    net.partition(ping, echo, true);
    net.run_for(secs(1));
    assert_eq!(net.take_events(ping).len(), 0);
    assert_eq!(net.take_events(other).len(), 96);
}

#[test]
fn isolation_cuts_a_node_off_from_all_others() {
    let (mut net, echo, ping) = pinging();
    let other = net.add(address(3), Ping::new(net.now(), address(1), ms(10)));
    net.isolate(echo, true);
    net.run_for(secs(1));
    assert_eq!(net.totals().delivered.datagrams, 2); // the requests were in flight; the replies were not
    assert_eq!(net.totals().partitioned.datagrams, net.totals().sent.datagrams - 2);
    net.isolate(echo, false);
    net.run_for(secs(1));
    assert!(net.take_event(ping).is_some() && net.take_event(other).is_some());
}

#[test]
fn the_log_reports_a_partition() {
    let (mut net, echo, ping) = pinging();
    net.record(10);
    net.partition(ping, echo, true);
    net.run_for(ms(10));
    assert_eq!(net.log().records().last().map(|record| record.status), Some(DeliveryStatus::Partitioned));
}
