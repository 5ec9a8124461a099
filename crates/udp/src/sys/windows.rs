//! Windows: what differs from other systems.
#![allow(unsafe_code)]

use socket2::Socket;
use std::{io, os::windows::io::AsRawSocket, ptr};
use windows_sys::Win32::{
    Foundation::{ERROR_NOT_ENOUGH_MEMORY, ERROR_TOO_MANY_OPEN_FILES},
    Networking::WinSock::{
        SIO_UDP_CONNRESET, SO_EXCLUSIVEADDRUSE, SOL_SOCKET, WSAEAFNOSUPPORT, WSAEMFILE, WSAENOBUFS, WSAIoctl,
        setsockopt,
    },
};

/// Flags for sending on a connection: there are no signals.
pub const SEND_FLAGS: i32 = 0;

/// Prepares a new TCP socket for listening: connections that a previous process left in TIME_WAIT do not keep this one from
/// binding the port, and no other program can bind it, too.
///
/// # Errors
/// If the system does not support it.
pub fn prepare_listener(socket: &Socket) -> io::Result<()> {
    forbid_sharing(socket)
}

/// Makes the address that the socket will be bound to its own: Windows otherwise lets another program that asks for it
/// (SO_REUSEADDR) bind the same one and take what arrives.
pub(crate) fn forbid_sharing(socket: &Socket) -> io::Result<()> {
    let is_exclusive: u32 = 1;
    // SAFETY: the value is a BOOL, whose address and size are given; it lives until after the call.
    let result = unsafe {
        setsockopt(
            socket.as_raw_socket() as usize,
            SOL_SOCKET,
            SO_EXCLUSIVEADDRUSE,
            ptr::from_ref(&is_exclusive).cast(),
            size_of_val(&is_exclusive) as i32,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Prepares a new UDP socket: when a peer has refused a datagram, receiving must not fail with the error that a connection was
/// reset (10054). Such a report is about one peer, and a socket here has many.
pub(crate) fn ignore_refusals(socket: &Socket) -> io::Result<()> {
    let is_reported: u32 = 0;
    let mut written = 0;
    // SAFETY: the input is a BOOL, whose address and size are given; there is no output buffer; the pointers live until after
    // the call, which is not overlapped.
    let result = unsafe {
        WSAIoctl(
            socket.as_raw_socket() as usize,
            SIO_UDP_CONNRESET,
            ptr::from_ref(&is_reported).cast(),
            size_of_val(&is_reported) as u32,
            ptr::null_mut(),
            0,
            &raw mut written,
            ptr::null_mut(),
            None,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Settings of the allocator: none on Windows.
pub fn bound_free_memory() {}

/// Returns free memory to the system: the allocator of Windows does that itself.
pub fn release_free_memory() {}

/// Whether writing to a connection that its peer has closed returns an error instead of ending the process.
#[must_use]
pub fn is_sigpipe_ignored() -> bool {
    true
}

/// Whether this process or the system has too many open files or sockets.
#[must_use]
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(code) if code == WSAEMFILE || code == ERROR_TOO_MANY_OPEN_FILES as i32)
}

/// Whether the system has run out of descriptors or memory, as opposed to a fault of a connection or a file.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    is_too_many_open_files(error)
        || matches!(error.raw_os_error(), Some(code) if code == WSAENOBUFS || code == ERROR_NOT_ENOUGH_MEMORY as i32)
}

/// Whether this machine does not have the address family.
#[must_use]
pub fn is_family_not_supported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(WSAEAFNOSUPPORT)
}
