//! Cores that do not go to sleep while a latency is measured.

use crate::process::{cores, pin_this_thread, yield_to_all};
use std::{
    hint, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
};

/// Keeps cores busy with nothing, at the lowest priority there is, until it is dropped.
///
/// A core with nothing to do halts, and a halted core of a virtual machine comes back when its host finds the time for it:
/// often after milliseconds. That is the host's latency, and not that of what is measured.
#[derive(Debug)]
pub struct Awake {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// For the readers of a table.
    pub const NOTE: &str = "A thread of the lowest priority keeps each core from halting, because the host of a virtual \
                            machine wakes it up again as late as it likes.";

    /// A server's core, and those that the calling thread may use.
    ///
    /// # Errors
    ///
    /// If there is no such core, or no `taskset` or `chrt` (of util-linux).
    pub fn keep(server: usize) -> io::Result<Self> {
        let mut awake = Self { is_over: Arc::default(), threads: Vec::new() };
        for core in cores().into_iter().filter(|core| *core != server).chain([server]) {
            let (is_over, (ready, is_ready)) = (awake.is_over.clone(), mpsc::channel());
            awake.threads.push(thread::spawn(move || {
                let result = pin_this_thread(core).and_then(|()| yield_to_all());
                let is_fine = result.is_ok();
                // Somebody waits for it.
                let _ = ready.send(result);
                while is_fine && !is_over.load(Relaxed) {
                    hint::spin_loop();
                }
            }));
            is_ready.recv().map_err(io::Error::other)??;
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of it has been told.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_its_owner_and_needs_a_core() {
        drop(Awake::keep(cores()[0]).unwrap());
        assert!(Awake::keep(100_000).is_err());
    }
}
