//! Waking a thread that waits for its sockets.

use crate::sys::Watch;
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// The two ends of a wire: [`wake`](Self::wake) at one end makes the other readable. However often it is called, the thread
/// wakes once.
#[derive(Debug)]
pub(crate) struct Waker {
    near: UnixStream,
    far: UnixStream,
    pending: AtomicBool,
}

impl Waker {
    pub fn new() -> io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok(Self { near, far, pending: AtomicBool::new(false) })
    }

    /// Wakes the thread. What it is to see has to be there before.
    pub fn wake(&self) {
        if !self.pending.swap(true, SeqCst) {
            // It cannot be full: there is one byte in it at most.
            let _ = (&self.near).write(&[0]);
        }
    }

    /// The thread is awake. Only after this may it look at what there is: then nothing is missed.
    pub fn clear(&self) {
        let _ = (&self.far).read(&mut [0; 8]);
        self.pending.store(false, SeqCst);
    }

    pub fn watch(&self) -> Watch {
        Watch::new(&self.far)
    }
}
