//! UDP sockets with a large receive buffer.

use crate::{BindError, SocketKind, sys};
use rallypoint_machine::DeliveryError;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// A non-blocking UDP socket of one address family, with a large receive buffer.
///
/// A lobby loses datagrams to a full buffer long before its processor is busy: whenever the process pauses, the buffer has
/// to hold what arrives meanwhile.
///
/// ```
/// use rallypoint_udp::UdpSocket;
///
/// let socket = UdpSocket::bind("127.0.0.1:0".parse()?, 4 << 20)?;
/// assert_ne!(socket.local_addr().port(), 0);
/// println!("receive buffer: {} bytes", socket.recv_buffer_size());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UdpSocket {
    socket: Arc<Socket>,
    local_addr: SocketAddr,
    recv_buffer_size: usize,
    received: AtomicU64,
    is_gso_enabled: AtomicBool,
}

impl UdpSocket {
    /// Binds a socket. An IPv6 socket receives IPv6 only: each family has its own. The system may give a smaller receive
    /// buffer than `recv_buffer_size` bytes; see [`recv_buffer_size`](Self::recv_buffer_size).
    ///
    /// # Errors
    /// If the address cannot be bound, or the system has no more sockets.
    pub fn bind(addr: SocketAddr, recv_buffer_size: usize) -> Result<Self, BindError> {
        Self::open(addr, recv_buffer_size).map_err(|error| BindError::new(SocketKind::Udp, addr, error))
    }

    fn open(addr: SocketAddr, recv_buffer_size: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        if sys::force_recv_buffer_size(&socket, recv_buffer_size).is_err() {
            socket.set_recv_buffer_size(recv_buffer_size)?;
        }
        sys::prepare_udp(&socket)?;
        socket.bind(&addr.into())?;
        let local_addr = socket.local_addr()?.as_socket().unwrap_or(addr);
        let recv_buffer_size = socket.recv_buffer_size()?;
        let is_gso_enabled = AtomicBool::new(sys::supports_gso(&socket));
        let socket = Arc::new(socket);
        Ok(Self { socket, local_addr, recv_buffer_size, received: AtomicU64::new(0), is_gso_enabled })
    }

    /// Makes the system keep the network's reports about datagrams that were not delivered, for
    /// [`recv_error`](Self::recv_error). The caller then has to take them: a socket with queued errors is always ready.
    ///
    /// # Errors
    /// If the system does not support it.
    pub fn enable_error_queue(&self) -> io::Result<()> {
        sys::enable_error_queue(&self.socket, self.local_addr.is_ipv4())
    }

    /// Takes the next report about a datagram that was not delivered, without waiting.
    ///
    /// The system has checked that the quoted datagram may have been sent by this socket, but a sender that guesses the
    /// socket's port can forge a report.
    ///
    /// # Errors
    /// An error of the socket.
    pub fn recv_error(&self) -> io::Result<Option<DeliveryError>> {
        sys::recv_error(&self.socket)
    }

    /// Makes the system put datagrams of one sender that arrive together into one buffer (generic receive offload, GRO), if
    /// it can; returns whether it can. From then on only [`RecvBatch::with_gro`](crate::RecvBatch::with_gro) has room for
    /// them.
    pub fn enable_gro(&self) -> bool {
        sys::enable_gro(&self.socket).is_ok()
    }

    /// Makes the system report when it received each datagram, if it can; returns whether it can.
    /// [`RecvBatch::with_receive_times`](crate::RecvBatch::with_receive_times) and
    /// [`RecvBatch::with_gro`](crate::RecvBatch::with_gro) have room for it.
    pub fn enable_receive_times(&self) -> bool {
        sys::enable_receive_times(&self.socket).is_ok()
    }

    /// Makes the system report the address of this machine that each datagram was sent to.
    /// [`RecvBatch::with_gro`](crate::RecvBatch::with_gro) has room for it.
    ///
    /// # Errors
    /// If the system does not support it.
    pub fn enable_local_addr(&self) -> io::Result<()> {
        sys::enable_local_addr(&self.socket, self.local_addr.is_ipv4())
    }

    /// Whether several datagrams are handed to the system in one buffer (generic segmentation offload, GSO).
    #[must_use]
    pub fn is_gso_enabled(&self) -> bool {
        self.is_gso_enabled.load(Relaxed)
    }

    /// Sends datagrams one by one from now on. This is called automatically when the system, or the network behind it, turns
    /// out not to support segmentation.
    pub fn disable_gso(&self) {
        self.is_gso_enabled.store(false, Relaxed);
    }

    /// Bound address, with the port that the system chose if port 0 was requested.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Size of the receive buffer, in bytes, including the system's own bookkeeping.
    #[must_use]
    pub fn recv_buffer_size(&self) -> usize {
        self.recv_buffer_size
    }

    /// Number of datagrams received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Number of datagrams that the system dropped because the receive buffer was full; 0 if the system does not report it.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        sys::dropped(&self.socket).unwrap_or(0).into()
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

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }
}

impl AsRef<Self> for UdpSocket {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}
