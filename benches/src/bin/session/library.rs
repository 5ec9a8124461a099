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

    /// Arrival time of each message, in order.
    fn received(&self) -> &[Instant];
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
pub struct Received(Vec<Instant>);

impl Received {
    /// Records the arrival of a message.
    pub fn take(&mut self, now: Instant, message: &[u8]) {
        let number = message.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        assert_eq!(number, Some(self.0.len()), "a message arrived out of order");
        self.0.push(now);
    }

    /// The arrival times.
    pub fn times(&self) -> &[Instant] {
        &self.0
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
