//! Keeps cores from halting while a latency is measured.

use crate::process::{cores, pin_this_thread, set_idle_priority};
use std::{
    hint, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
};

/// Runs an idle loop at the lowest priority on each core, until it is dropped.
///
/// An idle core halts, and the host of a virtual machine may take milliseconds to resume it. That latency is a property of
/// the host, not of the measured program.
#[derive(Debug)]
pub struct BusyCores {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    /// Note for the readers of a table.
    pub const NOTE: &str = "A thread of the lowest priority keeps each core from halting, because the host of a virtual \
                            machine may take milliseconds to resume a halted core.";

    /// Starts a loop on the server's core and on each core that the calling thread may use.
    ///
    /// # Errors
    ///
    /// If there is no such core, or no `taskset` or `chrt` (of util-linux).
    pub fn start(server: usize) -> io::Result<Self> {
        let mut busy = Self { is_over: Arc::default(), threads: Vec::new() };
        for core in cores().into_iter().filter(|core| *core != server).chain([server]) {
            let (is_over, (ready, is_ready)) = (busy.is_over.clone(), mpsc::channel());
            busy.threads.push(thread::spawn(move || {
                let result = pin_this_thread(core).and_then(|()| set_idle_priority());
                let is_ready_to_spin = result.is_ok();
                // The caller waits for the result.
                let _ = ready.send(result);
                while is_ready_to_spin && !is_over.load(Relaxed) {
                    hint::spin_loop();
                }
            }));
            is_ready.recv().map_err(io::Error::other)??;
        }
        Ok(busy)
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has already been printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_its_owner_and_needs_an_existing_core() {
        drop(BusyCores::start(cores()[0]).unwrap());
        assert!(BusyCores::start(100_000).is_err());
    }
}
