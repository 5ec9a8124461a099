//! One session: windows, acks, recovery, congestion control, keepalive, closing.

mod ack_bursts;
mod ack_effect;
mod address_proof;
mod arrival_evidence;
mod average;
mod block_pool;
mod byte_bucket;
mod closing;
mod codec;
mod congestion;
mod copy_budget;
mod datagram_ring;
mod decryption_failures;
mod delay_limit;
mod direct_budget;
mod early_ack_filter;
mod former_addresses;
mod getters;
mod handle;
mod loss_meter;
mod offered_rate;
mod optimistic_acks;
mod pacer;
mod path;
mod path_challenge;
mod pending_acks;
mod receive_buffer;
mod recent_acks;
mod recovery;
mod redundancy;
mod resend_budget;
mod resend_requests;
mod rtt;
mod rtt_meter;
mod send_buffer;
mod source;
mod stall_detector;
mod steady_stream;
mod throughput;
mod timers;
mod transmission_outcomes;
mod transmit;

pub(crate) use codec::{Codec, Protection, Side};
pub(crate) use copy_budget::CopyBudget;
pub(crate) use path::AMPLIFICATION_LIMIT;
pub(crate) use receive_buffer::ReceiveBuffer;
use source::Precedence;
pub(crate) use source::Source;

use crate::{ConnectionConfig, ConnectionStats, DisconnectReason, SendError};
use closing::{PeerClose, PreparedClose, State};
use congestion::CongestionController;
use decryption_failures::DecryptionFailures;
use delay_limit::DelayLimit;
use direct_budget::DirectBudget;
use early_ack_filter::EarlyAckFilter;
use offered_rate::OfferedRate;
use optimistic_acks::OptimisticAckDetector;
use pacer::Pacer;
use path::Path;
use pending_acks::PendingAcks;
use rallypoint_wire::session::{MAX_DATAGRAM, MessageNumber};
use recovery::Recovery;
use redundancy::Redundancy;
use resend_budget::ResendBudget;
use rtt::RttEstimator;
use send_buffer::SendBuffer;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use throughput::Throughput;

/// One side of a session.
///
/// A connection belongs to an [`Endpoint`](crate::Endpoint) or a [`Client`](crate::Client), which hand it its datagrams and
/// send what it emits. Users of the crate only read it.
///
/// * Getters: [`stats`](Self::stats), [`peer`](Self::peer), [`validated_peer`](Self::validated_peer), [`index`](Self::index),
///   [`max_message`](Self::max_message), [`is_encrypted`](Self::is_encrypted), [`cipher`](Self::cipher),
///   [`is_readable`](Self::is_readable), [`is_writable`](Self::is_writable), [`undelivered`](Self::undelivered).
/// * In: `handle_data`, `handle_ack`, `handle_resend_request`, `handle_keepalive`, `handle_keepalive_ack`,
///   `handle_disconnect`, `handle_timeout`.
/// * Commands: `send`, `send_parts` and `recv`, and those of a layer above in the module `source`; `begin_close`, `close`,
///   `abort` and `end`; `migrate`, `leave_address`, `contest_address` and `confirm_address`; `set_poll_interval`,
///   `set_receive_delay` and `set_memory_scarce`.
/// * Out: `poll_transmit`, then `poll_event`, then `poll_timeout`.
///
/// ```
/// # use rallypoint_machine::Machine;
/// # use rallypoint_session_proto::{Client, ClientConfig, Endpoint, EndpointConfig};
/// # let now = std::time::Instant::now();
/// # let server_addr = "192.0.2.1:45555".parse()?;
/// # let client_addr = "192.0.2.2:1000".parse()?;
/// # let mut server = Endpoint::new(EndpointConfig::for_game("tag"), [1; 32])?;
/// # let mut client = Client::new(now, server_addr, ClientConfig::new("alice", "tag"), [2; 32])?;
/// # let mut bytes = Vec::new();
/// # for _ in 0..4 {
/// #     while client.poll_transmit(now, &mut bytes).is_some() {
/// #         server.handle_datagram(now, client_addr, &std::mem::take(&mut bytes));
/// #     }
/// #     while server.poll_transmit(now, &mut bytes).is_some() {
/// #         client.handle_datagram(now, server_addr, &std::mem::take(&mut bytes));
/// #     }
/// # }
/// let connection = client.connection().ok_or("not connected")?;
/// assert!(connection.is_encrypted() && connection.is_writable());
/// assert_eq!((connection.peer(), connection.max_message()), (server_addr, 464));
/// assert_eq!(connection.stats().messages_sent, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    config: ConnectionConfig,
    codec: Codec,
    path: Path,
    state: State,
    /// Set while the peer seems to have disconnected.
    peer_close: Option<PeerClose>,
    /// Set while the layer above hands over what is left before the session is closed.
    prepared_close: Option<Box<PreparedClose>>,
    send: SendSide,
    receive: ReceiveSide,
    rtt: RttEstimator,
    congestion: CongestionController,
    recovery: Recovery,
    liveness: Liveness,
    events: PendingEvents,
    stats: ConnectionStats,
    throughput: Throughput,
}

/// Messages to the peer.
#[derive(Debug)]
struct SendSide {
    buffer: SendBuffer,
    /// Which round-trip times are believed.
    early_acks: EarlyAckFilter,
    /// Whether the peer acks what it has not received.
    optimistic_acks: OptimisticAckDetector,
    /// Budget of what resend requests draw.
    resend_budget: ResendBudget,
    redundancy: Redundancy,
    pacer: Pacer,
    /// Limits a game that has fallen behind.
    delay_limit: DelayLimit,
    /// How much the application sends.
    offered: OfferedRate,
    /// The time before which the pacer admits nothing.
    paced_until: Option<Instant>,
    /// A message was refused because the window was full.
    is_blocked: bool,
    /// The state of a layer above that binds its messages late.
    source: Source,
    precedence: Precedence,
    direct_budget: DirectBudget,
    /// Acked messages are freed early: the connections of the endpoint use much of its memory.
    is_memory_scarce: bool,
    /// Where datagrams are written before they are stored.
    scratch: Vec<u8>,
}

/// Messages from the peer.
#[derive(Debug)]
struct ReceiveSide {
    buffer: ReceiveBuffer,
    acks: PendingAcks,
    /// The number to request because there is room again after messages were dropped.
    reopened: Option<MessageNumber>,
    /// Until its first message is acked, a client cannot tell data of this plain session from data of an earlier one.
    awaits_first_ack: bool,
    decryption_failures: DecryptionFailures,
}

/// Keepalives and the times that they depend on.
#[derive(Debug)]
struct Liveness {
    last_sent: Instant,
    last_received: Instant,
    last_keepalive_ack: Option<Instant>,
    owes_keepalive_ack: bool,
    /// Number of keepalives to come that are replaced by the last message.
    tail_resends: u8,
    /// The time of the last new ack, or of the transmission of the first message after it, if a message waits for an ack.
    awaiting_ack_since: Option<Instant>,
    /// When a new message was last sent: it proves who sends it.
    last_proof: Instant,
    /// When a message was last received.
    last_data: Instant,
    /// Whether something was received that may belong to another session.
    may_be_misrouted: bool,
}

/// Events that have not been polled yet.
#[derive(Clone, Copy, Debug, Default)]
struct PendingEvents {
    readable: bool,
    writable: bool,
    closing: bool,
    unconfirmed: bool,
    closed: bool,
}

/// An event that a connection reports to its owner, which turns it into a [`ClientEvent`](crate::ClientEvent) or a
/// [`ServerEvent`](crate::ServerEvent).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEvent {
    Readable,
    Writable,
    Closing,
    /// The peer has not confirmed its address, which another session claims (W54).
    AddressUnconfirmed,
    Closed(DisconnectReason),
}

/// Whether a data datagram proves that it comes from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataDisposition {
    /// It does, and its number is above all received before.
    Newest,
    /// It does: its number was not received before.
    New,
    /// It is genuine, but was received before, and may be a replay (W64).
    Duplicate,
    /// It does not: it may be a forgery, or was dropped before it was opened.
    Unproven,
}

/// What the login says about the round-trip time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginRtt {
    /// Time since the last transmission that may have been answered: a round trip takes at least as long.
    pub at_least: Duration,
    /// Whether there was only one, so that this is the round-trip time.
    pub is_exact: bool,
}

/// Commands.
impl Connection {
    pub(crate) fn new(
        now: Instant,
        config: &ConnectionConfig,
        codec: Codec,
        peer: SocketAddr,
        login_rtt: LoginRtt,
    ) -> Self {
        let first = MessageNumber::new(config.first_number);
        // Only a client changes its address, so only a server needs room for a challenge.
        let reserve = if codec.side == Side::Server { path::challenge_size(config.window) } else { 0 };
        let mut rtt = RttEstimator::new();
        if login_rtt.is_exact {
            rtt.sample(now, login_rtt.at_least);
        }
        Self {
            path: Path::new(now, peer),
            state: State::Open,
            peer_close: None,
            prepared_close: None,
            send: SendSide {
                buffer: SendBuffer::new(first, config.window, reserve),
                early_acks: EarlyAckFilter::new(Some(login_rtt)),
                optimistic_acks: OptimisticAckDetector::new(0),
                resend_budget: ResendBudget::new(now),
                redundancy: Redundancy::new(now, config.thin_rate),
                pacer: Pacer::new(now, config.send_rate),
                delay_limit: DelayLimit::default(),
                offered: OfferedRate::new(now),
                paced_until: None,
                is_blocked: false,
                source: Source::default(),
                precedence: Precedence::default(),
                direct_budget: DirectBudget::default(),
                is_memory_scarce: false,
                scratch: Vec::with_capacity(MAX_DATAGRAM),
            },
            receive: ReceiveSide {
                buffer: ReceiveBuffer::new(first, config.window, config.ordered),
                acks: PendingAcks::new(now),
                reopened: None,
                awaits_first_ack: codec.side == Side::Client && !codec.is_encrypted(),
                decryption_failures: DecryptionFailures::default(),
            },
            rtt,
            congestion: CongestionController::new(now),
            recovery: Recovery::new(now),
            liveness: Liveness {
                last_sent: now,
                last_received: now,
                last_keepalive_ack: None,
                owes_keepalive_ack: false,
                tail_resends: 0,
                awaiting_ack_since: None,
                last_proof: now,
                last_data: now,
                may_be_misrouted: false,
            },
            events: PendingEvents::default(),
            stats: ConnectionStats::default(),
            throughput: Throughput::new(now),
            codec,
            config: config.clone(),
        }
    }

    /// Sends the proof that a client has received the login success (S15).
    pub(crate) fn send_login_proof(&mut self, now: Instant) {
        self.push_empty(now);
    }

    /// Queues a message. `allowance` is the number of bytes by which the memory may grow.
    pub(crate) fn send(&mut self, now: Instant, message: &[u8], allowance: usize) -> Result<(), SendError> {
        self.send_parts(now, &[], message, allowance)
    }

    /// Queues a message of two parts, of which the first may be empty.
    pub(crate) fn send_parts(
        &mut self,
        now: Instant,
        head: &[u8],
        body: &[u8],
        allowance: usize,
    ) -> Result<(), SendError> {
        let limit = self.max_message();
        let length = head.len() + body.len();
        if length == 0 {
            return Err(SendError::Empty);
        }
        if length > limit {
            return Err(SendError::TooLarge { limit, length });
        }
        self.send_checked(now, head, body, allowance, 0)
    }

    /// Queues a message that is not empty.
    #[inline(always)]
    fn send_checked(
        &mut self,
        now: Instant,
        head: &[u8],
        body: &[u8],
        allowance: usize,
        max_age_us: u32,
    ) -> Result<(), SendError> {
        if self.state != State::Open {
            return Err(SendError::Closed);
        }
        if self.has_used_all_numbers() {
            return Err(SendError::NumbersExhausted);
        }
        // Messages that were acked long ago are freed with every ack, and here only if their memory is needed.
        if self.send.is_memory_scarce || allowance < MAX_DATAGRAM || !self.send.buffer.has_room() {
            self.release(now);
        }
        // A message is always allowed if nothing is unacknowledged: other connections cannot starve this one forever.
        if !self.send.buffer.has_room() || (allowance < MAX_DATAGRAM && self.send.buffer.unacked() > 0) {
            self.send.is_blocked = true;
            return Err(SendError::WouldBlock);
        }
        if !self.push(now, head, body, max_age_us) {
            return Err(SendError::TooLarge { limit: self.max_message(), length: head.len() + body.len() });
        }
        self.stats.messages_sent += 1;
        if self.has_used_all_numbers() {
            self.close_because(now, DisconnectReason::NumbersExhausted);
        }
        Ok(())
    }

    /// Sets how long the datagrams that are handled next have waited to be read.
    pub(crate) fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.rtt.set_receive_delay(delay);
    }

    /// Sets the interval at which this side is polled, as in a game loop.
    pub(crate) fn set_poll_interval(&mut self, interval: Duration) {
        self.rtt.set_poll_interval(interval);
    }

    /// Sets whether acked messages are freed early, from the next timeout, ack or message on.
    pub(crate) fn set_memory_scarce(&mut self, is_scarce: bool) {
        self.send.is_memory_scarce = is_scarce;
    }

    /// The messages that can still be read after the end of the session (W51).
    pub(crate) fn into_unread(self) -> ReceiveBuffer {
        let mut unread = self.receive.buffer;
        unread.keep_readable();
        unread
    }

    /// Checks whether reading has made room of which the peer has to be notified. Returns true if there is something to send.
    #[inline(always)]
    pub(crate) fn reopen_window(&mut self) -> bool {
        if self.receive.buffer.has_dropped() {
            self.receive.reopened = self.receive.buffer.take_reopened().or(self.receive.reopened);
        }
        self.receive.reopened.is_some()
    }

    /// The next message. Its bytes stay valid until the next call.
    #[inline(always)]
    pub(crate) fn recv(&mut self) -> Option<&[u8]> {
        self.receive.buffer.read()
    }

    /// The message that [`recv`](Self::recv) returned last, without its first bytes.
    #[inline]
    pub(crate) fn last_received_from(&self, start: usize) -> &[u8] {
        self.receive.buffer.last_read_from(start)
    }

    /// Whether all numbers of an encrypted session are used (S21).
    fn has_used_all_numbers(&self) -> bool {
        self.is_encrypted() && self.send.buffer.next_number().get() >= MessageNumber::ENCRYPTED_END.get()
    }

    /// Appends a message without bytes, which fills a number.
    fn push_empty(&mut self, now: Instant) -> bool {
        self.push(now, &[], &[], 0)
    }

    /// Inlined, so that the length of a header is known.
    #[inline(always)]
    fn push(&mut self, now: Instant, head: &[u8], body: &[u8], max_age_us: u32) -> bool {
        let mut datagram = std::mem::take(&mut self.send.scratch);
        datagram.clear();
        let emitted = self.codec.emit(self.send.buffer.next_number(), head, body, &mut datagram);
        if emitted {
            self.send.buffer.push(now, &datagram, max_age_us);
        }
        self.send.scratch = datagram;
        emitted
    }
}

/// Out.
impl Connection {
    /// The next event for the owner.
    pub(crate) fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let events = &mut self.events;
        if std::mem::take(&mut events.readable) {
            return Some(ConnectionEvent::Readable);
        }
        if std::mem::take(&mut events.writable) {
            return Some(ConnectionEvent::Writable);
        }
        if std::mem::take(&mut events.closing) {
            return Some(ConnectionEvent::Closing);
        }
        if std::mem::take(&mut events.unconfirmed) {
            return Some(ConnectionEvent::AddressUnconfirmed);
        }
        match &self.state {
            State::Closed(reason) if std::mem::take(&mut events.closed) => {
                Some(ConnectionEvent::Closed(reason.clone()))
            }
            _ => None,
        }
    }
}
