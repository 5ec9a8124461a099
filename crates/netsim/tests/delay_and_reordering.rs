//! Delay and jitter keep the order unless configured otherwise; reordering and duplication happen at the configured rate.

use crate::common;

use common::{address, ms, secs};
use rallypoint_netsim::{Link, ManualPeer, Network};
use std::time::Duration;

const MANY: u32 = 10_000;

/// Numbers of the datagrams that arrive, and the delay of each, if one is sent every millisecond.
fn arrivals(link: Link) -> Vec<(u32, Duration)> {
    let mut net = Network::new(1);
    net.set_default_link(link);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    let start = net.now();
    for number in 0..MANY {
        net.with(a, |a, _| a.send(address(2), &number.to_be_bytes()));
        net.run_for(ms(1));
    }
    net.run_for(secs(1));
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let events = net.take_events(b).into_iter();
    events.map(|(at, (_, bytes))| (number(&bytes), at - start - number(&bytes) * ms(1))).collect()
}

fn inversions(arrivals: &[(u32, Duration)]) -> usize {
    arrivals.windows(2).filter(|pair| pair[0].0 > pair[1].0).count()
}

#[test]
fn delay_is_exact() {
    let arrivals = arrivals(Link::default().delay(ms(25)));
    assert!(arrivals.iter().map(|(number, _)| *number).eq(0..MANY));
    assert!(arrivals.iter().all(|(_, delay)| *delay == ms(25)));
}

#[test]
fn jitter_keeps_the_order_by_default() {
    let arrivals = arrivals(Link::default().delay(ms(25)).jitter(ms(20)));
    assert!(arrivals.iter().map(|(number, _)| *number).eq(0..MANY));
    assert!(arrivals.iter().all(|(_, delay)| (ms(25)..=ms(45)).contains(delay)));
    assert!(arrivals.iter().any(|(_, delay)| *delay < ms(40)));
}

#[test]
fn jitter_may_reorder() {
    let arrivals = arrivals(Link::default().delay(ms(25)).jitter_reordering(ms(20)));
    assert!(inversions(&arrivals) > 1000);
    let mean: Duration = arrivals.iter().map(|(_, delay)| *delay).sum::<Duration>() / MANY;
    assert!(mean.abs_diff(ms(35)) < ms(1), "{mean:?}");
}

#[test]
fn some_datagrams_are_held_back() {
    let arrivals = arrivals(Link::default().delay(ms(25)).reorder(0.1, ms(3)));
    let held: Vec<_> = arrivals.iter().filter(|(_, delay)| *delay == ms(28)).collect();
    assert!(held.len().abs_diff(1000) < 100, "{}", held.len());
    assert!(arrivals.iter().all(|(_, delay)| [ms(25), ms(28)].contains(delay)));
    assert!(inversions(&arrivals) > 500);
}

#[test]
fn some_datagrams_arrive_twice() {
    let arrivals = arrivals(Link::default().delay(ms(25)).duplicate(0.1));
    assert!((arrivals.len() - MANY as usize).abs_diff(1000) < 100);
    assert_eq!(inversions(&arrivals), 0);
    let mut numbers: Vec<_> = arrivals.iter().map(|(number, _)| *number).collect();
    numbers.dedup();
    assert!(numbers.into_iter().eq(0..MANY));
}
