//! One session: windows, acks, recovery, congestion control, keepalive, closing.

mod acks;
mod channel;
mod congestion;
mod incoming;
mod outgoing;
mod pacer;
mod rtt;
mod store;
mod thin;
mod transmit;

pub(crate) use channel::{Channel, Protection, Side};

use crate::{ConnectionConfig, ConnectionStats, Reason, SendError};
use acks::Acks;
use congestion::Congestion;
use incoming::{Arrived, Incoming};
use outgoing::{Acked, Losses, Outgoing};
use pacer::Pacer;
use rallypoint_wire::session::{MessageNumber, NumberList, SealInput, SlotIndex, Uid};
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

    /// Where the peer is.
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
        let mut rtt = Rtt::new();
        if let Some(sample) = login_rtt {
            rtt.sample(now, sample);
        }
        Self {
            waits_for_ack: channel.side == Side::Client && !channel.is_encrypted(),
            channel,
            peer,
            state: State::Open,
            outgoing: Outgoing::new(first, config.window),
            incoming: Incoming::new(first, config.window, config.ordered),
            acks: Acks::new(),
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

    /// The peer has another address (S31).
    pub(crate) fn move_to(&mut self, now: Instant, peer: SocketAddr) {
        self.peer = peer;
        self.rtt.forget_path();
        self.congestion.on_new_path(now);
        self.progress(now);
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

/// In.
impl Connection {
    /// A data datagram came that names this session; in a plain one, its proof was right. `allowance` is how much more
    /// memory may be used.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        number: MessageNumber,
        bytes: &[u8],
        input: Option<&SealInput>,
        allowance: usize,
    ) -> Outcome {
        // A session accepts only its own data type (S20), and an encrypted one no number from its end on (S21).
        if self.is_encrypted() != input.is_some()
            || self.waits_for_ack
            || self.is_closed()
            || (self.is_encrypted() && number.get() >= MessageNumber::ENCRYPTED_END.get())
        {
            self.stats.dropped += 1;
            return Outcome::Foreign;
        }
        let ask_after = ASK_AFTER.max(self.rtt.smoothed() / 8);
        let channel = &self.channel;
        let fill = |room: &mut [u8]| channel.open(input, bytes, room);
        match self.incoming.arrive(now, number, ask_after, allowance, fill) {
            Arrived::New { newest, gap } => {
                self.heard(now);
                if self.incoming.is_readable() {
                    self.notices.readable = true;
                }
                self.stats.messages_received += 1;
                self.acks.arrived(now, number, gap);
                if newest { Outcome::Newest } else { Outcome::Known }
            }
            Arrived::Duplicate => {
                self.heard(now);
                self.stats.duplicates += 1;
                self.acks.arrived_again(now, number);
                Outcome::Known
            }
            Arrived::Above => {
                self.stats.dropped += 1;
                Outcome::Known
            }
            Arrived::Refused => {
                self.stats.dropped += 1;
                self.forged += u32::from(self.is_encrypted());
                if self.forged >= MOST_FORGED {
                    self.end(Reason::Forged);
                }
                Outcome::Foreign
            }
        }
    }

    pub(crate) fn handle_ack(&mut self, now: Instant, numbers: NumberList<'_>) {
        let mut newest: Option<Acked> = None;
        for number in numbers.iter() {
            let Some(acked) = self.outgoing.on_ack(now, number, self.rtt.min()) else { continue };
            self.congestion.on_ack(now, acked.len);
            if acked.plain {
                self.thin.on_fate(now, false);
            }
            if acked.spurious {
                self.stats.spurious += 1;
                self.patience = (self.patience + 4).min(MOST_PATIENCE);
            }
            self.patience = self.patience.saturating_sub(u32::from(number.get().is_multiple_of(PATIENCE_LASTS)));
            if newest.is_none_or(|newest| acked.order > newest.order) {
                newest = Some(acked);
            }
        }
        self.heard(now);
        let Some(newest) = newest else { return };
        self.waits_for_ack = false;
        self.progress(now);
        // Only the newest: an ack also repeats numbers whose first ack may have been lost long ago.
        if let Some(rtt) = newest.rtt {
            self.rtt.sample(now, rtt);
        }
        self.congestion.on_acks_done(now, newest.snapshot, self.outgoing.in_flight(), &self.rtt);
        self.detect(now);
        self.release(now);
        self.look_for_room();
        self.flushed(now);
    }

    pub(crate) fn handle_resend(&mut self, now: Instant, numbers: NumberList<'_>) {
        self.heard(now);
        let at_most_every = self.rtt.smoothed() / 2;
        for number in numbers.iter() {
            if let Some(losses) = self.outgoing.on_asked(now, number, at_most_every) {
                self.lost(now, losses);
                self.progress(now);
            }
        }
    }

    pub(crate) fn handle_keepalive(&mut self, now: Instant) {
        self.heard(now);
        let open = matches!(self.state, State::Open | State::Flushing { .. });
        if open && self.last_answer.is_none_or(|at| now.saturating_duration_since(at) >= ANSWER_EVERY) {
            self.last_answer = Some(now);
            self.owes_answer = true;
        }
    }

    pub(crate) fn handle_keepalive_ack(&mut self, now: Instant) {
        self.heard(now);
    }

    /// The peer may have said goodbye: ask, and believe it when there is no answer (S28).
    pub(crate) fn handle_disconnect(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Open | State::Flushing { .. } if self.doubt.is_none() => {
                let until = now + DOUBT_FOR.max(3 * self.rtt.base_rto());
                self.doubt = Some(Doubt { until, ask_at: now, reason: reason.to_owned() });
                self.notices.closing = true;
            }
            _ => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        if now >= self.last_heard + self.config.idle_timeout {
            return self.end(Reason::TimedOut);
        }
        if let Some(doubt) = self.doubt.take_if(|doubt| now >= doubt.until) {
            return self.end(Reason::ClosedByPeer(doubt.reason));
        }
        self.flushed(now);
        if self.room_at().is_some_and(|at| now >= at) {
            self.release(now);
            self.look_for_room();
        }
        if self.silent_at().is_some_and(|at| now >= at) {
            self.silent = true;
        }
        self.detect(now);
        if self.probe_at().is_some_and(|at| now >= at) {
            self.probes += 1;
            self.probe = true;
            self.probe_another = self.silent;
            if self.silent {
                self.rtt.back_off();
            }
        }
        if self.revive_at().is_some_and(|at| now >= at) {
            self.last_revival = Some(now);
            self.revive = self.outgoing.waiting() > 0 || (!self.is_used_up() && self.push(now, &[]));
        }
    }

    /// When a client that hears nothing has to show itself with a number that is above all the server has seen: its address
    /// may have changed, and nothing else moves the session (S31).
    fn revive_at(&self) -> Option<Instant> {
        let since = self.unanswered_since.filter(|_| self.channel.side == Side::Client)?;
        let first = since + REVIVE_AFTER.max(2 * self.rtt.base_rto());
        Some(self.last_revival.map_or(first, |last| first.max(last + REVIVE_EVERY)))
    }

    fn look_for_room(&mut self) {
        if self.wants_room && self.outgoing.has_room() {
            self.wants_room = false;
            self.notices.writable = true;
        }
    }

    fn heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.stats.datagrams_received += 1;
        self.unanswered_since = None;
        // The network is back, or only the way from the peer: try at once.
        let patient = |sent_at: Instant| now.saturating_duration_since(sent_at) >= self.rtt.smoothed() / 2;
        if self.silent && self.outgoing.oldest_sent().is_some_and(|(_, sent_at)| patient(sent_at)) {
            self.probe = true;
        }
        // Whoever says something is still there.
        self.doubt = None;
    }

    /// Counts the bytes of a datagram that came for this session.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.stats.bytes_received += bytes as u64;
    }

    fn detect(&mut self, now: Instant) {
        let thin = self.thin.is_thin();
        let threshold = if thin { 1 } else { 3 } + u64::from(self.patience / 4);
        let losses = self.outgoing.detect(now, threshold, self.rtt.loss_delay(), self.overdue());
        self.lost(now, losses);
    }

    fn lost(&mut self, now: Instant, losses: Losses) {
        (0..losses.all).for_each(|_| self.congestion.on_loss());
        (0..losses.plain).for_each(|_| self.thin.on_fate(now, true));
        if losses.copied > 0 {
            self.thin.on_copy_lost(now);
        }
    }

    /// After what time a message is lost although nothing that was sent later is acked: for a thin stream when the answer
    /// is overdue; and when nothing comes back at all, after the timeout, so that the window does not stay full.
    fn overdue(&self) -> Option<Duration> {
        if self.silent { Some(self.rtt.base_rto()) } else { self.thin.is_thin().then(|| self.rtt.thin_timeout()) }
    }

    /// Frees what was acked two timeouts ago (S24). What is sent so fast that this would be too much is freed earlier, but not
    /// before the receiver could have asked for it twice.
    fn release(&mut self, now: Instant) {
        let (after, hurried) = self.keep_for();
        self.outgoing.release(now, after, hurried);
    }

    fn keep_for(&self) -> (Duration, Duration) {
        (2 * self.rtt.base_rto(), 2 * (self.rtt.smoothed() + 4 * self.rtt.variation() + 2 * ASK_AFTER))
    }

    /// When a sender that was turned away has room again, although no ack comes.
    fn room_at(&self) -> Option<Instant> {
        let (after, hurried) = self.keep_for();
        self.outgoing.release_at(after, hurried).filter(|_| self.wants_room)
    }

    /// The peer is heard of, or there is nothing that it would have to say.
    fn progress(&mut self, now: Instant) {
        self.last_progress = now;
        self.probes = 0;
        self.rtt.reset_backoff();
        if std::mem::take(&mut self.silent) {
            // The path may be another one now. What a thin stream could not say meanwhile is little, and goes at once.
            self.congestion.on_new_path(now);
            self.burst = if self.thin.is_thin() { BURST_AFTER_SILENCE } else { 0 };
        }
    }

    /// When it counts as silence that nothing comes back.
    fn silent_at(&self) -> Option<Instant> {
        (!self.silent && self.outgoing.oldest_sent().is_some()).then(|| self.last_progress + self.rtt.base_rto())
    }

    /// When the oldest message is to be repeated whatever happens.
    fn probe_at(&self) -> Option<Instant> {
        let (_, sent_at) = self.outgoing.oldest_sent()?;
        let heard_since = self.last_heard > sent_at && self.probes > 0;
        let wait = match self.probes {
            0 if self.thin.is_thin() => self.rtt.thin_timeout() + Duration::from_millis(self.patience.into()),
            0 => self.rtt.rto(),
            _ if heard_since => self.rtt.rto(),
            _ => self.rtt.rto().min(PROBE_EVERY),
        };
        Some(sent_at + wait)
    }

    /// Goes on from delivering what is left to saying goodbye.
    fn flushed(&mut self, now: Instant) {
        if let State::Flushing { until, reason, goodbye } = &mut self.state
            && (self.outgoing.unacked() == 0 || now >= *until)
        {
            let (reason, goodbye) = (reason.clone(), std::mem::take(goodbye));
            self.state = State::Leaving { left: GOODBYES, next: now, reason, goodbye };
        }
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
