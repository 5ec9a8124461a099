//! Machines of any type behind one small trait, and the typed handles that lead back to them.

use rallypoint_machine::{Machine, Transmit};
use std::{any::Any, collections::VecDeque, fmt, marker::PhantomData, net::SocketAddr, time::Instant};

/// A node of a [`Network`](crate::Network), whatever its machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// A node whose machine is an `M`. It belongs to the network that gave it.
pub struct Node<M> {
    id: NodeId,
    machine: PhantomData<fn() -> M>,
}

impl<M> Node<M> {
    pub(crate) fn new(index: usize) -> Self {
        Self { id: NodeId(u32::try_from(index).expect("a network of less than 2^32 nodes")), machine: PhantomData }
    }

    /// The same node without its type.
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

/// What the network needs of a machine, without its type.
pub(crate) trait AnyMachine: Any {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]);
    fn handle_timeout(&mut self, now: Instant);
    /// Polls everything: what is to be sent into `outbox`, events to where the test takes them, and the next wake-up.
    fn drain(&mut self, now: Instant, outbox: &mut Outbox) -> Result<Option<Instant>, Misuse>;
}

/// What one drain wants to send.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    pub(crate) transmits: Vec<Transmit>,
}

/// A machine with the events that the test has not taken yet.
pub(crate) struct Holder<M: Machine> {
    pub(crate) machine: M,
    pub(crate) events: VecDeque<(Instant, M::Event)>,
}

/// What a machine must not do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    EndlessTransmits,
    EndlessEvents,
    WrongLength { said: usize, before: usize, after: usize },
    EmptySegment,
}

/// More than any machine has to say at once; one that goes on is in an endless loop.
const MOST_POLLS: usize = 1_000_000;
/// The same in bytes to send, so that the endless loop is noticed before the memory is full.
const MOST_BYTES: usize = 1 << 28;

impl<M: Machine + 'static> AnyMachine for Holder<M> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.machine.handle_datagram(now, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn drain(&mut self, now: Instant, outbox: &mut Outbox) -> Result<Option<Instant>, Misuse> {
        // The buffer is not emptied in between: so a machine that does not append is found out.
        loop {
            let before = outbox.bytes.len();
            let Some(transmit) = self.machine.poll_transmit(now, &mut outbox.bytes) else { break };
            let after = outbox.bytes.len();
            if after.checked_sub(before) != Some(transmit.len) {
                return Err(Misuse::WrongLength { said: transmit.len, before, after });
            }
            if transmit.segment == Some(0) {
                return Err(Misuse::EmptySegment);
            }
            outbox.transmits.push(transmit);
            if outbox.transmits.len() > MOST_POLLS || after > MOST_BYTES {
                return Err(Misuse::EndlessTransmits);
            }
        }
        for polls in 0.. {
            let Some(event) = self.machine.poll_event() else { break };
            self.events.push_back((now, event));
            if polls > MOST_POLLS {
                return Err(Misuse::EndlessEvents);
            }
        }
        Ok(self.machine.poll_timeout())
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndlessTransmits => f.write_str("poll_transmit does not come to an end"),
            Self::EndlessEvents => f.write_str("poll_event does not come to an end"),
            Self::WrongLength { said, before, after } => write!(
                f,
                "poll_transmit was to append {said} bytes, as it says, but the buffer went from {before} to {after} bytes"
            ),
            Self::EmptySegment => f.write_str("poll_transmit gave segments of zero bytes"),
        }
    }
}
