//! A node with hundreds of thousands of servers renews all of their leases after a reconnection, and in time after a peak.

use crate::support::{node_config, registry, server, unregistration};
use rallypoint_cluster::{ClusterNode, OpenedStore, Reply, Request};
use rallypoint_lobby_proto::{LeaseRenewal, PublicId};
use std::{collections::BTreeSet, time::Instant};

#[test]
fn the_leases_of_one_sweep_are_all_renewed() {
    const LEASES: u128 = 60_000;
    let now = Instant::now();
    let mut node = ClusterNode::new(node_config(1), now);
    let (id, request) = node.poll_request(now).unwrap();
    let Request::Open { epoch, secret_check } = request else { panic!("{request:?}") };
    let secret_check = secret_check.to_vec();
    let opened = OpenedStore { format: 1, secret_check, epoch, seq: 0, token: Vec::new(), time: 1_000_000 };
    node.handle_reply(now, now, id, Ok(Reply::Opened(opened)));

    let id = |number: u128| PublicId::from_bytes(number.to_be_bytes());
    node.handle_renewals((0..LEASES).map(|number| LeaseRenewal {
        public_id: id(number),
        is_ipv6: false,
        deadline: now,
    }));
    let mut renewed = BTreeSet::new();
    let mut idle = 0;
    while idle < 100 {
        let Some((id, request)) = node.poll_request(now) else { break };
        if let Request::Renew(leases) = &request {
            renewed.extend(leases.iter().map(|lease| lease.id));
            node.handle_reply(now, now, id, Ok(Reply::Renewed(Vec::new())));
        } else {
            idle += 1;
        }
    }
    assert_eq!(renewed.len() as u128, LEASES);
    assert!(node.has_room_for_renewals());
}

/// Slots of servers that have left stay: a sweep over them must not take longer because few servers are left.
#[test]
fn a_sweep_takes_the_same_number_of_steps_after_a_peak() {
    const SERVERS: u8 = 200;
    let start = Instant::now();
    let mut registry = registry(1, start);
    for number in 0..SERVERS {
        let source = ([203, 0, 113, number], 4_000).into();
        registry.handle_datagram(start, source, &server(number.into()).datagram());
    }
    for number in 0..SERVERS - 1 {
        let source = ([203, 0, 113, number], 4_000).into();
        registry.handle_datagram(start, source, &unregistration(number.into()));
    }
    assert_eq!(registry.stats().registered, 1);
    registry.report_all_leases();
    let mut renewals = Vec::new();
    let steps = 1 + (0..100).take_while(|_| !registry.take_renewals(20, 1, &mut renewals)).count();
    assert_eq!((steps, renewals.len()), (20, 1));
}
