//! The compared libraries for reliable, ordered messages, behind one interface, on virtual time.

use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// One side of a connection.
pub trait Side: Machine<Event = ()> + 'static {
    /// Whether messages can be sent.
    fn is_connected(&self) -> bool;

    /// Queues a message; returns false if the queue is full.
    fn send(&mut self, now: Instant, message: &[u8]) -> bool;

    /// Ends a frame: libraries that send once per frame send now.
    fn end_frame(&mut self, _now: Instant) {}

    /// The messages that have arrived.
    fn received(&self) -> &Received;
}

/// A library.
pub trait Library {
    /// Name of the library.
    const NAME: &'static str;
    /// The accepting side.
    type Server: Side;
    /// The connecting side.
    type Client: Side;

    /// Creates both sides, for messages of `size` bytes.
    fn pair(now: Instant, server: SocketAddr, size: usize) -> (Self::Server, Self::Client);
}

/// Arrival times of messages. The first four bytes of a message are its number, which verifies the order.
#[derive(Default)]
pub struct Received {
    arrivals: Vec<(u32, Instant)>,
    is_in_any_order: bool,
}

impl Received {
    /// For channels whose messages may be lost or arrive in another order.
    pub fn in_any_order() -> Self {
        Self { is_in_any_order: true, ..Self::default() }
    }

    /// Records the arrival of a message.
    pub fn take(&mut self, now: Instant, message: &[u8]) {
        let number = message.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).expect("a number");
        assert!(self.is_in_any_order || number as usize == self.len(), "a message arrived out of order");
        self.arrivals.push((number, now));
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// The arrival times, in the order of arrival.
    pub fn times(&self) -> impl ExactSizeIterator<Item = Instant> {
        self.arrivals.iter().map(|(_, at)| *at)
    }

    /// The arrival time of the message at this position.
    pub fn at(&self, position: usize) -> Option<Instant> {
        self.arrivals.get(position).map(|(_, at)| *at)
    }

    /// Numbers and arrival times, in the order of arrival.
    pub fn arrivals(&self) -> &[(u32, Instant)] {
        &self.arrivals
    }
}

/// The message with this number.
pub fn numbered(number: u32, size: usize) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.resize(size, number as u8);
    message
}

/// A duration in milliseconds.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
