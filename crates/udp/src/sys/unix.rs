//! Calls that all Unix-like systems have in common.
#![allow(unsafe_code)]

mod allocator;
mod os_error;
mod sigpipe;

pub use allocator::{bound_free_memory, release_free_memory};
pub use os_error::{is_family_not_supported, is_shortage, is_too_many_open_files};
pub use sigpipe::is_sigpipe_ignored;

use socket2::Socket;
use std::io;

/// Prepares a new TCP socket for listening: connections that a previous process left in TIME_WAIT do not keep this one from
/// binding the port, and no other program can bind it, too.
///
/// # Errors
/// If the system does not support it.
pub fn prepare_listener(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// Flags for sending on a connection: a peer that has closed it causes an error, not a signal. On Apple's systems this is an
/// option of the socket, which socket2 sets.
#[cfg(not(target_vendor = "apple"))]
pub const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;
#[cfg(target_vendor = "apple")]
#[allow(missing_docs, reason = "as above")]
pub const SEND_FLAGS: i32 = 0;
