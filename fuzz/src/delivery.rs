//! Delivers datagrams between the state machines of a target.

use rallypoint_machine::Machine;
use std::{net::SocketAddr, time::Instant};

/// Calls `deliver` with the destination and the bytes of each datagram that a machine sends now. Returns whether there were any.
pub(crate) fn drain(now: Instant, machine: &mut impl Machine, mut deliver: impl FnMut(SocketAddr, &[u8])) -> bool {
    let mut out = Vec::new();
    let mut has_sent = false;
    while let Some(transmit) = machine.poll_transmit(now, &mut out) {
        has_sent = true;
        transmit.datagrams(&out).for_each(|bytes| deliver(transmit.to, bytes));
        out.clear();
    }
    has_sent
}
