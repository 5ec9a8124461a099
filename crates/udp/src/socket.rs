//! UDP sockets with room for a flood.

use crate::{BindError, SocketKind, sys};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    fmt, io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// A UDP socket of one family, with a large receive buffer.
///
/// A lobby loses datagrams to a full buffer long before its processor is busy: whatever makes it pause for a moment, the
/// buffer has to hold what arrives in that moment.
pub struct UdpSocket {
    socket: Socket,
    local: SocketAddr,
    receive_buffer: usize,
    received: AtomicU64,
    /// Whether the system makes several datagrams of one buffer.
    segments: AtomicBool,
    coalesces: AtomicBool,
}

/// A datagram that did not arrive, as far as the network says so.
#[derive(Debug)]
pub struct Undelivered {
    /// Where it was sent to.
    pub to: SocketAddr,
    /// Why it did not arrive. "Connection refused" is the word of its machine that nothing listens at that port.
    pub error: io::Error,
    /// Its beginning, as much as was quoted, which may be nothing; at most [`MAX_QUOTE`](Self::MAX_QUOTE) bytes.
    pub quoted: Vec<u8>,
}

impl Undelivered {
    /// How much of a quote is kept, in bytes.
    pub const MAX_QUOTE: usize = 64;
}

impl UdpSocket {
    /// Opens a socket. An IPv6 one takes IPv6 only: each family has its own. The system may give a smaller receive buffer
    /// than wanted; [`receive_buffer`](Self::receive_buffer) tells.
    ///
    /// # Errors
    /// If the system does not give the address, or no socket at all.
    pub fn bind(addr: SocketAddr, receive_buffer: usize) -> Result<Self, BindError> {
        Self::open(addr, receive_buffer).map_err(|error| BindError::new(SocketKind::Udp, addr, error))
    }

    fn open(addr: SocketAddr, receive_buffer: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        if sys::force_receive_buffer(socket.as_fd(), receive_buffer).is_err() {
            socket.set_recv_buffer_size(receive_buffer)?;
        }
        socket.bind(&addr.into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(addr);
        let receive_buffer = socket.recv_buffer_size()?;
        let segments = AtomicBool::new(sys::can_segment(socket.as_fd()));
        let (received, coalesces) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Self { socket, local, receive_buffer, received, segments, coalesces })
    }

    /// Has the system keep what the network says about datagrams that did not arrive, for
    /// [`next_error`](Self::next_error). Whoever asks for this has to take them: a socket with errors is always ready.
    pub fn keep_errors(&self) -> io::Result<()> {
        sys::keep_errors(self.fd(), self.local.is_ipv4())
    }

    /// The next datagram that did not arrive, if there is one.
    ///
    /// The system has checked that the datagram could be of this socket; but whoever can guess the socket's port can forge
    /// it.
    pub fn next_error(&self) -> io::Result<Option<Undelivered>> {
        sys::next_error(self.fd())
    }

    /// Has the system hand over datagrams of one sender that arrive together in one piece (GRO), if it can; says whether.
    /// From then on only [`RecvBatch::coalesced`](crate::RecvBatch::coalesced) has room for them.
    pub fn coalesce(&self) -> bool {
        let coalesces = sys::coalesce(self.fd()).is_ok();
        self.coalesces.store(coalesces, Relaxed);
        coalesces
    }

    /// Has the system tell which of this machine's addresses each datagram was sent to, if it can.
    /// [`RecvBatch::coalesced`](crate::RecvBatch::coalesced) has room for that.
    pub fn tell_local(&self) -> io::Result<()> {
        sys::tell_local(self.fd(), self.local.is_ipv4())
    }

    /// Whether datagrams that arrive together are handed over in one piece.
    #[must_use]
    pub fn coalesces(&self) -> bool {
        self.coalesces.load(Relaxed)
    }

    /// Whether the system makes several datagrams of one buffer (GSO), as far as is known.
    #[must_use]
    pub fn segments(&self) -> bool {
        self.segments.load(Relaxed)
    }

    /// From now on datagrams are sent one by one. It happens by itself if the system, or the network behind it, turns out
    /// not to be able to segment.
    pub fn stop_segmenting(&self) {
        self.segments.store(false, Relaxed);
    }

    /// Where it listens: the real port, also if any was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// How many bytes the system keeps for it, with the system's own administration.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// How many datagrams were received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// How many datagrams the system dropped because the buffer was full, as far as it tells.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        sys::dropped(self.fd()).unwrap_or(0).into()
    }

    /// Sends one datagram immediately, without batching: for senders of a few datagrams per minute that report failures.
    ///
    /// # Errors
    /// If the datagram did not leave this machine.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(bytes, &to.into()).map(drop)
    }

    pub(crate) fn count_received(&self, count: usize) {
        self.received.fetch_add(count as u64, Relaxed);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRef<Self> for UdpSocket {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket").field("local", &self.local).finish_non_exhaustive()
    }
}
