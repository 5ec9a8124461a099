//! A session state machine on its sockets, driven by calls and without a thread.

use crate::{
    LinkConditioner, LinkConditions,
    entropy_refresh::EntropyRefresh,
    local_addrs::LocalAddrs,
    local_link::{LocalLink, Wake},
    poll_interval::PollInterval,
};
use rallypoint_machine::{Machine, SocketIndex, Transmit};
use rallypoint_session_proto::SessionMachine;
use rallypoint_udp::{BATCH_SIZE, BindError, Poller, RecvBatch, SendBatch, UdpSocket, clock};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of times that the sockets are emptied, and of batches that are sent, in one call.
const MAX_ROUNDS: usize = 16;

/// Interval of calls from which on the system reports when datagrams arrived, which costs some instructions each: in a game
/// loop they wait for the next frame, and the round-trip time in the statistics would be longer by that (W82).
const MIN_TIMED_INTERVAL: Duration = Duration::from_millis(1);

/// How long a call waits at most if datagrams may arrive through a link as well as through a socket, or through several links.
const MAX_LINK_WAIT: Duration = Duration::from_millis(5);

/// Interval at which the bytes per second of connections are determined.
const THROUGHPUT_INTERVAL: Duration = Duration::from_secs(1);

/// Moves datagrams between a state machine and its sockets.
pub(crate) struct SocketDriver<M> {
    machine: LinkConditioner<M>,
    sockets: Vec<Arc<UdpSocket>>,
    /// Peers in this process.
    links: Vec<LocalLink>,
    /// What wakes the task that drives the machine, if there is one.
    wake: Option<Wake>,
    received: RecvBatch,
    outgoing: SendBatch,
    local_addrs: LocalAddrs,
    /// A socket whose send buffer is full.
    blocked_socket: Option<SocketIndex>,
    /// When the machine was last driven.
    last_driven: Instant,
    entropy: EntropyRefresh,
    /// When the bytes per second of connections are determined again.
    next_throughput: Option<Instant>,
    poll_interval: PollInterval,
    /// Whether the system reports when datagrams arrived, or was asked to.
    has_receive_times: bool,
    /// Made by the first call that waits: games that only poll, and the async API, do without.
    poller: Option<Poller>,
}

/// The conditions for the next [`drive`](SocketDriver::drive).
#[cfg_attr(not(feature = "async"), allow(dead_code, reason = "only the driver task reads it"))]
pub(crate) struct DriveState {
    /// There is more to do at once.
    pub is_busy: bool,
    /// A socket whose send buffer is full: drive again when it is writable.
    pub blocked_socket: Option<SocketIndex>,
    /// When to drive again even if nothing arrives.
    pub next_timeout: Option<Instant>,
}

impl<M: SessionMachine> SocketDriver<M> {
    pub fn new(machine: M, sockets: Vec<Arc<UdpSocket>>, conditions: Option<LinkConditions>) -> Self {
        let mut machine = LinkConditioner::new(machine);
        machine.set_conditions(conditions);
        for socket in &sockets {
            socket.enable_gro();
        }
        Self {
            machine,
            sockets,
            links: Vec::new(),
            wake: None,
            received: RecvBatch::with_gro(),
            outgoing: SendBatch::default(),
            local_addrs: LocalAddrs::default(),
            blocked_socket: None,
            last_driven: clock::now(),
            entropy: EntropyRefresh::default(),
            next_throughput: None,
            poll_interval: PollInterval::default(),
            has_receive_times: false,
            poller: None,
        }
    }

    /// The time of a message that is passed to `send`. Only for one that expires it has to be exact: the others are only queued,
    /// and to read the clock for each of many small messages would cost as much as the messages.
    pub fn send_time(&self, is_expiring: bool) -> Instant {
        if is_expiring { clock::now() } else { self.last_driven }
    }

    pub fn machine(&self) -> &M {
        self.machine.inner()
    }

    pub fn machine_mut(&mut self) -> &mut M {
        self.machine.inner_mut()
    }

    pub fn set_link_conditions(&mut self, conditions: Option<LinkConditions>) {
        self.machine.set_conditions(conditions);
    }

    /// Adds a peer in this process.
    pub fn add_link(&mut self, link: LocalLink) {
        self.links.retain(|link| !link.is_closed());
        if let Some(wake) = &self.wake {
            link.set_wake(wake.clone());
        }
        self.links.push(link);
    }

    /// Sets the function that wakes the task which drives the machine when a datagram arrives through a link.
    #[cfg(feature = "async")]
    pub fn set_wake(&mut self, wake: Wake) {
        self.links.iter().for_each(|link| link.set_wake(wake.clone()));
        self.wake = Some(wake);
    }

    #[cfg(feature = "async")]
    pub fn sockets(&self) -> &[Arc<UdpSocket>] {
        &self.sockets
    }

    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().map(|socket| socket.local_addr())
    }

    /// Begins a frame of a game loop, which calls [`drive`](Self::drive) once per frame. Returns the current time.
    pub fn begin_frame(&mut self) -> Instant {
        let now = clock::now();
        let interval = self.poll_interval.record(now);
        self.machine_mut().set_poll_interval(interval);
        if interval >= MIN_TIMED_INTERVAL && !self.has_receive_times {
            self.has_receive_times = true;
            for socket in &self.sockets {
                socket.enable_receive_times();
            }
        }
        now
    }

    /// Receives datagrams, handles expired timers, and sends what the machine emits.
    pub fn drive(&mut self, now: Instant) -> DriveState {
        if let Some(entropy) = self.entropy.poll(now) {
            self.machine_mut().mix_entropy(&entropy);
        }
        if self.next_throughput.is_none_or(|next| now >= next) {
            self.next_throughput = Some(now + THROUGHPUT_INTERVAL);
            self.machine_mut().sample_throughput(now);
        }
        let mut is_busy = true;
        for round in 0..MAX_ROUNDS {
            let has_more = self.receive(now);
            if round == 0 && self.machine.poll_timeout().is_some_and(|at| at <= now) {
                self.machine.handle_timeout(now);
            }
            is_busy = self.transmit(now) || has_more;
            if !has_more {
                break;
            }
        }
        DriveState { is_busy, blocked_socket: self.blocked_socket, next_timeout: self.machine.poll_timeout() }
    }

    /// Sends what the machine emits. Returns whether there may be more.
    pub fn transmit(&mut self, now: Instant) -> bool {
        self.last_driven = now;
        self.blocked_socket = self.flush();
        for _ in 0..MAX_ROUNDS {
            if self.blocked_socket.is_some() {
                return false;
            }
            let Self { outgoing, machine, links, .. } = self;
            outgoing.fill(BATCH_SIZE, |out| poll_transmit(machine, links, now, out));
            if self.outgoing.is_empty() {
                return false;
            }
            self.blocked_socket = self.flush();
        }
        self.blocked_socket.is_none()
    }

    /// Waits until a datagram arrives, a timer expires, or `timeout` has passed.
    pub fn wait(&mut self, timeout: Duration) {
        self.poll_interval.on_wait();
        let next = self.machine.poll_timeout().map(|at| at.saturating_duration_since(clock::now()));
        let timeout = match &*self.links {
            [] => timeout,
            [link] if self.sockets.is_empty() => return link.wait(next.map_or(timeout, |next| next.min(timeout))),
            _ => timeout.min(MAX_LINK_WAIT),
        };
        if self.poller.is_none() {
            self.poller = Poller::new(&self.sockets).ok();
        }
        // If the system cannot wait, for lack of descriptors or memory, the caller continues sooner.
        let Some(poller) = &mut self.poller else { return };
        for index in (0..self.sockets.len()).map(SocketIndex) {
            poller.set_writable_interest(index, self.blocked_socket == Some(index));
        }
        let _ = poller.wait(Some(next.map_or(timeout, |next| next.min(timeout))));
    }

    fn flush(&mut self) -> Option<SocketIndex> {
        self.outgoing.flush_from(&self.sockets, |to| self.local_addrs.get(to))
    }

    /// Hands one batch of each socket to the machine. Returns whether there may be more.
    fn receive(&mut self, now: Instant) -> bool {
        let mut has_more = false;
        for socket in &self.sockets {
            if let Err(error) = self.received.recv(socket) {
                tracing::debug!(%error, "receiving from a session socket failed");
                continue;
            }
            for datagram in self.received.iter().filter(|datagram| !datagram.is_truncated()) {
                self.local_addrs.record(datagram.from, datagram.local);
                if self.has_receive_times {
                    // Datagrams that a simulated network holds back do not arrive now.
                    let received_at = datagram.received_at.filter(|_| !self.machine.has_conditions());
                    let delay = received_at.map(|at| now.saturating_duration_since(at));
                    self.machine.inner_mut().set_receive_delay(delay);
                }
                self.machine.handle_datagram(now, datagram.from, datagram.bytes);
            }
            has_more |= self.received.is_full();
        }
        let Self { links, machine, .. } = self;
        for link in links {
            link.receive(|datagram| machine.handle_datagram(now, link.peer(), datagram));
        }
        has_more
    }
}

/// What the machine emits for peers that are reached through sockets. The rest is handed over to their links.
#[inline]
fn poll_transmit(machine: &mut impl Machine, links: &[LocalLink], now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
    loop {
        let start = out.len();
        let transmit = machine.poll_transmit(now, out)?;
        let Some(link) = links.iter().find(|link| link.peer() == transmit.to) else { return Some(transmit) };
        // In range: the machine only appends.
        link.send(&transmit, &out[start..]);
        out.truncate(start);
    }
}

/// Binds the sockets of a server. A family that the machine does not support is left out, unless there is no other.
pub(crate) fn listen(addrs: &[SocketAddr], receive_buffer: usize) -> Result<Vec<Arc<UdpSocket>>, BindError> {
    let mut sockets = Vec::new();
    let mut missing = None;
    for &addr in addrs {
        match UdpSocket::bind(addr, receive_buffer) {
            Ok(socket) => {
                // A server on all addresses replies from the one that was contacted; a client sends as its routes say.
                if addr.ip().is_unspecified()
                    && let Err(error) = socket.enable_local_addr()
                {
                    tracing::debug!(%error, "the system does not report the local address of datagrams");
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
