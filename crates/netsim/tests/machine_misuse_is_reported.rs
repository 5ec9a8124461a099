//! A machine that breaks the rules makes the test panic, with a message that names it.

use crate::common;

use common::{Echo, address, secs};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::Network;
use std::{net::SocketAddr, time::Instant};

/// A machine that breaks one rule.
enum Broken {
    /// Always has a timer that is due.
    Spins(Instant),
    /// Returns another length than it appended.
    WrongLength,
    /// Clears the buffer that it should append to.
    ClearsBuffer,
    /// Always has something to send.
    EndlessTransmits,
    /// Always has an event.
    EndlessEvents,
    /// Sends empty segments.
    EmptySegments,
}

impl Machine for Broken {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Spins(_) | Self::EndlessEvents => return None,
            Self::WrongLength => {}
            Self::ClearsBuffer => out.clear(),
            Self::EndlessTransmits | Self::EmptySegments => out.push(1),
        }
        if let Self::ClearsBuffer = self {
            out.push(1);
        }
        let segment = if let Self::EmptySegments = self { Some(0) } else { None };
        Some(Transmit { segment, ..Transmit::one(address(9), 1) })
    }

    fn poll_event(&mut self) -> Option<()> {
        matches!(self, Self::EndlessEvents).then_some(())
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
fn a_timer_that_is_always_due() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    net.add(address(2), Broken::Spins(net.now() + secs(3)));
    net.run_for(secs(10));
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_transmit returned a length of 1 bytes")]
fn a_wrong_length() {
    run(Broken::WrongLength);
}

#[test]
#[should_panic(expected = "the buffer went from 1 to 1 bytes")]
fn a_cleared_buffer() {
    run(Broken::ClearsBuffer);
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_transmit never returns None")]
fn endless_transmits() {
    run(Broken::EndlessTransmits);
}

#[test]
#[should_panic(expected = "node 1 (10.0.0.2:4000): poll_event never returns None")]
fn endless_events() {
    run(Broken::EndlessEvents);
}

#[test]
#[should_panic(expected = "segments of zero bytes")]
fn empty_segments() {
    run(Broken::EmptySegments);
}

#[test]
#[should_panic(expected = "time stands still at 0ns: datagrams without delay, now from 10.0.0")]
fn machines_that_answer_each_other_forever() {
    let mut net = Network::new(1);
    net.add(address(1), Echo::default());
    net.add(address(2), Echo::default());
    net.inject(address(1), address(2), b"ping");
    net.run_for(secs(1));
}
