//! The exchange with one client: its request, the reply, and a close that loses no bytes of the reply.

use super::{
    counters::Counters,
    reply::{Reply, ReplySource},
};
use rallypoint_lobby_proto::doors::{MAX_REQUEST, RequestDoor};
use rallypoint_udp::clock;
use rallypoint_wire::{DecodeError, DecodeErrorKind};
use socket2::Socket;
use std::{
    io,
    mem::MaybeUninit,
    net::Shutdown,
    sync::Arc,
    time::{Duration, Instant},
};

/// Phase of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The request is incomplete.
    Request,
    /// The reply is not yet passed to the system completely.
    Reply,
    /// The reply is sent. Input is read and discarded until the client closes its side: if the connection were closed with
    /// unread input, the system would reset it, and the client could lose the reply (L14).
    Drain,
}

/// The condition for an exchange to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The socket has to be readable.
    Read,
    /// The socket has to be writable.
    Write,
    /// Nothing: it can continue at once.
    Again,
    /// The exchange has ended.
    End,
}

/// Maximum time for a client to read the end of its reply and close. A slow reader is served for at least 60 s (L14).
const LINGER: Duration = Duration::from_secs(60);

/// Maximum time to close after an invalid request: it gets no reply, so nothing can be lost.
const LINGER_INVALID: Duration = Duration::from_secs(1);

/// Maximum number of bytes that are discarded after the request. A client that sends more is disconnected.
const MAX_DRAINED: usize = 1 << 20;

/// Maximum number of reads per step while draining, so that one client cannot keep the task busy.
const MAX_READS: usize = 16;

/// State of the exchange with one client. It performs I/O on a non-blocking socket and never waits.
#[derive(Debug)]
pub(super) struct Exchange {
    door: Arc<dyn RequestDoor>,
    request: [u8; MAX_REQUEST],
    filled: usize,
    reply: Option<Reply>,
    phase: Phase,
    since: Instant,
    linger: Duration,
    drained: usize,
}

impl Exchange {
    pub fn new(door: Arc<dyn RequestDoor>, now: Instant) -> Self {
        Self {
            door,
            request: [0; _],
            filled: 0,
            reply: None,
            phase: Phase::Request,
            since: now,
            linger: LINGER,
            drained: 0,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Start of the current phase.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Maximum duration of [`Phase::Drain`].
    pub fn linger(&self) -> Duration {
        self.linger
    }

    /// The reply that is being sent.
    pub fn reply(&self) -> Option<&Reply> {
        self.reply.as_ref()
    }

    /// Continues without waiting, at most to the next phase.
    pub fn advance(&mut self, socket: &Socket, replies: &ReplySource, counters: &Counters) -> Step {
        let result = self.try_advance(socket, replies, counters);
        result.unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock if self.phase == Phase::Reply => Step::Write,
            io::ErrorKind::WouldBlock => Step::Read,
            io::ErrorKind::Interrupted => Step::Again,
            // The client has disconnected.
            _ => Step::End,
        })
    }

    fn try_advance(&mut self, socket: &Socket, replies: &ReplySource, counters: &Counters) -> io::Result<Step> {
        match self.phase {
            Phase::Request => self.read_request(socket, replies, counters),
            Phase::Reply => self.write_reply(socket, counters),
            Phase::Drain => self.drain(socket),
        }
    }

    fn read_request(&mut self, socket: &Socket, replies: &ReplySource, counters: &Counters) -> io::Result<Step> {
        let read = recv(socket, &mut self.request[self.filled..])?;
        if read == 0 {
            return Ok(Step::End);
        }
        self.filled += read;
        match self.door.reply(clock::now(), replies.lists(), &self.request[..self.filled]) {
            Ok(reply) => {
                counters.requested();
                self.reply = Some(replies.reply(reply));
                self.enter(Phase::Reply);
            }
            Err(DecodeError { kind: DecodeErrorKind::Truncated, .. }) => {}
            Err(_) => {
                counters.wrong_protocol();
                self.linger = LINGER_INVALID;
                self.enter(Phase::Drain);
                socket.shutdown(Shutdown::Write)?;
            }
        }
        Ok(Step::Again)
    }

    fn write_reply(&mut self, socket: &Socket, counters: &Counters) -> io::Result<Step> {
        let Some(reply) = &mut self.reply else { return Ok(Step::End) };
        let (is_complete, sent) = reply.write(socket)?;
        counters.sent(sent);
        if !is_complete {
            return Ok(Step::Write);
        }
        let requested_at = self.since;
        self.reply = None;
        self.enter(Phase::Drain);
        counters.replied(self.since.saturating_duration_since(requested_at));
        // The FIN is sent together with the reply's last bytes, which TCP_CORK has held back for it.
        socket.shutdown(Shutdown::Write)?;
        Ok(Step::Again)
    }

    fn drain(&mut self, socket: &Socket) -> io::Result<Step> {
        let mut discarded = [MaybeUninit::uninit(); 4_096];
        for _ in 0..MAX_READS {
            let read = socket.recv(&mut discarded)?;
            self.drained += read;
            if read == 0 || self.drained > MAX_DRAINED {
                return Ok(Step::End);
            }
        }
        Ok(Step::Again)
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = clock::now();
    }
}

fn recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let mut socket = socket;
    io::Read::read(&mut socket, buffer)
}
