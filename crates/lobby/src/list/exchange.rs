//! One client: a request, a reply, and an end that loses nothing.

use super::{
    counters::Counters,
    reply::{Replies, Reply},
};
use rallypoint_udp::clock;
use rallypoint_wire::{DecodeError, DecodeErrorKind, legacy, lobby::ListRequest};
use socket2::Socket;
use std::{
    io,
    net::Shutdown,
    time::{Duration, Instant},
};

/// What the clients of a port speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Document 001.
    Modern,
    /// The protocol of old clients (L16).
    Legacy,
}

/// How far an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The request is not all there.
    Request,
    /// The reply is not all handed over to the system.
    Reply,
    /// There is nothing more to say. What the client still sends is read and forgotten until it closes its side: if the
    /// connection were closed over unread input, the system would reset it, and the client could lose the reply (L14).
    Drain,
}

/// What an exchange is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// For input.
    Read,
    /// For room to write.
    Write,
    /// For its next turn.
    Again,
    /// For nothing: it is over.
    End,
}

/// How long a client that has its reply may take to read it and close. A slow reader is served for at least 60 s (L14).
const LINGER: Duration = Duration::from_secs(60);

/// How long one that asked for something else may take: it gets nothing, so nothing can be lost.
const LINGER_WRONG: Duration = Duration::from_secs(1);

/// Who goes on sending after the request is not waited for beyond this.
const MAX_DRAINED: usize = 1 << 20;

/// How many reads are made in one turn.
const READS: usize = 16;

#[derive(Debug)]
pub(super) struct Exchange {
    protocol: Protocol,
    request: [u8; ListRequest::SIZE],
    filled: usize,
    reply: Option<Reply>,
    phase: Phase,
    since: Instant,
    linger: Duration,
    drained: usize,
}

impl Exchange {
    pub fn new(protocol: Protocol, now: Instant) -> Self {
        Self {
            protocol,
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

    /// When the phase began.
    pub fn since(&self) -> Instant {
        self.since
    }

    pub fn linger(&self) -> Duration {
        self.linger
    }

    /// The reply that is being handed over.
    pub fn reply(&self) -> Option<&Reply> {
        self.reply.as_ref()
    }

    /// Goes on without waiting, and no further than to the next phase.
    pub fn advance(&mut self, socket: &Socket, replies: &Replies, counters: &Counters) -> Step {
        let result = self.try_advance(socket, replies, counters);
        result.unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock if self.phase == Phase::Reply => Step::Write,
            io::ErrorKind::WouldBlock => Step::Read,
            io::ErrorKind::Interrupted => Step::Again,
            // The client is gone.
            _ => Step::End,
        })
    }

    fn try_advance(&mut self, socket: &Socket, replies: &Replies, counters: &Counters) -> io::Result<Step> {
        match self.phase {
            Phase::Request => self.read_request(socket, replies, counters),
            Phase::Reply => self.write_reply(socket, counters),
            Phase::Drain => self.drain(socket),
        }
    }

    fn read_request(&mut self, socket: &Socket, replies: &Replies, counters: &Counters) -> io::Result<Step> {
        let read = receive(socket, &mut self.request[self.filled..])?;
        if read == 0 {
            return Ok(Step::End);
        }
        self.filled += read;
        match self.requested(replies) {
            Ok(reply) => {
                counters.requested();
                self.reply = Some(reply);
                self.enter(Phase::Reply);
            }
            Err(DecodeError { kind: DecodeErrorKind::Truncated, .. }) => {}
            Err(_) => {
                counters.wrong_protocol();
                self.linger = LINGER_WRONG;
                self.enter(Phase::Drain);
                socket.shutdown(Shutdown::Write)?;
            }
        }
        Ok(Step::Again)
    }

    fn write_reply(&mut self, socket: &Socket, counters: &Counters) -> io::Result<Step> {
        let Some(reply) = &mut self.reply else { return Ok(Step::End) };
        let (is_all, sent) = reply.write(socket)?;
        counters.sent(sent);
        if !is_all {
            return Ok(Step::Write);
        }
        counters.replied(self.since.elapsed());
        self.reply = None;
        self.enter(Phase::Drain);
        // The end of the stream goes with the reply's last bytes: they were held back for this.
        socket.shutdown(Shutdown::Write)?;
        Ok(Step::Again)
    }

    fn drain(&mut self, socket: &Socket) -> io::Result<Step> {
        let mut forgotten = [0; 4_096];
        for _ in 0..READS {
            let read = receive(socket, &mut forgotten)?;
            self.drained += read;
            if read == 0 || self.drained > MAX_DRAINED {
                return Ok(Step::End);
            }
        }
        Ok(Step::Again)
    }

    /// The reply to what has arrived so far.
    fn requested(&self, replies: &Replies) -> Result<Reply, DecodeError> {
        let request = &self.request[..self.filled];
        match self.protocol {
            Protocol::Modern => ListRequest::parse(request).map(|request| replies.modern(&request.lobby_id)),
            Protocol::Legacy => legacy::ListRequest::parse(request).map(|request| replies.legacy(&request.protocol_id)),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = clock::now();
    }
}

fn receive(socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
    let mut socket = socket;
    io::Read::read(&mut socket, into)
}
