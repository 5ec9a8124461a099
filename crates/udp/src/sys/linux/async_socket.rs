//! Readiness of sockets on a tokio runtime.

use crate::UdpSocket;
use socket2::Socket;
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{Interest, unix::AsyncFd};

/// A non-blocking socket that is registered with a tokio runtime, which reports when it is ready.
#[derive(Debug)]
pub struct AsyncSocket(AsyncFd<Arc<Socket>>);

impl AsyncSocket {
    /// Registers a UDP socket with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn udp(socket: &UdpSocket) -> io::Result<Self> {
        register(socket.socket().clone()).map(Self)
    }

    /// Registers a TCP connection with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn tcp(socket: &Arc<Socket>) -> io::Result<Self> {
        register(socket.clone()).map(Self)
    }

    /// Waits until the socket may be ready for one of the interests.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub async fn ready(&self, interest: Interest) -> io::Result<()> {
        self.0.ready(interest).await.map(drop)
    }

    /// Calls a function that uses the socket, if the socket may be ready. If the function returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as not ready until the system reports that it is.
    ///
    /// # Errors
    /// The function's, or `WouldBlock` if the socket is not ready.
    pub fn try_io<R>(&self, interest: Interest, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.0.try_io(interest, |_| f())
    }

    /// Waits until the socket may be readable, and resets that: what arrives later sets it again. The caller then has to read
    /// until nothing is left.
    pub fn poll_take_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_read_ready(context))?.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// Waits until the socket may be writable, and resets that. The caller then has to write until the socket is full.
    pub fn poll_take_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_write_ready(context))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

/// A listening TCP socket that is registered with a tokio runtime.
#[derive(Debug)]
pub struct AsyncListener(AsyncFd<Arc<Socket>>);

impl AsyncListener {
    /// Registers a non-blocking listening socket with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn new(socket: Socket) -> io::Result<Self> {
        register(Arc::new(socket)).map(Self)
    }

    /// Accepts a connection. Its socket is non-blocking and not registered.
    ///
    /// # Errors
    /// If the client has disconnected, or the system has run out of descriptors or memory.
    pub async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let (socket, from) = self.0.async_io(Interest::READABLE, |listener| listener.accept4(flags)).await?;
        let from = from.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        Ok((socket, from))
    }
}

fn register(socket: Arc<Socket>) -> io::Result<AsyncFd<Arc<Socket>>> {
    // SAFETY: a socket has one descriptor, which stays open and the same while the socket lives; and no other socket can be
    // put into the Arc.
    unsafe { AsyncFd::register(socket) }.map_err(Into::into)
}
