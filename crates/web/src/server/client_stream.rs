//! A TCP connection that fails when the client stops receiving, and that reports its progress.

use super::Connection;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

/// A TCP connection whose writes fail after a time without progress.
#[derive(Debug)]
pub(super) struct ClientStream {
    tcp: TcpStream,
    connection: Arc<Connection>,
    timeout: Duration,
    /// The deadline of the pending write; `None` while no write is pending.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl ClientStream {
    pub fn new(tcp: TcpStream, timeout: Duration, connection: Arc<Connection>) -> Self {
        Self { tcp, connection, timeout, deadline: None }
    }

    /// Passes on the result of a write, or fails if it has been pending for too long.
    fn check_deadline<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.deadline = None;
            self.connection.record_progress(std::time::Instant::now());
            return result;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + timeout)));
        ready!(deadline.as_mut().poll(context));
        self.reset_on_close();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Closes with a reset: otherwise the system would keep what was not received, and go on to send it.
    fn reset_on_close(&self) {
        let _ = socket2::SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if self.connection.is_evicted() {
            self.reset_on_close();
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(context, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write(context, bytes);
        self.check_deadline(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write_vectored(context, slices);
        self.check_deadline(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.tcp).poll_flush(context);
        if result.is_ready() {
            self.connection.flushed();
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}
