//! The datagrams in flight, in the order of their arrival.

use crate::{NodeId, paths::RouteIndex};
use std::{cmp::Reverse, collections::BinaryHeap, net::SocketAddr, time::Instant};

/// One copy of a datagram in flight.
pub(crate) struct InFlight {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    /// When it leaves the bottleneck.
    pub(crate) departs: Instant,
    /// The route whose counters it belongs to; none if it was injected.
    pub(crate) route: Option<RouteIndex>,
    /// Its number in the log.
    pub(crate) record: Option<u64>,
    /// The node that had the address `to` at that epoch of the address table: saves the lookup if nothing has changed since.
    pub(crate) receiver: Option<NodeId>,
    pub(crate) epoch: u64,
}

/// A priority queue of datagrams, with buffers that are reused.
#[derive(Default)]
pub(crate) struct InFlightQueue {
    /// Time of arrival, then order of sending, then where the datagram is.
    heap: BinaryHeap<Reverse<(Instant, u64, SlotIndex)>>,
    slots: Vec<Option<InFlight>>,
    free: Vec<SlotIndex>,
    buffers: Vec<Vec<u8>>,
    sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotIndex(u32);

impl InFlightQueue {
    /// A buffer with these bytes.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Returns a buffer for reuse.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.push(buffer);
    }

    pub(crate) fn push(&mut self, at: Instant, datagram: InFlight) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // The memory is full long before.
            SlotIndex(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 datagrams in flight"))
        });
        self.slots[slot.0 as usize] = Some(datagram);
        self.heap.push(Reverse((at, self.sent, slot)));
        self.sent += 1;
    }

    /// Changes the times of arrival, the earliest first: `arrival` returns the new one. No datagram overtakes another.
    pub(crate) fn reschedule(&mut self, mut arrival: impl FnMut(&mut InFlight, Instant) -> Instant) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.sort_unstable_by_key(|Reverse(entry)| *entry);
        for Reverse((at, _, slot)) in &mut entries {
            if let Some(datagram) = &mut self.slots[slot.0 as usize] {
                *at = arrival(datagram, *at);
            }
        }
        self.heap = entries.into();
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// A description of the next datagram, for an error message.
    pub(crate) fn describe_next(&self) -> String {
        let next = self.heap.peek().and_then(|Reverse((_, _, slot))| self.slots[slot.0 as usize].as_ref());
        next.map_or_else(String::new, |next| format!("datagrams without delay, now from {} to {}", next.from, next.to))
    }

    pub(crate) fn pop(&mut self) -> Option<InFlight> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slots[slot.0 as usize].take()
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
