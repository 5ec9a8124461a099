//! Input from a socket: datagrams with their metadata, and errors about datagrams sent earlier.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Instant,
};

/// Position of a socket in the list of sockets that the event loop was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketIndex(pub usize);

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram<'a> {
    /// Address of the sender.
    pub from: SocketAddr,
    /// Address of this machine that the datagram was sent to, if the socket reports it.
    pub local: Option<IpAddr>,
    /// When the system received the datagram, if it reports that: earlier than the datagram was taken from its queue.
    pub received_at: Option<Instant>,
    /// Payload: only its beginning if the datagram was longer than the receive buffer.
    pub bytes: &'a [u8],
    /// Length of the whole payload, in bytes.
    pub len: usize,
}

impl ReceivedDatagram<'_> {
    /// Whether the end of the payload is missing because it was longer than the receive buffer.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.len > self.bytes.len()
    }
}

/// The network's report, usually by ICMP, that a datagram was not delivered.
#[derive(Debug)]
pub struct DeliveryError {
    /// Destination of the datagram.
    pub to: SocketAddr,
    /// Reason. "Connection refused" comes from the destination itself: nothing listens at that port.
    pub error: io::Error,
    /// Beginning of the datagram's payload as far as the report quotes it, possibly empty; at most
    /// [`MAX_QUOTE`](Self::MAX_QUOTE) bytes.
    pub quoted: Vec<u8>,
}

impl DeliveryError {
    /// Maximum number of quoted bytes that are kept.
    pub const MAX_QUOTE: usize = 64;
}
