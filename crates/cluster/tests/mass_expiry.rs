//! Thousands of leases that end at the same time, as when a game shuts all of its servers down.

use crate::support;

use std::time::Duration;
use support::{Server, World, server};

const SECOND: Duration = Duration::from_secs(1);
const SERVERS: usize = 1_600;

#[test]
fn servers_that_end_together_leave_all_lists_within_a_second() {
    let mut world = World::new(1, 3);
    world.run(3 * SECOND);
    for number in 0..SERVERS {
        let addr = format!("203.{}.{}.1", number / 250, number % 250);
        world.register(0, &addr, &Server { port: 8190, ..server(number as u128) });
    }
    world.run_until_listed(SERVERS, 10 * SECOND);
    while world.list(0).len() == SERVERS {
        world.run(SECOND / 5);
    }
    let time = world.run_until_listed(0, 60 * SECOND);
    assert!(time < SECOND, "{time:?}");
}
