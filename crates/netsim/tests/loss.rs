//! Datagrams are lost at the rate that was asked for, each by itself or in bursts.

mod common;

use common::address;
use rallypoint_netsim::{Burst, Link, LinkState, Loss, Network, Outcome, Puppet, Rng};
use std::time::Instant;

const MANY: usize = 200_000;

/// For each of many datagrams, why it was lost.
fn fates(link: Link, seed: u64) -> Vec<Option<Loss>> {
    let (mut state, now) = (LinkState::new(link, Rng::new(seed)), Instant::now());
    let fate = |outcome| if let Outcome::Lost(loss) = outcome { Some(loss) } else { None };
    (0..MANY).map(|_| fate(state.offer(now, 100))).collect()
}

fn share(fates: &[Option<Loss>], loss: Loss) -> f64 {
    fates.iter().filter(|fate| **fate == Some(loss)).count() as f64 / fates.len() as f64
}

/// How long losses in a row are on average.
fn mean_run(fates: &[Option<Loss>]) -> f64 {
    let runs: Vec<usize> = fates.split(Option::is_none).map(<[_]>::len).filter(|len| *len > 0).collect();
    runs.iter().sum::<usize>() as f64 / runs.len() as f64
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 0.05 * expected, "{value} is not near {expected}");
}

#[test]
fn uniform_loss_has_its_rate() {
    for (seed, rate) in [0.01, 0.05, 0.2, 0.5, 0.9].into_iter().enumerate() {
        let fates = fates(Link::default().loss(rate), seed as u64);
        assert_near(share(&fates, Loss::Random), rate);
        assert_near(mean_run(&fates), 1.0 / (1.0 - rate)); // that is: one does not depend on the one before
    }
}

#[test]
fn none_and_all_are_exact() {
    assert_eq!(share(&fates(Link::default(), 1), Loss::Random), 0.0);
    assert_eq!(share(&fates(Link::default().loss(-1.0), 1), Loss::Random), 0.0);
    assert_eq!(share(&fates(Link::default().loss(1.0), 1), Loss::Random), 1.0);
    assert_eq!(share(&fates(Link::default().bursts(1.0, 3.0), 1), Loss::Burst), 1.0);
    assert_eq!(share(&fates(Link::default().bursts(0.0, 3.0), 1), Loss::Burst), 0.0);
}

#[test]
fn bursts_have_their_rate_and_length() {
    for (seed, (rate, length)) in [(0.02, 3.0), (0.1, 8.0), (0.3, 2.0), (0.5, 20.0)].into_iter().enumerate() {
        let fates = fates(Link::default().bursts(rate, length), seed as u64);
        assert_near(share(&fates, Loss::Burst), rate);
        assert_near(mean_run(&fates), length);
    }
}

#[test]
fn impossible_bursts_keep_the_rate() {
    let fates = fates(Link::default().bursts(0.9, 1.0), 4);
    assert_near(share(&fates, Loss::Burst), 0.9);
}

#[test]
fn a_bad_link_may_let_something_through() {
    let burst = Some(Burst { start: 0.1, end: 0.1, loss: 0.5 });
    let fates = fates(Link { burst, ..Link::default() }, 5);
    assert_near(share(&fates, Loss::Burst), 0.25);
}

#[test]
fn counters_tell_loss_from_bursts() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().loss(0.2).bursts(0.2, 5.0));
    let a = net.add(address(1), Puppet::default());
    let b = net.add(address(2), Puppet::default());
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
