//! Datagrams are lost at the configured rate, independently or in bursts.

use crate::common;

use common::address;
use rallypoint_netsim::{BurstLoss, Link, LinkResult, LinkState, Loss, ManualPeer, Network, Rng};
use std::time::Instant;

const MANY: usize = 200_000;

/// For each of many datagrams, the reason of its loss, if it was lost.
fn losses(link: Link, seed: u64) -> Vec<Option<Loss>> {
    let mut state = LinkState::new(link, Rng::new(seed));
    let now = Instant::now();
    let loss = |result| if let LinkResult::Lost(loss) = result { Some(loss) } else { None };
    (0..MANY).map(|_| loss(state.send(now, 100))).collect()
}

fn share(losses: &[Option<Loss>], loss: Loss) -> f64 {
    losses.iter().filter(|lost| **lost == Some(loss)).count() as f64 / losses.len() as f64
}

/// Mean length of a run of losses.
fn mean_run(losses: &[Option<Loss>]) -> f64 {
    let runs: Vec<usize> = losses.split(Option::is_none).map(<[_]>::len).filter(|len| *len > 0).collect();
    runs.iter().sum::<usize>() as f64 / runs.len() as f64
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 0.05 * expected, "{value} is not near {expected}");
}

#[test]
fn uniform_loss_has_its_rate() {
    for (seed, rate) in [0.01, 0.05, 0.2, 0.5, 0.9].into_iter().enumerate() {
        let losses = losses(Link::default().loss(rate), seed as u64);
        assert_near(share(&losses, Loss::Random), rate);
        assert_near(mean_run(&losses), 1.0 / (1.0 - rate)); // that is: one does not depend on the one before
    }
}

#[test]
fn none_and_all_are_exact() {
    assert_eq!(share(&losses(Link::default(), 1), Loss::Random), 0.0);
    assert_eq!(share(&losses(Link::default().loss(-1.0), 1), Loss::Random), 0.0);
    assert_eq!(share(&losses(Link::default().loss(1.0), 1), Loss::Random), 1.0);
    assert_eq!(share(&losses(Link::default().bursts(1.0, 3.0), 1), Loss::Burst), 1.0);
    assert_eq!(share(&losses(Link::default().bursts(0.0, 3.0), 1), Loss::Burst), 0.0);
}

#[test]
fn bursts_have_their_rate_and_length() {
    for (seed, (rate, length)) in [(0.02, 3.0), (0.1, 8.0), (0.3, 2.0), (0.5, 20.0)].into_iter().enumerate() {
        let losses = losses(Link::default().bursts(rate, length), seed as u64);
        assert_near(share(&losses, Loss::Burst), rate);
        assert_near(mean_run(&losses), length);
    }
}

#[test]
fn impossible_bursts_keep_the_rate() {
    let losses = losses(Link::default().bursts(0.9, 1.0), 4);
    assert_near(share(&losses, Loss::Burst), 0.9);
}

#[test]
fn a_bad_link_may_let_something_through() {
    let burst = Some(BurstLoss { start: 0.1, end: 0.1, loss: 0.5 });
    let losses = losses(Link { burst, ..Link::default() }, 5);
    assert_near(share(&losses, Loss::Burst), 0.25);
}

#[test]
fn counters_tell_loss_from_bursts() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().loss(0.2).bursts(0.2, 5.0));
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    for _ in 0..100_000 {
        net.with(a, |a, _| a.send(address(2), b"12345"));
    }
    assert!(net.run_until_idle(common::secs(1)));
    let counters = net.counters(a, b);
    assert_near(counters.lost_burst.datagrams as f64, 20_000.0);
    assert_near(counters.lost_random.datagrams as f64, 16_000.0);
    assert_eq!(counters.sent.bytes, 500_000);
    assert_eq!(counters.delivered.datagrams + counters.lost().datagrams, 100_000);
    assert_eq!(counters.delivered.datagrams, net.take_events(b).len() as u64);
    assert_eq!(net.totals(), counters);
}
