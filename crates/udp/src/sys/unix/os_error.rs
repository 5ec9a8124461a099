//! Errors of the system that have no [`io::ErrorKind`].

use std::io;

/// Whether this process or the system has too many open files or sockets.
#[must_use]
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether the system has run out of descriptors or memory, as opposed to a fault of a connection or a file.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    is_too_many_open_files(error) || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

/// Whether this machine does not have the address family.
#[must_use]
pub fn is_family_not_supported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}
