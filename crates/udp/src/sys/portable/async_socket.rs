//! Readiness of sockets on a tokio runtime.
//!
//! The runtime's sockets are second handles of those that are used: their readiness is the same.

use crate::UdpSocket;
use socket2::Socket;
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpStream},
};

/// A non-blocking socket that is registered with a tokio runtime, which reports when it is ready.
#[derive(Debug)]
pub struct AsyncSocket(Registered);

#[derive(Debug)]
enum Registered {
    Udp(tokio::net::UdpSocket),
    Tcp(TcpStream),
}

impl AsyncSocket {
    /// Registers a UDP socket with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn udp(socket: &UdpSocket) -> io::Result<Self> {
        let socket = tokio::net::UdpSocket::from_std(socket.socket().try_clone()?.into())?;
        Ok(Self(Registered::Udp(socket)))
    }

    /// Registers a TCP connection with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn tcp(socket: &Arc<Socket>) -> io::Result<Self> {
        let socket = TcpStream::from_std(socket.try_clone()?.into())?;
        Ok(Self(Registered::Tcp(socket)))
    }

    /// Waits until the socket may be ready for one of the interests.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub async fn ready(&self, interest: Interest) -> io::Result<()> {
        match &self.0 {
            Registered::Udp(socket) => socket.ready(interest).await.map(drop),
            Registered::Tcp(socket) => socket.ready(interest).await.map(drop),
        }
    }

    /// Calls a function that uses the socket, if the socket may be ready. If the function returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), the socket counts as not ready until the system reports that it is.
    ///
    /// # Errors
    /// The function's, or `WouldBlock` if the socket is not ready.
    pub fn try_io<R>(&self, interest: Interest, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match &self.0 {
            Registered::Udp(socket) => socket.try_io(interest, f),
            Registered::Tcp(socket) => socket.try_io(interest, f),
        }
    }

    /// Waits until the socket may be readable, and resets that: what arrives later sets it again. The caller then has to read
    /// until nothing is left.
    pub fn poll_take_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &self.0 {
            Registered::Udp(socket) => socket.poll_recv_ready(context),
            Registered::Tcp(socket) => socket.poll_read_ready(context),
        })?;
        self.reset(Interest::READABLE);
        Poll::Ready(Ok(()))
    }

    /// Waits until the socket may be writable, and resets that. The caller then has to write until the socket is full.
    pub fn poll_take_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &self.0 {
            Registered::Udp(socket) => socket.poll_send_ready(context),
            Registered::Tcp(socket) => socket.poll_write_ready(context),
        })?;
        self.reset(Interest::WRITABLE);
        Poll::Ready(Ok(()))
    }

    fn reset(&self, interest: Interest) {
        let _ = self.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
}

/// A listening TCP socket that is registered with a tokio runtime.
#[derive(Debug)]
pub struct AsyncListener(TcpListener);

impl AsyncListener {
    /// Registers a non-blocking listening socket with the current runtime.
    ///
    /// # Errors
    /// If the runtime cannot register it.
    ///
    /// # Panics
    /// Outside a runtime, or in one without its I/O driver.
    pub fn new(socket: Socket) -> io::Result<Self> {
        TcpListener::from_std(socket.into()).map(Self)
    }

    /// Accepts a connection. Its socket is non-blocking and not registered.
    ///
    /// # Errors
    /// If the client has disconnected, or the system has run out of descriptors or memory.
    pub async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let (socket, from) = self.0.accept().await?;
        let socket = Socket::from(socket.into_std()?);
        // socket2 sets this for the connections that it accepts itself.
        #[cfg(target_vendor = "apple")]
        socket.set_nosigpipe(true)?;
        Ok((socket, from))
    }
}
