//! Waiting for several sockets.

use super::Waker;
use crate::UdpSocket;
use rallypoint_machine::SocketIndex;
use std::{io, os::fd::AsRawFd, ptr, sync::Arc, time::Duration};

/// Waits until one of several sockets is ready, and then reports which.
pub struct Poller {
    /// One per socket, then the waker's if there is one.
    fds: Vec<libc::pollfd>,
    /// Keeps the descriptors open: otherwise another file would be waited for.
    _sockets: Vec<Arc<UdpSocket>>,
    waker: Option<Arc<Waker>>,
}

impl Poller {
    /// Prepares to wait until one of the sockets is readable.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(sockets: &[Arc<UdpSocket>]) -> io::Result<Self> {
        let fds = sockets.iter().map(|socket| readable(socket.socket())).collect();
        Ok(Self { fds, _sockets: sockets.to_vec(), waker: None })
    }

    /// Like [`new`](Self::new), with a waker for other threads.
    pub(crate) fn with_waker(sockets: &[Arc<UdpSocket>]) -> io::Result<(Self, Arc<Waker>)> {
        let waker = Arc::new(Waker::new()?);
        let mut poller = Self::new(sockets)?;
        poller.fds.push(readable(waker.receiver()));
        poller.waker = Some(waker.clone());
        Ok((poller, waker))
    }

    /// Waits until a socket is ready, the waker is called, or the timeout has passed; without a timeout, indefinitely. A signal
    /// may end the wait early.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i32::MAX.into()),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        self.fds.iter_mut().for_each(|fd| fd.revents = 0);
        let count = self.fds.len() as libc::nfds_t;
        // SAFETY: the pointer and the count are those of one vector; the timeout is null or lives until after the call;
        // without a signal mask none is read.
        let result = unsafe { libc::ppoll(self.fds.as_mut_ptr(), count, timeout, ptr::null()) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        if let (Some(waker), Some(fd)) = (&self.waker, self.fds.last())
            && fd.revents != 0
        {
            // Before the thread checks for work, so that nothing is missed.
            waker.clear();
        }
        Ok(())
    }

    /// Sets whether to wait until the socket is writable, too.
    pub fn set_writable_interest(&mut self, socket: SocketIndex, is_wanted: bool) {
        self.fds[socket.0].events = if is_wanted { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    }

    /// Whether there was something to read at the end of the last wait, or an error to take.
    #[must_use]
    pub fn is_readable(&self, socket: SocketIndex) -> bool {
        self.fds[socket.0].revents & !libc::POLLOUT != 0
    }

    /// Whether there was an error to take at the end of the last wait.
    #[must_use]
    pub fn has_error(&self, socket: SocketIndex) -> bool {
        self.fds[socket.0].revents & libc::POLLERR != 0
    }
}

fn readable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}
