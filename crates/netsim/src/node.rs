//! Machines of any type behind one private trait, and typed handles to them.

use rallypoint_machine::{Machine, Transmit};
use std::{any::Any, collections::VecDeque, fmt, marker::PhantomData, net::SocketAddr, time::Instant};

/// Identifies a node of a [`Network`](crate::Network), whatever the type of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// A typed handle to a node whose machine is an `M`. It is valid only with the network that returned it.
pub struct Node<M> {
    id: NodeId,
    machine: PhantomData<fn() -> M>,
}

impl<M> Node<M> {
    pub(crate) fn new(index: usize) -> Self {
        // The memory is full long before.
        let id = NodeId(u32::try_from(index).expect("fewer than 2^32 nodes"));
        Self { id, machine: PhantomData }
    }

    /// The node without the type of its machine.
    #[must_use]
    pub fn id(self) -> NodeId {
        self.id
    }
}

impl<M> Clone for Node<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Node<M> {}

impl<M> fmt::Debug for Node<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl<M> From<Node<M>> for NodeId {
    fn from(node: Node<M>) -> Self {
        node.id
    }
}

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The calls of a machine that the network needs, without its type.
pub(crate) trait AnyMachine: Any {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]);
    fn handle_timeout(&mut self, now: Instant);
    /// Polls everything, as at the end of a turn of the event loop: datagrams into `outbox`, events into the queue that the
    /// test takes them from, and the next wake-up.
    fn drain(&mut self, now: Instant, outbox: &mut Outbox) -> Result<Option<Instant>, Misuse>;
}

/// The datagrams of one drain.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    pub(crate) transmits: Vec<Transmit>,
}

/// A machine, and its events that the test has not taken yet.
pub(crate) struct MachineState<M: Machine> {
    pub(crate) machine: M,
    pub(crate) events: VecDeque<(Instant, M::Event)>,
}

/// A violation of the rules for machines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    EndlessTransmits,
    EndlessEvents,
    WrongLength { claimed: usize, before: usize, after: usize },
    EmptySegment,
}

/// Maximum number of transmits or events of one drain. A machine with more is in an endless loop.
const MAX_POLLS: usize = 1_000_000;
/// Maximum number of bytes of one drain, so that an endless loop is noticed before the memory is full.
const MAX_BYTES: usize = 1 << 28;

impl<M: Machine + 'static> AnyMachine for MachineState<M> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.machine.handle_datagram(now, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn drain(&mut self, now: Instant, outbox: &mut Outbox) -> Result<Option<Instant>, Misuse> {
        // The buffer is not cleared in between, so that a machine that does not append is detected.
        loop {
            let before = outbox.bytes.len();
            let Some(transmit) = self.machine.poll_transmit(now, &mut outbox.bytes) else { break };
            let after = outbox.bytes.len();
            if after.checked_sub(before) != Some(transmit.len) {
                return Err(Misuse::WrongLength { claimed: transmit.len, before, after });
            }
            if transmit.segment == Some(0) {
                return Err(Misuse::EmptySegment);
            }
            outbox.transmits.push(transmit);
            if outbox.transmits.len() > MAX_POLLS || after > MAX_BYTES {
                return Err(Misuse::EndlessTransmits);
            }
        }
        self.machine.handle_turn_end(now);
        for polls in 0.. {
            let Some(event) = self.machine.poll_event() else { break };
            self.events.push_back((now, event));
            if polls > MAX_POLLS {
                return Err(Misuse::EndlessEvents);
            }
        }
        Ok(self.machine.poll_timeout())
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndlessTransmits => f.write_str("poll_transmit never returns None"),
            Self::EndlessEvents => f.write_str("poll_event never returns None"),
            Self::WrongLength { claimed, before, after } => write!(
                f,
                "poll_transmit returned a length of {claimed} bytes, but the buffer went from {before} to {after} bytes"
            ),
            Self::EmptySegment => f.write_str("poll_transmit returned segments of zero bytes"),
        }
    }
}
