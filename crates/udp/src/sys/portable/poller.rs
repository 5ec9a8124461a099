//! Waiting for several sockets.

use crate::UdpSocket;
use polling::{Event, Events, PollMode};
use rallypoint_machine::SocketIndex;
use std::{fmt, io, sync::Arc, time::Duration};

/// Waits until one of several sockets is ready, and then reports which.
pub struct Poller {
    poller: Arc<polling::Poller>,
    sockets: Vec<Watched>,
    events: Events,
}

/// A socket that is waited for.
struct Watched {
    socket: Arc<UdpSocket>,
    is_writable_wanted: bool,
    is_readable: bool,
}

/// Ends a wait of a [`Poller`].
pub(crate) struct Waker(Arc<polling::Poller>);

impl Poller {
    /// Prepares to wait until one of the sockets is readable.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(sockets: &[Arc<UdpSocket>]) -> io::Result<Self> {
        let mut poller = Self { poller: Arc::new(polling::Poller::new()?), sockets: Vec::new(), events: Events::new() };
        for (index, socket) in sockets.iter().enumerate() {
            // SAFETY: the poller's clones are only notified. The socket stays open in `Watched`, and is removed from the
            // poller when this is dropped, before it is closed.
            unsafe {
                poller.poller.add_with_mode(&**socket.socket(), Event::readable(index), PollMode::Level)?;
            }
            let socket = socket.clone();
            poller.sockets.push(Watched { socket, is_writable_wanted: false, is_readable: false });
        }
        Ok(poller)
    }

    /// Like [`new`](Self::new), with a waker for other threads.
    pub(crate) fn with_waker(sockets: &[Arc<UdpSocket>]) -> io::Result<(Self, Arc<Waker>)> {
        let poller = Self::new(sockets)?;
        let waker = Arc::new(Waker(poller.poller.clone()));
        Ok((poller, waker))
    }

    /// Waits until a socket is ready, the waker is called, or the timeout has passed; without a timeout, indefinitely. A signal
    /// may end the wait early.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        self.sockets.iter_mut().for_each(|watched| watched.is_readable = false);
        match self.poller.wait(&mut self.events, timeout) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for event in self.events.iter() {
            if let Some(watched) = self.sockets.get_mut(event.key) {
                watched.is_readable = event.readable || event.is_err() == Some(true);
            }
        }
        Ok(())
    }

    /// Sets whether to wait until the socket is writable, too.
    pub fn set_writable_interest(&mut self, socket: SocketIndex, is_wanted: bool) {
        let watched = &mut self.sockets[socket.0];
        if watched.is_writable_wanted != is_wanted {
            let interest = Event::new(socket.0, true, is_wanted);
            // If the system has no memory for it, the old interest stays, and the next call tries again.
            if self.poller.modify_with_mode(&**watched.socket.socket(), interest, PollMode::Level).is_ok() {
                watched.is_writable_wanted = is_wanted;
            }
        }
    }

    /// Whether there was something to read at the end of the last wait, or an error to take.
    #[must_use]
    pub fn is_readable(&self, socket: SocketIndex) -> bool {
        self.sockets[socket.0].is_readable
    }

    /// Whether there was an error to take at the end of the last wait: never, as no socket has an error queue.
    #[must_use]
    pub fn has_error(&self, _socket: SocketIndex) -> bool {
        false
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        for watched in &self.sockets {
            let _ = self.poller.delete(&**watched.socket.socket());
        }
    }
}

impl Waker {
    /// Ends the wait of the thread. What it should find has to be in place before this call.
    pub fn wake(&self) {
        let _ = self.0.notify();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}
