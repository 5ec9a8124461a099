//! Readiness of sockets on a tokio runtime.

use crate::UdpSocket;
use socket2::Socket;
use std::{io, sync::Arc};
use tokio::io::unix::AsyncFd;

/// Registers a socket with the current runtime, which then reports when it is ready.
///
/// # Errors
/// If the runtime cannot register it.
///
/// # Panics
/// Outside a runtime, or in one without its I/O driver.
pub fn register_socket(socket: Arc<Socket>) -> io::Result<AsyncFd<Arc<Socket>>> {
    // SAFETY: a socket has one descriptor, which stays open and the same while the socket lives; and no other socket can be
    // put into the Arc.
    unsafe { AsyncFd::register(socket) }.map_err(Into::into)
}

/// Registers a [`UdpSocket`] with the current runtime, which then reports when it is ready.
///
/// # Errors
/// If the runtime cannot register it.
///
/// # Panics
/// Outside a runtime, or in one without its I/O driver.
pub fn register_udp(socket: Arc<UdpSocket>) -> io::Result<AsyncFd<Arc<UdpSocket>>> {
    // SAFETY: as above: it owns one socket, which cannot be exchanged.
    unsafe { AsyncFd::register(socket) }.map_err(Into::into)
}
