//! The store is away, emptied, read-only or behind after a failover: every node goes on with what it knows, and all nodes agree
//! afterwards.

use crate::support;

use rallypoint_cluster::{
    ClusterNode, ContactEvent, ContactMonitor, NodeConfig, NodeState, RequestKind, StoreDefect, StoreError,
    StoreErrorKind,
};
use rallypoint_lobby_proto::RegistrationOutcome;
use std::time::{Duration, Instant};
use support::{World, node_config, server};

const SECOND: Duration = Duration::from_secs(1);

fn name(number: usize) -> String {
    format!("203.0.113.{number}")
}

/// A cluster of three nodes with two servers each, which are refreshed by [`refresh`].
fn cluster() -> World {
    let mut world = World::new(3, 7);
    world.run(3 * SECOND);
    refresh(&mut world);
    world.run(SECOND);
    assert_listed(&mut world, 6);
    world
}

/// A node that has no contact yet.
fn lone_node(now: Instant) -> ClusterNode {
    ClusterNode::new(node_config(1), now)
}

fn refresh(world: &mut World) {
    for number in 0..6 {
        world.register(number % 3, &name(number), &server(number as u128));
    }
}

fn run(world: &mut World, time: Duration) {
    let end = world.now + time;
    while world.now < end {
        refresh(world);
        world.run((20 * SECOND).min(end - world.now));
    }
}

fn assert_listed(world: &mut World, count: usize) {
    for node in 0..world.nodes.len() {
        assert_eq!(world.list(node).len(), count, "node {node}");
    }
}

#[test]
fn w69_servers_of_all_nodes_stay_listed_for_five_minutes_without_the_store() {
    let mut world = cluster();
    world.nodes.iter_mut().for_each(|node| node.is_linked = false);
    run(&mut world, 280 * SECOND);
    assert_listed(&mut world, 6);
    assert!(matches!(world.nodes[0].node.state(), NodeState::Disconnected(_)));
    // New registrations are taken.
    assert_eq!(world.register(0, "203.0.113.100", &server(100)), RegistrationOutcome::Listed);
    run(&mut world, 80 * SECOND);
    // After the limit every node has what registers with it.
    assert_listed(&mut world, 2);
    world.nodes.iter_mut().for_each(|node| node.is_linked = true);
    refresh(&mut world);
    world.register(0, "203.0.113.100", &server(100));
    world.run(10 * SECOND);
    assert_listed(&mut world, 7);
}

#[test]
fn a_store_that_was_emptied_is_filled_again_within_five_seconds() {
    let mut world = cluster();
    world.nodes.iter_mut().for_each(|node| node.is_linked = false);
    run(&mut world, 60 * SECOND);
    world.store.flush();
    world.nodes.iter_mut().for_each(|node| node.is_linked = true);
    let start = world.now;
    while world.store.entries.len() < 6 {
        world.step();
        assert_listed(&mut world, 6);
        assert!(world.now - start < 5 * SECOND, "the store has {} servers", world.store.entries.len());
    }
    run(&mut world, 60 * SECOND);
    assert_listed(&mut world, 6);
    assert_eq!(world.store.entries.len(), 6);
}

#[test]
fn a_store_that_is_emptied_while_it_runs_is_filled_again() {
    let mut world = cluster();
    world.store.flush();
    for _ in 0..500 {
        world.step();
        assert_listed(&mut world, 6);
    }
    assert_eq!(world.store.entries.len(), 6);
    for node in &mut world.nodes {
        assert_eq!((node.node.take_defect(), node.node.stats().defects), (Some(StoreDefect::Emptied), 1));
    }
}

/// The other nodes cannot write to it either, so nothing is removed until they had the time to.
#[test]
fn contact_is_lost_while_an_emptied_store_is_filled() {
    let mut world = cluster();
    world.nodes[0].is_linked = false;
    world.nodes[1].is_linked = false;
    world.store.flush();
    run(&mut world, 2 * SECOND);
    world.nodes[2].is_linked = false;
    run(&mut world, 20 * SECOND);
    world.nodes[2].is_linked = true;
    run(&mut world, 2 * SECOND);
    world.nodes[0].is_linked = true;
    world.nodes[1].is_linked = true;
    run(&mut world, 5 * SECOND);
    assert_listed(&mut world, 6);
    assert_eq!(world.store.entries.len(), 6);
}

#[test]
fn a_failover_that_loses_changes_is_repaired() {
    let mut world = cluster();
    let old = world.store.clone();
    for number in 10..20 {
        world.register(number % 3, &name(number), &server(number as u128));
    }
    world.run(SECOND);
    assert_listed(&mut world, 16);
    world.store = model_at(old, world.store.now);
    for _ in 0..1_000 {
        world.step();
        assert_listed(&mut world, 16);
    }
    assert_eq!(world.store.entries.len(), 16);
}

/// The new master has as many changes as were lost before any node reads the log: the numbers agree, the changes do not.
#[test]
fn a_failover_is_recognised_although_the_numbers_agree() {
    let mut world = cluster();
    let old = world.store.clone();
    world.register(0, &name(10), &server(10));
    world.run(SECOND);
    assert_listed(&mut world, 7);
    world.store = model_at(old, world.store.now);
    world.register(1, &name(11), &server(11));
    world.run(10 * SECOND);
    assert_listed(&mut world, 8);
    assert_eq!(world.store.entries.len(), 8);
}

fn model_at(mut store: support::model::ModelStore, now: u64) -> support::model::ModelStore {
    store.now = now;
    store
}

#[test]
fn a_store_that_is_read_only_for_a_minute_changes_nothing() {
    let mut world = cluster();
    world.is_read_only = true;
    run(&mut world, 60 * SECOND);
    assert_listed(&mut world, 6);
    world.register(2, &name(9), &server(9));
    world.is_read_only = false;
    refresh(&mut world);
    world.run(10 * SECOND);
    assert_listed(&mut world, 7);
}

/// A node that tries again has contact for a moment each time.
#[test]
fn a_store_that_refuses_one_kind_of_request_is_one_outage() {
    use RequestKind::{Bans, Fetch, Open, ReadLog, Renew, Scan, Tick, Write};
    for kind in [Open, Tick, Write, Renew, ReadLog, Bans, Scan, Fetch] {
        let mut world = cluster();
        world.nodes.iter_mut().for_each(|node| node.events.clear());
        world.refused = Some(kind);
        for number in 0..9 {
            run(&mut world, 10 * SECOND);
            // A change that has to be written.
            for node in 0..3 {
                world.register(
                    node,
                    &name(20 + node),
                    &support::Server { players: number, ..server(20 + node as u128) },
                );
            }
        }
        let is_needed = matches!(kind, Open | Tick | Write | Renew | ReadLog);
        world.refused = None;
        refresh(&mut world);
        run(&mut world, 20 * SECOND);
        for node in &mut world.nodes {
            match (&*std::mem::take(&mut node.events), is_needed) {
                ([ContactEvent::Lost(error), ContactEvent::Regained], true) if kind != Open => {
                    assert_eq!(error.kind, StoreErrorKind::ReadOnly);
                }
                ([], _) if !is_needed || kind == Open => {}
                (events, _) => panic!("{kind:?}: {events:?}"),
            }
        }
        assert_listed(&mut world, 9);
    }
}

/// The contact comes and goes, for long enough each time that it would be worth two lines in the log.
#[test]
fn an_unstable_contact_is_not_reported_again_and_again() {
    let mut world = cluster();
    world.nodes.iter_mut().for_each(|node| node.events.clear());
    for _ in 0..20 {
        world.nodes[0].is_linked = false;
        run(&mut world, 8 * SECOND);
        world.nodes[0].is_linked = true;
        run(&mut world, 12 * SECOND);
        assert_listed(&mut world, 6);
    }
    let count = |world: &World, event: fn(&ContactEvent) -> bool| {
        world.nodes[0].events.iter().filter(|reported| event(reported)).count()
    };
    let is_lost: fn(&_) -> bool = |event| matches!(event, ContactEvent::Lost(_));
    let is_regained: fn(&_) -> bool = |event| *event == ContactEvent::Regained;
    assert_eq!((count(&world, is_lost), count(&world, is_regained)), (3, 2), "{:?}", world.nodes[0].events);
    // Once it lasts, that is reported.
    run(&mut world, 40 * SECOND);
    assert_eq!((count(&world, is_lost), count(&world, is_regained)), (3, 3), "{:?}", world.nodes[0].events);
}

#[test]
fn a_store_that_has_lost_its_metadata_is_filled_again() {
    let mut world = cluster();
    world.nodes.iter_mut().for_each(|node| node.events.clear());
    world.store.forget_meta();
    for _ in 0..500 {
        world.step();
        assert_listed(&mut world, 6);
    }
    assert_eq!(world.store.entries.len(), 6);
    assert!(world.nodes.iter().all(|node| node.events.is_empty()), "it is no outage");
}

#[test]
fn servers_that_were_deleted_from_the_store_are_written_again() {
    let mut world = cluster();
    let ids: Vec<_> = world.store.entries.keys().copied().collect();
    ids.iter().take(3).for_each(|id| world.store.forget(*id));
    for _ in 0..500 {
        world.step();
        assert_listed(&mut world, 6);
    }
    assert_eq!(world.store.entries.len(), 6);
}

/// Without a lease, a server that is gone would stay for ever.
#[test]
fn a_server_that_is_gone_leaves_although_the_store_has_lost_its_leases() {
    let mut world = cluster();
    world.store.forget_leases();
    for _ in 0..5 {
        for _ in 0..25 {
            world.run(SECOND);
            let counts: Vec<_> = (0..3).map(|node| world.list(node).len()).collect();
            assert!(counts.iter().all(|count| (5..=6).contains(count)), "{counts:?}");
        }
        for number in 0..5 {
            world.register(number % 3, &name(number), &server(number as u128));
        }
    }
    assert_listed(&mut world, 5);
    assert_eq!(world.store.entries.len(), 5);
}

#[test]
fn one_node_without_the_store_keeps_its_own_servers_and_returns() {
    let mut world = cluster();
    world.nodes[1].is_linked = false;
    run(&mut world, 120 * SECOND);
    assert_eq!(world.list(1).len(), 6, "it keeps what it knew");
    assert_eq!(world.list(0).len(), 4, "the others lose the servers that they do not hear of");
    world.nodes[1].is_linked = true;
    run(&mut world, 10 * SECOND);
    assert_listed(&mut world, 6);
}

#[test]
fn a_node_that_is_killed_comes_back_with_everything() {
    let mut world = cluster();
    world.restart_node(1);
    world.run(2 * SECOND);
    assert_listed(&mut world, 6);
    run(&mut world, 90 * SECOND);
    assert_listed(&mut world, 6);
}

#[test]
fn records_that_were_trimmed_from_the_log_lead_to_reading_everything() {
    let mut world = cluster();
    world.nodes[2].is_linked = false;
    world.run(2 * SECOND);
    for number in 20..60 {
        world.register(0, &name(number), &server(number as u128));
    }
    world.run(SECOND);
    world.store.trim_log(5);
    world.nodes[2].is_linked = true;
    world.run(10 * SECOND);
    assert_listed(&mut world, 46);
}

#[test]
fn a_node_with_another_secret_is_refused() {
    let mut world = cluster();
    let other = rallypoint_cluster::ClusterSecret::new("another secret of the tests").unwrap();
    let config = NodeConfig { secret_check: other.check_value(), ..node_config(99) };
    let now = world.now + world.nodes[2].ahead;
    world.nodes[2].node = ClusterNode::new(config, now);
    world.run(SECOND);
    let NodeState::Refused(reason) = world.nodes[2].node.state() else { panic!("it was not refused") };
    assert!(reason.contains("another secret"), "{reason}");
}

#[test]
fn an_outage_before_the_first_contact_is_reported_once() {
    let mut world = World::new(1, 7);
    world.nodes[0].is_linked = false;
    world.run(60 * SECOND);
    assert!(matches!(world.nodes[0].events[..], [ContactEvent::Lost(_)]), "{:?}", world.nodes[0].events);
    world.nodes[0].is_linked = true;
    world.run(20 * SECOND);
    assert!(
        matches!(world.nodes[0].events[..], [ContactEvent::Lost(_), ContactEvent::Joined]),
        "{:?}",
        world.nodes[0].events
    );
}

#[test]
fn a_slow_first_contact_is_not_an_outage() {
    let start = Instant::now();
    let mut node = lone_node(start);
    let mut monitor = ContactMonitor::default();
    let (id, _) = node.poll_request(start).unwrap();
    assert_eq!(monitor.poll_event(start + 5 * SECOND, &node), None);
    let error = StoreError { kind: StoreErrorKind::Unreachable, message: "no".into() };
    node.handle_reply(start, start + 6 * SECOND, id, Err(error.clone()));
    assert_eq!(monitor.poll_event(start + 6 * SECOND, &node), Some(ContactEvent::Lost(error)));
    assert_eq!(monitor.poll_event(start + 7 * SECOND, &node), None);
}

#[test]
fn each_reason_of_an_outage_is_reported_once() {
    let start = Instant::now();
    let mut node = lone_node(start);
    let mut monitor = ContactMonitor::default();
    let mut events = Vec::new();
    let kinds = [StoreErrorKind::Unreachable, StoreErrorKind::ReadOnly, StoreErrorKind::Rejected];
    for (second, kind) in (2..).step_by(10).zip(kinds.into_iter().cycle().take(9)) {
        let now = start + second * SECOND;
        let (id, _) = node.poll_request(now).unwrap();
        let error = StoreError { kind, message: "no".into() };
        node.handle_reply(now, now, id, Err(error));
        events.extend(monitor.poll_event(now, &node));
    }
    let [ContactEvent::Lost(first), ContactEvent::OtherReason(second), ContactEvent::OtherReason(third)] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!([first.kind, second.kind, third.kind], kinds);
}
