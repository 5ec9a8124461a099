//! A machine that breaks the rules stops the test, and the message names it.

mod common;

use common::{Echo, address, secs};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::Network;
use std::{net::SocketAddr, time::Instant};

/// Breaks one rule.
enum Broken {
    /// Always wants to be woken now.
    Spins(Instant),
    /// Says another length than it appended.
    Lies,
    /// Empties the buffer that others have written to.
    Empties,
    /// Always has something to send.
    Floods,
    /// Always has something to tell.
    Chatters,
    /// Sends segments of nothing.
    Segments,
}

impl Machine for Broken {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Spins(_) | Self::Chatters => return None,
            Self::Lies => {}
            Self::Empties => out.clear(),
            Self::Floods | Self::Segments => out.push(1),
        }
        if let Self::Empties = self {
            out.push(1);
        }
        let segment = if let Self::Segments = self { Some(0) } else { None };
        Some(Transmit { segment, ..Transmit::one(address(9), 1) })
    }

    fn poll_event(&mut self) -> Option<()> {
        matches!(self, Self::Chatters).then_some(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if let Self::Spins(at) = self { Some(*at) } else { None }
    }
}

fn run(broken: Broken) {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    net.add(address(2), broken);
    net.run_for(secs(10));
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000) spins: woken 10000 times at 3s")]
fn a_machine_that_spins() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    net.add(address(2), Broken::Spins(net.now() + secs(3)));
    net.run_for(secs(10));
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_transmit was to append 1 bytes")]
fn a_machine_that_lies_about_the_length() {
    run(Broken::Lies);
}

#[test]
#[should_panic(expected = "the buffer went from 1 to 1 bytes")]
fn a_machine_that_empties_the_buffer() {
    run(Broken::Empties);
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_transmit does not come to an end")]
fn a_machine_that_floods() {
    run(Broken::Floods);
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_event does not come to an end")]
fn a_machine_that_chatters() {
    run(Broken::Chatters);
}

#[test]
#[should_panic(expected = "segments of zero bytes")]
fn a_machine_with_empty_segments() {
    run(Broken::Segments);
}

#[test]
#[should_panic(expected = "the time stands still at 0ns: datagrams without delay, now from 10.0.0")]
fn machines_that_answer_each_other_for_ever() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    net.add(address(2), Echo::default());
    net.inject(address(1), address(2), b"who stops first?");
    net.run_for(secs(1));
}
