//! The interface that every protocol state machine of Rallypoint implements.
//!
//! Protocol logic is *sans I/O*: a state machine is given datagrams and the time, and returns datagrams, events and the
//! time of its next wake-up. Because all of them have the same interface, one event loop (the crate `udp`) runs them on
//! real sockets, and one simulator (the crate `netsim`) runs them on virtual time.
//!
//! ```
//! use rallypoint_machine::{Machine, Transmit};
//! use std::{collections::VecDeque, net::SocketAddr, time::Instant};
//!
//! /// Sends every datagram back to its sender.
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
//! let now = Instant::now();
//! let peer = "127.0.0.1:9".parse().unwrap();
//! let mut echo = Echo::default();
//! let mut out = Vec::new();
//! echo.handle_datagram(now, peer, b"hello");
//! assert_eq!(echo.poll_transmit(now, &mut out), Some(Transmit::one(peer, 5)));
//! assert_eq!(out, b"hello");
//! ```
#![forbid(unsafe_code)]

mod received;

pub use received::{DeliveryError, ReceivedDatagram, SocketIndex};

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum payload of a UDP datagram over IPv4, in bytes: 65,535 less the IP and UDP headers.
pub const MAX_UDP_PAYLOAD: usize = 65_507;

/// A protocol state machine: no sockets, no clock, no randomness of its own.
///
/// Every machine has five calls, of two kinds.
///
/// * In: [`handle_datagram`](Self::handle_datagram) and [`handle_timeout`](Self::handle_timeout). Nothing that comes from
///   the network is an error for the caller: the machine drops and counts what it does not understand.
/// * Out: after each call in, the caller drains [`poll_transmit`](Self::poll_transmit), then
///   [`poll_event`](Self::poll_event), and then learns from [`poll_timeout`](Self::poll_timeout) when to call again.
///
/// Calling them out of order (without draining, draining twice, too early, too late) is harmless: queues are bounded.
/// `now` never goes backwards.
///
/// The other calls in have defaults that suit most machines. They exist for machines that gain from a whole batch of
/// datagrams ([`handle_batch`](Self::handle_batch)), react to ICMP errors
/// ([`handle_delivery_error`](Self::handle_delivery_error)), limit the size of datagrams
/// ([`max_datagram`](Self::max_datagram)), or have work to do once per turn of the event loop rather than per datagram
/// ([`handle_turn_end`](Self::handle_turn_end)).
pub trait Machine {
    /// An event that the machine reports to its owner.
    type Event;

    /// Handles a datagram that arrived.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]);

    /// Handles the datagrams that arrived together at one of the machine's sockets.
    ///
    /// By default each is given to [`handle_datagram`](Self::handle_datagram), except those that were truncated because
    /// they are longer than [`max_datagram`](Self::max_datagram).
    fn handle_batch<'a>(
        &mut self,
        now: Instant,
        socket: SocketIndex,
        batch: impl Iterator<Item = ReceivedDatagram<'a>> + Clone,
    ) where
        Self: Sized,
    {
        let _ = socket;
        for datagram in batch.filter(|datagram| !datagram.is_truncated()) {
            self.handle_datagram(now, datagram.from, datagram.bytes);
        }
    }

    /// Handles the network's report that a datagram was not delivered. By default it is ignored.
    fn handle_delivery_error(&mut self, now: Instant, error: &DeliveryError) {
        let _ = (now, error);
    }

    /// Handles the passing of time: the time that [`poll_timeout`](Self::poll_timeout) returned has come (at any other time
    /// nothing happens).
    fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Handles the end of a turn of the event loop, after everything that was ready has been received and sent, and before
    /// events are polled. By default nothing happens.
    fn handle_turn_end(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the next datagrams to send. Their bytes are appended to `out`, so that one buffer serves for all of them and
    /// nothing is allocated per datagram.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Returns the next event for the owner.
    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called next. It may change with every call in.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Maximum size of a datagram that the machine accepts, in bytes: longer ones arrive truncated. It may change while the
    /// machine runs. By default [`MAX_UDP_PAYLOAD`]: no datagram is truncated.
    fn max_datagram(&self) -> usize {
        MAX_UDP_PAYLOAD
    }

    /// Whether the machine uses [`ReceivedDatagram::received_at`]. The system then records the time of each datagram, where it
    /// can; that costs some instructions each. By default it does not.
    fn uses_receive_times(&self) -> bool {
        false
    }

    /// How long datagrams may wait in the socket while very many arrive, so that more of them are received together. At ordinary
    /// rates none waits. By default none does at any rate: of machines that measure round trips, none should.
    fn max_receive_delay(&self) -> Duration {
        Duration::ZERO
    }
}

/// The datagrams that one [`Machine::poll_transmit`] appended to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination address.
    pub to: SocketAddr,
    /// Number of bytes appended. Nothing is sent if it is zero: an empty datagram makes some servers deaf (B10).
    pub len: usize,
    /// If set, the bytes are several datagrams of this size (the last may be shorter) for the same destination, which a
    /// system with generic segmentation offload (GSO) sends in one call. Never zero.
    pub segment: Option<usize>,
    /// The socket to send from; `None` for the first one of the destination's family.
    pub from: Option<SocketIndex>,
}

impl Transmit {
    /// One datagram of `len` bytes.
    #[must_use]
    pub fn one(to: SocketAddr, len: usize) -> Self {
        Self { to, len, segment: None, from: None }
    }

    /// Splits the appended bytes into the datagrams that go over the network.
    pub fn datagrams<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        debug_assert_eq!(bytes.len(), self.len);
        let size = self.segment.unwrap_or(bytes.len()).max(1);
        bytes.chunks(size)
    }
}
