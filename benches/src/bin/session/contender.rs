//! What is measured: libraries that carry reliable, ordered messages, each behind the same few calls, on virtual time.

use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// One side of a connection.
pub trait Side: Machine<Event = ()> + 'static {
    /// Whether messages can be sent.
    fn is_connected(&self) -> bool;

    /// Takes a message to be sent; false if there is no room for it now.
    fn send(&mut self, now: Instant, message: &[u8]) -> bool;

    /// The frame is over: whoever sends once per frame sends now.
    fn end_frame(&mut self, _now: Instant) {}

    /// When each message arrived, in order.
    fn heard(&self) -> &[Instant];
}

/// A library.
pub trait Contender {
    /// Its name.
    const NAME: &'static str;
    /// The side that waits.
    type Server: Side;
    /// The side that comes.
    type Client: Side;

    /// Both sides, for messages of `size` bytes.
    fn pair(now: Instant, server: SocketAddr, size: usize) -> (Self::Server, Self::Client);
}

/// What arrived, and when. The first four bytes of a message are its number, so nothing is mixed up unnoticed.
#[derive(Default)]
pub struct Heard(Vec<Instant>);

impl Heard {
    /// A message arrived.
    pub fn take(&mut self, now: Instant, message: &[u8]) {
        let number = message.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        assert_eq!(number, Some(self.0.len()), "a message came out of turn");
        self.0.push(now);
    }

    /// The times.
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

/// So many milliseconds.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
