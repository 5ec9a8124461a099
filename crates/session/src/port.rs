//! A machine of the session protocol at its sockets, without a thread.

use crate::{FakeNetwork, Faked, locals::Locals};
use rallypoint_machine::{Machine, SocketIndex};
use rallypoint_udp::{BATCH_SIZE, BindError, PollFd, RecvBatch, SendBatch, UdpSocket, clock, poll};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the sockets are emptied, and how many batches are sent, before whoever called has its turn again.
const ROUNDS: usize = 16;

pub(crate) struct Port<M> {
    pub machine: Faked<M>,
    sockets: Vec<Arc<UdpSocket>>,
    received: RecvBatch,
    outgoing: SendBatch,
    locals: Locals,
    /// This socket had no room for what is to be sent.
    full: Option<SocketIndex>,
}

/// How a turn has ended.
pub(crate) struct Turn {
    /// There is more to do at once.
    pub is_busy: bool,
    /// This socket has no room: go on when it has.
    pub full: Option<SocketIndex>,
    /// When there is something to do, even if nothing arrives.
    pub next: Option<Instant>,
}

impl<M: Machine> Port<M> {
    pub fn new(machine: M, sockets: Vec<Arc<UdpSocket>>, fake: Option<FakeNetwork>) -> Self {
        let mut machine = Faked::new(machine);
        machine.set_fake(fake);
        for socket in &sockets {
            socket.enable_gro();
        }
        let (received, outgoing) = (RecvBatch::with_gro(), SendBatch::default());
        Self { machine, sockets, received, outgoing, locals: Locals::default(), full: None }
    }

    pub fn sockets(&self) -> &[Arc<UdpSocket>] {
        &self.sockets
    }

    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().map(|socket| socket.local_addr())
    }

    /// Receives what is there, lets the time pass that has passed, and sends what there is to send.
    pub fn turn(&mut self, now: Instant) -> Turn {
        let mut is_busy = true;
        for round in 0..ROUNDS {
            let more = self.receive(now);
            if round == 0 && self.machine.poll_timeout().is_some_and(|at| at <= now) {
                self.machine.handle_timeout(now);
            }
            is_busy = self.transmit(now) || more;
            if !more {
                break;
            }
        }
        Turn { is_busy, full: self.full, next: self.machine.poll_timeout() }
    }

    /// Sends what there is to send. Says whether there may be more of it.
    pub fn transmit(&mut self, now: Instant) -> bool {
        self.full = self.flush();
        for _ in 0..ROUNDS {
            if self.full.is_some() {
                return false;
            }
            self.outgoing.fill(BATCH_SIZE, |out| self.machine.poll_transmit(now, out));
            if self.outgoing.is_empty() {
                return false;
            }
            self.full = self.flush();
        }
        self.full.is_none()
    }

    fn flush(&mut self) -> Option<SocketIndex> {
        self.outgoing.flush_from(&self.sockets, |to| self.locals.of(to))
    }

    /// Waits until something arrives, there is something to do, or the time is up.
    pub fn wait(&mut self, at_most: Duration) {
        let next = self.machine.poll_timeout().map(|at| at.saturating_duration_since(clock::now()));
        let mut fds = [PollFd::ignored(); 2];
        for (index, (fd, socket)) in fds.iter_mut().zip(&self.sockets).enumerate() {
            *fd = PollFd::readable(&**socket);
            fd.set_writable_interest(self.full == Some(SocketIndex(index)));
        }
        // If the system cannot wait, for want of memory, the caller goes on sooner.
        let _ = poll(&mut fds, Some(next.map_or(at_most, |next| next.min(at_most))));
    }

    /// Hands one batch of each socket to the machine. Says whether there may be more.
    fn receive(&mut self, now: Instant) -> bool {
        let mut more = false;
        for socket in &self.sockets {
            if let Err(error) = self.received.recv(socket) {
                tracing::debug!(%error, "a socket reports an error");
                continue;
            }
            for datagram in self.received.iter().filter(|datagram| !datagram.is_truncated()) {
                self.locals.note(datagram.from, datagram.local);
                self.machine.handle_datagram(now, datagram.from, datagram.bytes);
            }
            more |= self.received.is_full();
        }
        more
    }
}

/// Opens the sockets of a server. A family that the machine does not have is left out, unless there is no other.
pub(crate) fn listen(addrs: &[SocketAddr], receive_buffer: usize) -> Result<Vec<Arc<UdpSocket>>, BindError> {
    let (mut sockets, mut missing) = (Vec::new(), None);
    for &addr in addrs {
        match UdpSocket::bind(addr, receive_buffer) {
            Ok(socket) => {
                // Who listens at all addresses answers from the one that was asked; a client goes where its routes lead.
                if addr.ip().is_unspecified()
                    && let Err(error) = socket.enable_local_addr()
                {
                    tracing::debug!(%error, "the system does not tell which address was asked");
                }
                sockets.push(Arc::new(socket));
            }
            Err(error @ (BindError::AddressNotAvailable { .. } | BindError::FamilyNotSupported { .. }))
                if addr.ip().is_unspecified() =>
            {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}
