//! Querying one server over TCP or HTTP.

mod http;

use crate::{
    Probe, ProbeOutcome, ProbeResult, ProberStats, QueryReply, QueueError, RawReply, RoundTrip, RttMethod,
    exchange::{Accepted, Context, Received, Request, Requests, Transport},
    protocols::{self, State},
    secret::Secrets,
};
use http::Response;
use rallypoint_wire::{DecodeError, DecodeErrorKind};
use std::time::{Duration, Instant};

/// Queries one server over TCP or HTTP: what [`Prober`](crate::Prober) does for protocols that are carried by datagrams.
///
/// * In: [`handle_connected`](Self::handle_connected), [`handle_received`](Self::handle_received),
///   [`handle_closed`](Self::handle_closed), [`handle_refused`](Self::handle_refused), [`handle_timeout`](Self::handle_timeout).
/// * Out: [`poll_action`](Self::poll_action), then [`into_result`](Self::into_result).
///
/// # Guarantees
///
/// * The exchange ends within its time limit, which is counted from the first connection; what has arrived by then is the result.
/// * It makes at most 16 connections, one at a time, takes at most 1 MiB from the server, and no message beyond the limit of its
///   protocol. Memory follows what has been received.
///
/// # Example
///
/// ```
/// use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol, QueueError, StreamExchange};
/// use std::time::Duration;
///
/// // A protocol that is carried by datagrams has no such exchange.
/// let probe = Probe::new("192.0.2.1:27960".parse()?, Protocol::Quake3.info());
/// assert!(StreamExchange::new(probe, Duration::from_secs(4), [7; 32]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamExchange {
    probe: Probe,
    transport: Transport,
    secrets: Secrets,
    limit: Duration,
    /// Time of the first connection.
    started: Option<Instant>,
    phase: Phase,
    /// Requests to send.
    pending: Requests,
    /// The request whose response is being received: HTTP only.
    awaited: Option<Request>,
    response: Response,
    state: State,
    raw: RawReply,
    /// Received bytes of messages that are not complete: TCP only.
    received: Vec<u8>,
    /// Number of connections that were begun.
    connections: u8,
    /// Counters of the present connection.
    connection: Connection,
    round_trip: Option<Duration>,
    has_reply: bool,
    malformed: u16,
    last_error: Option<DecodeError>,
    is_refused: bool,
    received_bytes: usize,
    stats: ProberStats,
}

/// What the caller has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Close the connection if there is one, and connect to the server.
    Connect,
    /// Send the bytes that were appended.
    Send,
    /// Wait for bytes, for the end of the connection, or until this time.
    WaitUntil(Instant),
    /// The exchange has ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unconnected,
    Connecting { since: Instant },
    Open { since: Instant },
    Ended,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// Requests that were sent because of what had arrived.
    follow_ups: u8,
    /// Complete responses: HTTP only.
    responses: u8,
    has_received: bool,
}

/// Maximum number of bytes that one exchange takes from a server: more than any server needs.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of connections of one exchange: eight documents, each after a connection that was closed too early.
const MAX_CONNECTIONS: u8 = 16;

/// Maximum number of requests that a server can cause in one connection by what it sends.
const MAX_FOLLOW_UPS: u8 = 16;

impl StreamExchange {
    /// An exchange that ends after this time at the latest. The seed must not be guessable.
    ///
    /// # Errors
    /// If no reply can come from the address, or the protocol is carried by datagrams.
    pub fn new(probe: Probe, limit: Duration, seed: [u8; 32]) -> Result<Self, QueueError> {
        let transport = probe.transport();
        if transport == Transport::Udp {
            return Err(QueueError::NoConnection(probe.query.protocol));
        }
        if !probe.has_usable_address() {
            return Err(QueueError::UnusableAddress(probe.address));
        }
        let protocol = probe.query.protocol;
        let mut state = State::new(protocol);
        state.set_server(probe.address);
        Ok(Self {
            probe,
            transport,
            secrets: Secrets::new(seed),
            limit,
            started: None,
            phase: Phase::Unconnected,
            pending: state.attempt(probe.query.detail),
            awaited: None,
            response: Response::new(protocols::max_message(protocol)),
            state,
            raw: RawReply::default(),
            received: Vec::new(),
            connections: 0,
            connection: Connection::default(),
            round_trip: None,
            has_reply: false,
            malformed: 0,
            last_error: None,
            is_refused: false,
            received_bytes: 0,
            stats: ProberStats::default(),
        })
    }

    /// What to do next. Bytes to send are appended to `out`.
    pub fn poll_action(&mut self, now: Instant, out: &mut Vec<u8>) -> StreamAction {
        match self.phase {
            Phase::Unconnected => {
                self.started.get_or_insert(now);
                self.phase = Phase::Connecting { since: now };
                self.connections += 1;
                self.connection = Connection::default();
                self.received.clear();
                StreamAction::Connect
            }
            Phase::Connecting { .. } => StreamAction::WaitUntil(self.deadline(now)),
            Phase::Open { since } => {
                if self.send(out) {
                    StreamAction::Send
                } else {
                    StreamAction::WaitUntil(self.end_of_connection(since))
                }
            }
            Phase::Ended => StreamAction::End,
        }
    }

    /// A connection was made.
    pub fn handle_connected(&mut self, now: Instant) {
        if let Phase::Connecting { since } = self.phase {
            self.round_trip.get_or_insert(now.saturating_duration_since(since));
            self.phase = Phase::Open { since: now };
        }
    }

    /// The server has sent these bytes.
    pub fn handle_received(&mut self, bytes: &[u8]) {
        if !matches!(self.phase, Phase::Open { .. }) || bytes.is_empty() {
            return;
        }
        self.connection.has_received = true;
        self.stats.received += 1;
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_BYTES {
            self.note_malformed(error("reply", DecodeErrorKind::TooLong));
            self.phase = Phase::Ended;
        } else if self.transport == Transport::Http {
            self.receive_response(bytes);
        } else {
            self.receive_messages(bytes);
        }
    }

    /// The server has closed the connection, or it was cut off.
    pub fn handle_closed(&mut self) {
        if !matches!(self.phase, Phase::Open { .. }) {
            return;
        }
        if self.transport == Transport::Http {
            return self.end_response();
        }
        if !self.received.is_empty() {
            self.note_malformed(error("message", DecodeErrorKind::Truncated));
        } else if !self.has_reply {
            self.note_malformed(error("reply before the connection was closed", DecodeErrorKind::Missing));
        }
        self.reconnect();
    }

    /// Nothing listens at the server's port.
    pub fn handle_refused(&mut self) {
        self.is_refused = true;
        self.phase = Phase::Ended;
    }

    /// The time of [`StreamAction::WaitUntil`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.deadline(now) {
            self.phase = Phase::Ended;
        } else if let Phase::Open { since } = self.phase
            && now >= self.end_of_connection(since)
        {
            self.reconnect();
        }
    }

    /// When the exchange ends, whatever has arrived.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        self.started.unwrap_or(now) + self.limit
    }

    /// Counters of this exchange.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        let mut stats = self.stats;
        if self.phase == Phase::Ended {
            let is_complete = self.state.outstanding(self.probe.query.detail).is_empty();
            let count = match (self.has_reply, self.last_error) {
                (true, _) if is_complete => &mut stats.complete,
                (true, _) => &mut stats.partial,
                (false, Some(_)) => &mut stats.unreadable,
                (false, None) if self.is_refused => &mut stats.refused,
                (false, None) => &mut stats.timed_out,
            };
            *count += 1;
        }
        stats
    }

    /// The result: what has arrived so far, if the exchange has not ended.
    #[must_use]
    pub fn into_result(self) -> ProbeResult {
        let outcome = match (self.has_reply, self.round_trip, self.last_error) {
            (true, Some(time), _) => {
                let (info, missing) = self.state.finish(self.probe.query.detail, &self.raw);
                let round_trip = RoundTrip { time, method: RttMethod::Connect };
                ProbeOutcome::Answered(Box::new(QueryReply { info, missing, round_trip, raw: self.raw }))
            }
            (_, _, Some(error)) => ProbeOutcome::Malformed(error),
            _ if self.is_refused => ProbeOutcome::Refused,
            _ => ProbeOutcome::TimedOut,
        };
        // Each document that is read over HTTP may take a connection: none of them is a retry.
        let retries = if self.transport == Transport::Http { 0 } else { self.connections.saturating_sub(1) };
        ProbeResult { probe: self.probe, outcome, retries, malformed: self.malformed }
    }
}

impl StreamExchange {
    /// When to give a connection up: at the end or, if there is another way to ask, after half of the time that is left.
    fn end_of_connection(&self, since: Instant) -> Instant {
        let deadline = self.deadline(since);
        if self.transport == Transport::Http || self.next_connection().is_empty() {
            return deadline;
        }
        since + deadline.saturating_duration_since(since) / 2
    }

    /// The requests of another connection over TCP.
    fn next_connection(&self) -> Requests {
        if self.connections >= MAX_CONNECTIONS {
            return Requests::NONE;
        }
        self.state.reconnect(self.probe.query.detail, self.connections)
    }

    /// Appends what is to be sent now: all requests or, over HTTP, the next one.
    fn send(&mut self, out: &mut Vec<u8>) -> bool {
        if self.pending.is_empty() || self.awaited.is_some() {
            return false;
        }
        let before = out.len();
        if self.transport == Transport::Http {
            let request = self.pending.pop();
            let mut path = Vec::new();
            self.emit(request, &mut path);
            self.awaited = Some(request);
            self.response.reset();
            http::emit_request(&path, self.probe.address, out);
            self.stats.sent += 1;
        } else {
            while !self.pending.is_empty() {
                let request = self.pending.pop();
                self.emit(request, out);
                self.stats.sent += 1;
            }
        }
        self.stats.sent_bytes += (out.len() - before) as u64;
        out.len() > before
    }

    fn emit(&mut self, request: Request, out: &mut Vec<u8>) {
        let attempt = self.connections.saturating_sub(1);
        let token = || self.secrets.token(1, attempt);
        self.state.emit(request, token, out);
    }

    fn receive_messages(&mut self, bytes: &[u8]) {
        let mut received = std::mem::take(&mut self.received);
        received.extend_from_slice(bytes);
        let mut start = 0;
        while matches!(self.phase, Phase::Open { .. }) {
            let rest = &received[start..];
            let problem = match self.state.frame(rest) {
                Ok(Some(length)) if (1..=rest.len()).contains(&length) => {
                    start += length;
                    self.receive(&rest[..length], None).err()
                }
                Ok(None) if rest.len() <= protocols::max_message(self.probe.query.protocol) => break,
                Ok(_) => Some(error("message", DecodeErrorKind::TooLong)),
                Err(error) => Some(error),
            };
            if let Some(error) = problem {
                self.note_malformed(error);
                self.reconnect();
            }
        }
        received.drain(..start);
        self.received = received;
    }

    fn receive_response(&mut self, bytes: &[u8]) {
        if self.awaited.is_none() {
            // Bytes that nothing asked for: the next response could not be told from them.
            self.note_malformed(error("response", DecodeErrorKind::TrailingBytes));
            return self.reconnect();
        }
        if let Err(error) = self.response.push(bytes) {
            self.note_malformed(error);
            self.awaited = None;
            return self.reconnect();
        }
        if self.response.is_complete() {
            self.take_response();
        }
    }

    /// Handles the end of a connection over HTTP, which may be the end of a response.
    fn end_response(&mut self) {
        if let Some(request) = self.awaited {
            if self.connection.responses > 0 && !self.response.has_begun() {
                // The server closes connections after each response: the request has not been answered, and is made again.
                self.awaited = None;
                self.pending = self.pending.with(Requests::of(request));
                return self.reconnect();
            }
            if let Err(error) = self.response.handle_closed() {
                self.note_malformed(error);
                self.awaited = None;
                return self.reconnect();
            }
            self.take_response();
        }
        if matches!(self.phase, Phase::Open { .. }) {
            self.reconnect();
        }
    }

    /// Takes in the body of a complete response. Every other status than 200 means that there is no such document.
    fn take_response(&mut self) {
        let Some(request) = self.awaited.take() else { return };
        self.connection.responses = self.connection.responses.saturating_add(1);
        let problem = match self.response.status() {
            200 => {
                let body = self.response.take_body();
                self.receive(&body, Some(request)).err()
            }
            _ => Some(error("document (status of the response)", DecodeErrorKind::Missing)),
        };
        if let Some(error) = problem {
            self.note_malformed(error);
        }
        if matches!(self.phase, Phase::Open { .. }) && (self.pending.is_empty() || self.response.closes_connection()) {
            self.reconnect();
        }
    }

    /// Passes a message to the protocol.
    fn receive(&mut self, message: &[u8], request: Option<Request>) -> Result<(), DecodeError> {
        let detail = self.probe.query.detail;
        let context = Context { secrets: &self.secrets, serial: 1, attempts: self.connections, request };
        let accepted = match self.state.handle(message, detail, &context)? {
            Received::Accepted(accepted) => accepted,
            Received::Redundant => {
                self.stats.redundant += 1;
                return Ok(());
            }
            Received::WrongToken => {
                self.stats.wrong_echo += 1;
                return Ok(());
            }
            Received::Foreign => {
                self.stats.unsolicited += 1;
                return Ok(());
            }
        };
        let Accepted { next, is_transient, .. } = accepted;
        if !is_transient {
            self.raw.push(message);
            self.has_reply = true;
        }
        if self.has_reply && self.state.outstanding(detail).is_empty() {
            self.phase = Phase::Ended;
        } else if !next.is_empty() && self.connection.follow_ups < MAX_FOLLOW_UPS {
            self.connection.follow_ups += 1;
            self.pending = self.pending.with(next);
        }
        Ok(())
    }

    /// Begins another connection if there is anything left to ask for, and ends the exchange otherwise.
    fn reconnect(&mut self) {
        let next = if self.transport == Transport::Http { self.pending } else { self.next_connection() };
        self.pending = next;
        self.phase =
            if next.is_empty() || self.connections >= MAX_CONNECTIONS { Phase::Ended } else { Phase::Unconnected };
    }

    fn note_malformed(&mut self, error: DecodeError) {
        self.malformed = self.malformed.saturating_add(1);
        self.stats.malformed += 1;
        self.last_error = Some(error);
    }
}

const fn error(field: &'static str, kind: DecodeErrorKind) -> DecodeError {
    DecodeError { field, kind }
}
