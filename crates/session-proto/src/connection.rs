//! One session: windows, acks, recovery, congestion control, keepalive, closing.

mod acks;
mod address;
mod challenge;
mod channel;
mod congestion;
mod handle;
mod incoming;
mod outgoing;
mod pacer;
mod recovery;
mod rtt;
mod store;
mod thin;
mod transmit;

pub(crate) use channel::{Channel, Protection, Side};

use crate::{ConnectionConfig, ConnectionStats, Reason, SendError};
use acks::Acks;
use address::Address;
use congestion::Congestion;
use incoming::{Arrived, Incoming};
use outgoing::{Acked, Losses, Outgoing};
use pacer::Pacer;
use rallypoint_wire::session::{MAX_DATAGRAM, MessageNumber, SlotIndex, Uid};
use rtt::Rtt;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use thin::Thin;

/// A hole is asked for after this, or an eighth of the time to an answer (S25).
const ASK_AFTER: Duration = Duration::from_millis(10);

/// While nothing comes back, the oldest message is repeated this often (S25).
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// A repeat that came too early makes later ones wait for more evidence, and for more milliseconds; one step is forgotten
/// after so many messages.
const MOST_PATIENCE: u32 = 40;
const PATIENCE_LASTS: u32 = 32;

/// A client that hears nothing shows itself with a new message this often: only that tells the server of a new address.
const REVIVE_EVERY: Duration = Duration::from_millis(500);
const REVIVE_AFTER: Duration = Duration::from_millis(200);

/// After a message, so many keepalives are replaced by that message. If its ack was forged and it never arrived, the
/// receiver could not know that something is missing (S24).
const ASSURANCES: u8 = 3;

/// What may leave at once after a silence: a game's traffic of 5 s.
const BURST_AFTER_SILENCE: usize = 48_000;

/// How often keepalives are answered (S29).
const ANSWER_EVERY: Duration = Duration::from_millis(200);

/// How long a side that closes goes on to deliver what is left (S28).
const FLUSH_FOR: Duration = Duration::from_secs(2);

/// A disconnect is sent so often, so far apart (S28).
const GOODBYES: u8 = 3;
const GOODBYE_EVERY: Duration = Duration::from_millis(30);

/// How long a peer that said goodbye has to be silent, at least (S28).
const DOUBT_FOR: Duration = Duration::from_secs(1);
const DOUBT_EVERY: Duration = Duration::from_millis(200);

/// So many messages that do not open end a session (S30).
const MOST_FORGED: u32 = 1 << 16;

/// One session as one of its sides sees it.
///
/// It belongs to an [`Endpoint`](crate::Endpoint) or a [`Client`](crate::Client), which feed it and send what it gives out;
/// from outside it can be looked at.
///
/// * Getters: [`stats`](Self::stats), [`peer`](Self::peer), [`max_message`](Self::max_message),
///   [`is_encrypted`](Self::is_encrypted), [`is_writable`](Self::is_writable), [`index`](Self::index).
/// * In: `handle_data`, `handle_ack`, `handle_resend`, `handle_keepalive`, `handle_keepalive_ack`, `handle_disconnect`,
///   `handle_timeout`.
/// * Commands: `send`, `recv`, `close`.
/// * Out: `poll_transmit`, then `poll_notice`, then `poll_timeout`.
#[derive(Debug)]
pub struct Connection {
    config: ConnectionConfig,
    channel: Channel,
    peer: SocketAddr,
    address: Address,
    state: State,
    outgoing: Outgoing,
    incoming: Incoming,
    acks: Acks,
    rtt: Rtt,
    congestion: Congestion,
    pacer: Pacer,
    thin: Thin,
    /// Until its first message is acked, a plain client can't tell data of this session from those of an earlier one.
    waits_for_ack: bool,
    last_sent: Instant,
    last_heard: Instant,
    /// When an ack last told something new, or the first message after a pause was sent.
    last_progress: Instant,
    last_answer: Option<Instant>,
    /// Nothing has come back for longer than the timeout.
    silent: bool,
    /// So many bytes of repeats may leave whatever the window says.
    burst: usize,
    /// How often the oldest message was repeated since something came back.
    probes: u32,
    /// The oldest message is to be sent whatever the window says.
    probe: bool,
    /// And in silence one of the others, in turn: the peer may have the oldest, and be cut off by a new address.
    probe_another: bool,
    /// Since when something was sent that the peer should have answered.
    unanswered_since: Option<Instant>,
    last_revival: Option<Instant>,
    /// A new message is to be sent whatever the window says.
    revive: bool,
    /// How many keepalives are still to be replaced by the last message.
    assurances: u8,
    owes_keepalive: bool,
    owes_answer: bool,
    /// The receiver has room again, and asks for this.
    reopened: Option<MessageNumber>,
    /// The pacer lets nothing through before this.
    paced_until: Option<Instant>,
    doubt: Option<Doubt>,
    forged: u32,
    /// Repeats that came too early make later ones more patient.
    patience: u32,
    notices: Notices,
    /// A message was refused because the window was full.
    wants_room: bool,
    scratch: Vec<u8>,
    stats: ConnectionStats,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// What is left is delivered, until then.
    Flushing {
        until: Instant,
        reason: Reason,
        goodbye: String,
    },
    /// Goodbyes are said.
    Leaving {
        left: u8,
        next: Instant,
        reason: Reason,
        goodbye: String,
    },
    Closed(Reason),
}

/// The peer seems to have said goodbye. That is not authenticated (S28).
#[derive(Debug)]
struct Doubt {
    until: Instant,
    ask_at: Instant,
    reason: String,
}

/// What the owner has to be told.
#[derive(Clone, Copy, Debug, Default)]
struct Notices {
    readable: bool,
    writable: bool,
    closing: bool,
    closed: bool,
}

/// Something that the owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Readable,
    Writable,
    Closing,
    Closed(Reason),
}

/// What became of a data datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It belongs to this session, and is above all that came before.
    Newest,
    /// It may belong to this session.
    Known,
    /// It does not.
    Foreign,
}

/// Getters.
impl Connection {
    /// How it is doing.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            rtt: self.rtt.is_measured().then(|| self.rtt.smoothed()),
            rtt_variation: self.rtt.variation(),
            rtt_min: self.rtt.min(),
            loss: self.thin.loss(),
            rate: self.congestion.rate() as u64,
            window: self.congestion.window(&self.rtt),
            in_flight: self.outgoing.in_flight(),
            unacked: self.outgoing.unacked(),
            ..self.stats
        }
    }

    /// Where the peer is. An address that is new may be a forged one: [`proven_peer`](Self::proven_peer) is not.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The player's slot.
    #[must_use]
    pub fn index(&self) -> SlotIndex {
        self.channel.index
    }

    /// The longest message that can be sent (S33).
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.channel.max_message()
    }

    /// Whether messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.channel.is_encrypted()
    }

    /// Whether a message can be sent now.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.state == State::Open && self.outgoing.has_room()
    }

    /// Whether a message can be read now.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.incoming.is_readable()
    }

    /// How many messages were sent, or wait to be sent, and are not acknowledged by the peer.
    #[must_use]
    pub fn undelivered(&self) -> usize {
        self.outgoing.undelivered(MAX_DATAGRAM - self.max_message())
    }

    /// How many bytes of messages it keeps.
    pub(crate) fn memory(&self) -> usize {
        self.outgoing.memory() + self.incoming.memory()
    }

    pub(crate) fn uid(&self) -> Uid {
        self.channel.uid
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }
}

/// Commands.
impl Connection {
    pub(crate) fn new(
        now: Instant,
        config: &ConnectionConfig,
        channel: Channel,
        peer: SocketAddr,
        login_rtt: Option<Duration>,
    ) -> Self {
        let first = MessageNumber::new(config.first_number);
        // Only a client changes its address.
        let reserve = if channel.side == Side::Server { address::reserve(config.window) } else { 0 };
        let mut rtt = Rtt::new();
        if let Some(sample) = login_rtt {
            rtt.sample(now, sample);
        }
        Self {
            waits_for_ack: channel.side == Side::Client && !channel.is_encrypted(),
            channel,
            peer,
            address: Address::default(),
            state: State::Open,
            outgoing: Outgoing::new(first, config.window, reserve),
            incoming: Incoming::new(first, config.window, config.ordered),
            acks: Acks::new(now),
            rtt,
            congestion: Congestion::new(now),
            pacer: Pacer::new(now),
            thin: Thin::new(now, config.thin_rate),
            last_sent: now,
            last_heard: now,
            last_progress: now,
            last_answer: None,
            silent: false,
            burst: 0,
            probes: 0,
            probe: false,
            probe_another: false,
            unanswered_since: None,
            last_revival: None,
            revive: false,
            assurances: 0,
            owes_keepalive: false,
            owes_answer: false,
            reopened: None,
            paced_until: None,
            doubt: None,
            forged: 0,
            patience: 0,
            notices: Notices::default(),
            wants_room: false,
            scratch: Vec::with_capacity(508),
            stats: ConnectionStats::default(),
            config: config.clone(),
        }
    }

    /// Sends the proof that a client has received the login success (S15).
    pub(crate) fn send_proof(&mut self, now: Instant) {
        self.push(now, &[]);
    }

    /// Takes a message to be sent. `allowance` is how much more memory may be used.
    pub(crate) fn send(&mut self, now: Instant, message: &[u8], allowance: usize) -> Result<(), SendError> {
        let limit = self.max_message();
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        if message.len() > limit {
            return Err(SendError::TooLarge { limit, length: message.len() });
        }
        if self.state != State::Open {
            return Err(SendError::Closed);
        }
        if self.is_used_up() {
            return Err(SendError::UsedUp);
        }
        self.release(now);
        // A message is always allowed if nothing else is under way: the others cannot starve this one for ever.
        if !self.outgoing.has_room() || (allowance < 508 && self.outgoing.unacked() > 0) {
            self.wants_room = true;
            return Err(SendError::WouldBlock);
        }
        if !self.push(now, message) {
            return Err(SendError::TooLarge { limit, length: message.len() });
        }
        self.stats.messages_sent += 1;
        if self.is_used_up() {
            self.start_closing(now, Reason::UsedUp, Reason::UsedUp.to_string());
        }
        Ok(())
    }

    /// Looks whether reading makes room that the peer has to hear of; then it has something to send.
    pub(crate) fn make_room(&mut self) -> bool {
        self.reopened = self.incoming.reopened().or(self.reopened);
        self.reopened.is_some()
    }

    /// The next message. Its bytes stay until the next call.
    pub(crate) fn recv(&mut self) -> Option<&[u8]> {
        self.incoming.read()
    }

    /// Delivers what is left, says goodbye, and ends (S28).
    pub(crate) fn close(&mut self, now: Instant, goodbye: &str) {
        self.start_closing(now, Reason::Closed, goodbye.to_owned());
    }

    /// Ends at once and in silence.
    pub(crate) fn end(&mut self, reason: Reason) {
        if !self.is_closed() {
            self.state = State::Closed(reason);
            self.notices.closed = true;
        }
    }

    fn start_closing(&mut self, now: Instant, reason: Reason, goodbye: String) {
        if self.state == State::Open {
            self.state = State::Flushing { until: now + FLUSH_FOR, reason, goodbye };
            self.flushed(now);
        }
    }

    /// Whether all numbers of an encrypted session are used (S21).
    fn is_used_up(&self) -> bool {
        self.is_encrypted() && self.outgoing.next().get() >= MessageNumber::ENCRYPTED_END.get()
    }

    fn push(&mut self, now: Instant, message: &[u8]) -> bool {
        let mut datagram = std::mem::take(&mut self.scratch);
        datagram.clear();
        let emitted = self.channel.emit(self.outgoing.next(), message, &mut datagram);
        if emitted {
            self.outgoing.push(now, &datagram);
        }
        self.scratch = datagram;
        emitted
    }
}

/// Out.
impl Connection {
    /// The next thing that the owner should know.
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        let notices = &mut self.notices;
        if std::mem::take(&mut notices.readable) {
            return Some(Notice::Readable);
        }
        if std::mem::take(&mut notices.writable) {
            return Some(Notice::Writable);
        }
        if std::mem::take(&mut notices.closing) {
            return Some(Notice::Closing);
        }
        match &self.state {
            State::Closed(reason) if std::mem::take(&mut notices.closed) => Some(Notice::Closed(reason.clone())),
            _ => None,
        }
    }
}
