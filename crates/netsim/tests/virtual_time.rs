//! Timers fire at exact virtual times, hours are simulated in milliseconds, and the order at one instant is fixed.

use crate::common;

use common::{Echo, Ping, Ticker, address, ms, secs};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{Link, ManualPeer, Network};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

#[test]
fn timers_fire_at_exact_times() {
    let mut net = Network::new(1);
    let start = net.now();
    let ticker = net.add(address(1), Ticker::new(start + Duration::from_nanos(1), ms(250)));
    net.run_for(secs(1));
    let ticks = net.take_events(ticker);
    assert_eq!(ticks.len(), 4);
    for (number, (reported, woken)) in ticks.into_iter().enumerate() {
        assert_eq!(reported, woken);
        assert_eq!(woken - start, Duration::from_nanos(1) + ms(250) * number as u32);
    }
}

#[test]
fn a_timer_may_move_either_way_or_be_cancelled() {
    let mut net = Network::new(1);
    let start = net.now();
    let ticker = net.add(address(1), Ticker::new(start + secs(10), secs(1000)));
    net.run_for(secs(1));
    net.with(ticker, |ticker, now| ticker.next = Some(now + secs(1)));
    net.run_for(secs(3));
    assert_eq!(net.take_event(ticker), Some((start + secs(2), start + secs(2))));
    net.with(ticker, |ticker, now| ticker.next = Some(now + secs(100)));
    net.run_for(secs(50));
    assert_eq!(net.take_event(ticker), None);
    net.with(ticker, |ticker, _| ticker.next = None);
    assert!(net.run_until_idle(secs(0)));
    net.with(ticker, |ticker, _| ticker.next = Some(start)); // in the past: at once
    net.run_for(ms(0));
    assert_eq!(net.take_event(ticker), Some((start + secs(54), start + secs(54))));
}

#[test]
fn hours_are_simulated_in_milliseconds() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)).loss(0.1));
    net.add(address(1), Echo::default());
    let ping = net.add(address(2), Ping::new(net.now(), address(1), secs(1)));
    net.run_for(secs(24 * 3600));
    assert_eq!(net.machine(ping).sent(), 24 * 3600 + 1);
    assert_eq!(net.elapsed(), secs(24 * 3600));
}

#[test]
fn the_maximum_duration_means_no_limit() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)));
    let a = net.add(address(1), ManualPeer::default());
    net.with(a, |a, _| a.send(address(1), b"to itself"));
    assert!(net.run_until_idle(Duration::MAX));
    assert_eq!(net.elapsed(), ms(25));
    assert_eq!(net.wait_event(a, Duration::MAX).map(|(_, event)| event.1), Some(b"to itself".to_vec()));
}

#[test]
fn the_clock_stands_still_between_runs() {
    let mut net = Network::new(1);
    let before = net.now();
    net.add(address(1), ManualPeer::default());
    assert_eq!(net.now(), before);
    assert!(!net.step());
    net.run_until(before + secs(3));
    net.run_until(before); // never backwards
    assert_eq!(net.elapsed(), secs(3));
}

/// Records the order in which it is called.
#[derive(Default)]
struct CallLog(Vec<&'static str>, Option<Instant>);

impl Machine for CallLog {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, bytes: &[u8]) {
        self.0.push(if bytes == b"1" { "first datagram" } else { "second datagram" });
    }

    fn handle_timeout(&mut self, _now: Instant) {
        self.0.push("wake-up");
        self.1 = None;
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.1
    }
}

#[test]
fn scheduled_changes_precede_arrivals_which_precede_wakeups() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(10)));
    let at = net.now() + ms(10);
    let log = net.add(address(1), CallLog(Vec::new(), Some(at)));
    let peer = net.add(address(2), ManualPeer::default());
    net.with(peer, |peer, _| {
        peer.send(address(1), b"1");
        peer.send(address(1), b"2");
    });
    net.schedule_at(at, move |net| net.with(log, |log, _| log.0.push("first change")));
    net.schedule_in(ms(10), move |net| {
        net.with(log, |log, _| log.0.push("second change"));
        net.schedule_in(ms(0), move |net| net.with(log, |log, _| log.0.push("third change")));
    });
    net.run_for(ms(10));
    let expected = ["first change", "second change", "third change", "first datagram", "second datagram", "wake-up"];
    assert_eq!(net.machine(log).0, expected);
}

#[test]
fn runs_end_at_an_event_a_condition_or_a_limit() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)));
    net.add(address(1), Echo::default());
    let start = net.now();
    let ping = net.add(address(2), Ping::new(start, address(1), secs(1)));
    let (at, pong) = net.wait_event(ping, secs(5)).unwrap();
    assert_eq!((at - start, net.elapsed(), pong.rtt), (ms(50), ms(50), ms(50)));
    assert_eq!(net.wait_event(ping, ms(900)), None);
    assert_eq!(net.elapsed(), ms(950));
    assert!(net.run_while(secs(5), |net| net.machine(ping).sent() < 4));
    assert_eq!(net.elapsed(), secs(3));
    assert!(!net.run_while(secs(1), |_| true));
    assert_eq!(net.elapsed(), secs(4));
    assert!(!net.run_until_idle(secs(1)), "a machine that is never idle");
}
