//! The datagrams that are on the way, in the order of their arrival.

use crate::NodeId;
use std::{cmp::Reverse, collections::BinaryHeap, net::SocketAddr, time::Instant};

/// One copy of a datagram on its way.
pub(crate) struct Flyer {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    /// The route whose counters it belongs to; none if it was injected.
    pub(crate) route: Option<u32>,
    /// Its number in the log.
    pub(crate) record: Option<u64>,
    /// Who had the address `to` at that epoch of the address table: saves the look-up if nothing has changed since.
    pub(crate) receiver: Option<NodeId>,
    pub(crate) epoch: u64,
}

/// A queue with buffers that are used again.
#[derive(Default)]
pub(crate) struct Flight {
    /// Time, then order of sending, then where the datagram is.
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    slots: Vec<Option<Flyer>>,
    free: Vec<u32>,
    buffers: Vec<Vec<u8>>,
    sent: u64,
}

impl Flight {
    /// A buffer with these bytes.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.push(buffer);
    }

    pub(crate) fn push(&mut self, at: Instant, flyer: Flyer) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("less than 2^32 datagrams on the way")
        });
        self.slots[slot as usize] = Some(flyer);
        self.heap.push(Reverse((at, self.sent, slot)));
        self.sent += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next datagram for people.
    pub(crate) fn next_name(&self) -> String {
        let next = self.heap.peek().and_then(|Reverse((_, _, slot))| self.slots[*slot as usize].as_ref());
        next.map_or_else(String::new, |next| format!("datagrams without delay, now from {} to {}", next.from, next.to))
    }

    pub(crate) fn pop(&mut self) -> Option<Flyer> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
