//! Waiting for several file descriptors.

use std::{io, os::fd::AsRawFd, ptr, time::Duration};

/// A file descriptor to wait for, and after [`poll`] what it is ready for.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollFd(libc::pollfd);

impl PollFd {
    /// Waits until the descriptor is readable. The descriptor has to stay open while this is used: otherwise [`poll`] waits
    /// for another file, or for nothing.
    pub fn readable(fd: &impl AsRawFd) -> Self {
        Self(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
    }

    /// An entry that [`poll`] ignores.
    pub fn ignored() -> Self {
        Self(libc::pollfd { fd: -1, events: 0, revents: 0 })
    }

    /// Sets whether to wait until the descriptor is writable, too.
    pub fn set_writable_interest(&mut self, is_wanted: bool) {
        self.0.events = if is_wanted { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    }

    /// Whether there is something to read, or an error to take.
    pub fn is_readable(&self) -> bool {
        self.0.revents & !libc::POLLOUT != 0
    }

    /// Whether there is an error to take.
    pub fn has_error(&self) -> bool {
        self.0.revents & libc::POLLERR != 0
    }
}

/// Waits until one of the descriptors is ready, or the timeout has passed; without a timeout, indefinitely. A signal may end
/// the wait early.
///
/// # Errors
/// If the system has no memory for it.
pub fn poll(fds: &mut [PollFd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    fds.iter_mut().for_each(|fd| fd.0.revents = 0);
    // SAFETY: `PollFd` is a transparent pollfd, so this is an array of as many as the slice has; the timeout is null or
    // lives until after the call; without a signal mask none is read.
    let result = unsafe { libc::ppoll(fds.as_mut_ptr().cast(), fds.len() as libc::nfds_t, timeout, ptr::null()) };
    match result {
        -1 => Err(io::Error::last_os_error()).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }),
        _ => Ok(()),
    }
}
