//! The state of a connection, for its owner and for users of the crate.

use super::{Connection, Protection, State, receive_buffer::ReceiveBuffer};
use crate::{Cipher, ConnectionStats};
use rallypoint_wire::session::{MAX_DATAGRAM, SlotIndex, Uid};
use std::net::SocketAddr;

impl Connection {
    /// Current round-trip time, loss, throughput and counters.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            rtt: self.rtt.median(),
            rtt_variation: self.rtt.variation(),
            rtt_min: self.rtt.min(),
            loss: self.send.buffer.loss(),
            rate: self.congestion.rate() as u64,
            window: self.congestion.window(),
            in_flight: self.send.buffer.in_flight(),
            unacked: self.send.buffer.unacked(),
            ..self.stats
        }
    }

    /// The current address of the peer. A new address may be forged: [`validated_peer`](Self::validated_peer) is not.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.path.peer
    }

    /// The player's slot.
    #[must_use]
    pub fn index(&self) -> SlotIndex {
        self.codec.index
    }

    /// Maximum length of a message in bytes (S33).
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.codec.max_message()
    }

    /// Whether messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.codec.is_encrypted()
    }

    /// The cipher that seals the messages, if they are encrypted.
    #[must_use]
    pub fn cipher(&self) -> Option<Cipher> {
        self.codec.protection.cipher()
    }

    /// Whether a message can be sent now.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.state == State::Open && self.send.buffer.has_room()
    }

    /// Whether a message can be read now.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.receive.buffer.is_readable()
    }

    /// Number of messages that the peer has not acknowledged, sent or waiting to be sent.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.send.buffer.undelivered(MAX_DATAGRAM - self.max_message())
    }

    /// Bytes of messages that are kept.
    pub(crate) fn memory(&self) -> usize {
        self.send.buffer.memory() + self.receive.buffer.memory()
    }

    /// Sets whether acked messages are freed early, from the next timeout, ack or message on.
    pub(crate) fn set_memory_scarce(&mut self, is_scarce: bool) {
        self.send.is_memory_scarce = is_scarce;
    }

    pub(crate) fn uid(&self) -> Uid {
        self.codec.uid
    }

    pub(crate) fn protection(&self) -> &Protection {
        &self.codec.protection
    }

    /// The messages that can still be read after the end of the session (W51).
    pub(crate) fn into_unread(self) -> ReceiveBuffer {
        let mut unread = self.receive.buffer;
        unread.keep_readable();
        unread
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }
}
