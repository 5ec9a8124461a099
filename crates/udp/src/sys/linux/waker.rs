//! Waking a thread that waits for its sockets.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// A pair of connected sockets: [`wake`](Self::wake) writes to one, which makes the other readable. Any number of calls
/// wakes the thread once.
#[derive(Debug)]
pub(crate) struct Waker {
    sender: UnixStream,
    receiver: UnixStream,
    is_pending: AtomicBool,
}

impl Waker {
    pub fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver, is_pending: AtomicBool::new(false) })
    }

    /// Wakes the thread. What it should find has to be in place before this call.
    pub fn wake(&self) {
        if !self.is_pending.swap(true, SeqCst) {
            // The pipe cannot be full: it holds one byte at most.
            let _ = (&self.sender).write(&[0]);
        }
    }

    /// Resets the waker, on the thread that was woken. Only after this may the thread check for work: then nothing is missed.
    pub fn clear(&self) {
        let _ = (&self.receiver).read(&mut [0; 8]);
        self.is_pending.store(false, SeqCst);
    }

    /// The socket that becomes readable.
    pub fn receiver(&self) -> &UnixStream {
        &self.receiver
    }
}
