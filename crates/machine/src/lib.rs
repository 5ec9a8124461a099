//! The five calls that every protocol state machine of Rallypoint has.
//!
//! Protocol logic is *sans I/O*: a state machine is given datagrams and the time, and gives back datagrams, events and
//! the time of its next wake-up. Because all of them look the same from outside, one driver (the crate `net`) runs them
//! on real sockets, and one simulator (the crate `netsim`) runs them on virtual time.
//!
//! ```
//! use rallypoint_machine::{Machine, Transmit};
//! use std::{collections::VecDeque, net::SocketAddr, time::Instant};
//!
//! /// Sends every datagram back to where it came from.
//! #[derive(Default)]
//! struct Echo(VecDeque<(SocketAddr, Vec<u8>)>);
//!
//! impl Machine for Echo {
//!     type Event = ();
//!     fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
//!         if self.0.len() < 16 {
//!             self.0.push_back((from, bytes.to_vec()));
//!         }
//!     }
//!     fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
//!         let (to, bytes) = self.0.pop_front()?;
//!         out.extend_from_slice(&bytes);
//!         Some(Transmit::one(to, bytes.len()))
//!     }
//! }
//!
//! let (now, peer) = (Instant::now(), "127.0.0.1:9".parse().unwrap());
//! let (mut echo, mut out) = (Echo::default(), Vec::new());
//! echo.handle_datagram(now, peer, b"hello");
//! assert_eq!(echo.poll_transmit(now, &mut out), Some(Transmit::one(peer, 5)));
//! assert_eq!(out, b"hello");
//! ```
#![forbid(unsafe_code)]

use std::{net::SocketAddr, time::Instant};

/// A protocol state machine: no sockets, no clock, no randomness of its own.
///
/// The calls come in two kinds.
///
/// * In: [`handle_datagram`](Self::handle_datagram) and [`handle_timeout`](Self::handle_timeout). Nothing that comes from
///   the network is an error for the caller: what is not understood is dropped and counted by the machine.
/// * Out: after each call in, the driver drains [`poll_transmit`](Self::poll_transmit), then
///   [`poll_event`](Self::poll_event), and then asks [`poll_timeout`](Self::poll_timeout) when to come back.
///
/// Calling them "wrongly" (not draining, draining twice, too early, too late) is harmless: queues are bounded.
/// `now` never goes backwards.
pub trait Machine {
    /// What the machine tells its owner.
    type Event;

    /// A datagram arrived.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]);

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come (or any other time: then nothing happens).
    fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// The next datagrams to send: their bytes are appended to `out`, so that one buffer serves for all of them and
    /// nothing is allocated per datagram.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// The next thing that the owner should know.
    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called. It may change with every call in.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// What one [`Machine::poll_transmit`] appended to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where it goes.
    pub to: SocketAddr,
    /// How many bytes were appended. Nothing is sent for none: an empty datagram makes some servers deaf (B10).
    pub len: usize,
    /// If set, the bytes are several datagrams of this size (the last may be shorter) for the same receiver, which a
    /// system with generic segmentation offload sends in one call. Never zero.
    pub segment: Option<usize>,
}

impl Transmit {
    /// One datagram of `len` bytes.
    #[must_use]
    pub fn one(to: SocketAddr, len: usize) -> Self {
        Self { to, len, segment: None }
    }

    /// Splits the appended bytes into the datagrams that go over the network.
    pub fn datagrams<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        debug_assert_eq!(bytes.len(), self.len);
        let size = self.segment.unwrap_or(bytes.len()).max(1);
        bytes.chunks(size)
    }
}
