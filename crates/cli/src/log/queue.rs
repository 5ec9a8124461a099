//! Log lines on their way to standard error, which a thread of their own writes: a reader that does not read blocks that thread,
//! and nothing that serves.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};
use tracing::warn;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of lines that wait to be written.
const MAX_LINES: usize = 4_096;

/// How long the end of the program waits for the remaining lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the end of the program waits before it looks for room in a full queue again.
const FLUSH_RETRY: Duration = Duration::from_millis(2);

enum Entry {
    Line(Vec<u8>),
    /// The sender waits until everything before has been written.
    Flush(SyncSender<()>),
}

/// The sending end of the queue. Cheap to clone.
#[derive(Clone)]
pub struct LogQueue {
    entries: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

impl LogQueue {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// If the system gives no further thread.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (entries, receiver) = sync_channel(MAX_LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let queue = Self { entries, dropped: Arc::clone(&dropped) };
        thread::Builder::new().name("log".into()).spawn(move || write_entries(&receiver, &dropped, out))?;
        Ok(queue)
    }

    /// Waits until all lines are written, unless that takes too long.
    pub fn flush(&self) {
        let end = Instant::now() + FLUSH_TIMEOUT;
        let (sender, receiver) = sync_channel(1);
        let mut request = Entry::Flush(sender);
        // A full queue has no room for the request yet, and its lines have to be written, too.
        while let Err(TrySendError::Full(refused)) = self.entries.try_send(request) {
            if Instant::now() > end {
                return;
            }
            request = refused;
            thread::sleep(FLUSH_RETRY);
        }
        let _ = receiver.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

impl Write for LogQueue {
    /// Appends a line, or counts it as dropped if the queue is full.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn write_entries(entries: &Receiver<Entry>, dropped: &AtomicU64, mut out: impl Write) {
    loop {
        let entry = match entries.try_recv() {
            Ok(entry) => entry,
            Err(TryRecvError::Disconnected) => return,
            // The reader has caught up, so there is room for the line that says what it has missed.
            Err(TryRecvError::Empty) => {
                match dropped.swap(0, Relaxed) {
                    0 => {}
                    lines => warn!(lines, "log lines were dropped because standard error was not read"),
                }
                match entries.recv() {
                    Ok(entry) => entry,
                    Err(_) => return,
                }
            }
        };
        match entry {
            // A log that cannot be written is no reason to stop.
            Entry::Line(line) => drop(out.write_all(&line)),
            Entry::Flush(sender) => drop(sender.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Forwards what is written, and waits for a permit before each line.
    struct Gate(std::sync::mpsc::Sender<Vec<u8>>, Receiver<()>);

    impl Write for Gate {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.1.recv();
            let _ = self.0.send(line.to_vec());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_queue_drops_lines_and_counts_them() {
        let (lines, written) = channel();
        let (permits, gate) = channel();
        let mut queue = LogQueue::start(Gate(lines, gate)).unwrap();
        // One line more than the queue holds may be on its way to the reader.
        for n in 0..MAX_LINES + 11 {
            queue.write_all(n.to_string().as_bytes()).unwrap();
        }
        let dropped = queue.dropped.load(Relaxed);
        assert!((10..=11).contains(&dropped), "{dropped}");
        drop(permits);
        queue.flush();
        assert_eq!(written.try_iter().count(), MAX_LINES + 11 - dropped as usize);
    }
}
