//! The state of a connection, for its owner and for users of the crate.

use super::{Connection, Protection, State};
use crate::{Cipher, ConnectionStats};
use rallypoint_wire::session::{MAX_DATAGRAM, SlotIndex, Uid};
use std::{net::SocketAddr, time::Duration};

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

    pub(crate) fn uid(&self) -> Uid {
        self.codec.uid
    }

    pub(crate) fn protection(&self) -> &Protection {
        &self.codec.protection
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// How much longer than without a queue a round trip takes now.
    pub(crate) fn queue_delay(&self) -> Duration {
        self.rtt.queue_delay()
    }

    /// The interval at which this side is polled: how long a datagram may wait to be read.
    pub(crate) fn poll_interval(&self) -> Duration {
        self.rtt.poll_interval()
    }

    pub(crate) fn rtt_variation(&self) -> Duration {
        self.rtt.variation()
    }

    /// The round-trip time without a queue.
    pub(crate) fn base_rtt(&self) -> Duration {
        self.rtt.base()
    }

    pub(crate) fn smoothed_rtt(&self) -> Duration {
        self.rtt.smoothed()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.send.buffer.in_flight()
    }

    /// Number of messages that are not acknowledged.
    pub(crate) fn unacked(&self) -> usize {
        self.send.buffer.unacked()
    }

    pub(crate) fn window(&self) -> u64 {
        self.congestion.window()
    }
}
