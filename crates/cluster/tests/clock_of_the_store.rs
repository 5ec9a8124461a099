//! The store's clock is set while nodes are at work: servers stay listed, and leases end in the new time. (The clocks of the nodes
//! are five minutes apart in all of these tests.)

use crate::support;

use std::time::Duration;
use support::{Server, World, server};

const SECOND: Duration = Duration::from_secs(1);
const HOUR_MS: u64 = 3_600_000;

/// Three nodes with servers, of which [`refresh`] refreshes all but the last.
fn cluster() -> World {
    let mut world = World::new(3, 11);
    world.run(3 * SECOND);
    for number in 0..6 {
        world.register(number % 3, &format!("203.0.113.{number}"), &server(number as u128));
    }
    world.run(12 * SECOND);
    world
}

fn refresh(world: &mut World) {
    for number in 0..5 {
        world.register(number % 3, &format!("203.0.113.{number}"), &server(number as u128));
    }
}

#[track_caller]
fn assert_listed(world: &mut World, counts: std::ops::RangeInclusive<usize>) {
    for node in 0..3 {
        let count = world.list(node).len();
        assert!(counts.contains(&count), "node {node} lists {count}");
    }
}

fn run_with_clock_set(set: impl FnOnce(&mut u64)) {
    let mut world = cluster();
    assert_listed(&mut world, 6..=6);
    set(&mut world.store.now);
    for _ in 0..5 {
        refresh(&mut world);
        for _ in 0..250 {
            world.run(SECOND / 10);
            assert_listed(&mut world, 5..=6);
        }
    }
    refresh(&mut world);
    world.run(15 * SECOND);
    assert_listed(&mut world, 5..=5);
    assert_eq!(world.store.entries.len(), 5);
}

#[test]
fn an_hour_ahead() {
    run_with_clock_set(|now| *now += HOUR_MS);
}

#[test]
fn an_hour_back() {
    run_with_clock_set(|now| *now -= HOUR_MS.min(*now));
}

/// Leases that were given in the time before must not make changes seem old.
#[test]
fn changes_count_although_the_clock_was_set_back() {
    for back in [1_500, 5_000, 30_000, 59_000] {
        let mut world = cluster();
        world.store.now -= back;
        world.register(0, "203.0.113.0", &Server { players: 7, ..server(0) });
        world.run(3 * SECOND);
        // Another server at the same address and port.
        world.register(1, "203.0.113.1", &server(1_000));
        world.run(10 * SECOND);
        for node in 0..3 {
            let list = world.list(node);
            let has = |part: &str| list.iter().any(|server| server.contains(part));
            assert_eq!(list.len(), 6, "{back} ms back");
            assert!(has(&format!("{} 7 ", server(0).name)), "{back} ms back: {list:?}");
            assert!(has(&server(1_000).name) && !has(&format!("{} ", server(1).name)), "{back} ms back: {list:?}");
        }
    }
}

#[test]
fn forty_seconds_back() {
    run_with_clock_set(|now| *now -= 40_000);
}
