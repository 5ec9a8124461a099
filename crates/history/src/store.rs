//! The thread that writes the history.

mod quarantine;
#[cfg(test)]
mod tests;

use crate::{
    HistoryError, HistoryOptions, HistoryReader, Observation, export,
    recorder::Recorder,
    row_batch::RowBatch,
    stats::SharedStats,
    write::{LoadedState, Writer},
};
use std::{
    collections::VecDeque,
    fs, io,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

/// Maximum number of observations that wait for the thread. At one per minute, it has been busy for that many minutes.
const QUEUE: usize = 4;

/// Maximum number of batches that wait for disk space or for a lock. With 10,000 servers each has some 200 kB.
const PENDING: usize = 30;

/// A history that is being recorded. When it is dropped or [`finish`](Self::finish)ed, the queue is written.
///
/// Problems with the file are not reported as errors: they are logged once, recording continues in memory for half an hour,
/// and the file is tried again every minute. A damaged file is moved aside.
#[derive(Debug)]
pub struct History {
    handle: HistoryReader,
    shared: Arc<SharedStats>,
    /// `None` while the thread is shutting down.
    queue: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Command {
    Record(Observation),
    Flush(SyncSender<()>),
}

impl History {
    /// Starts the thread, which opens the file. An unusable file is not an error.
    pub fn start(options: HistoryOptions) -> io::Result<Self> {
        let shared = Arc::<SharedStats>::default();
        let handle = HistoryReader::new(options.path.clone(), shared.clone(), options.readers, options.busy_timeout);
        let (queue, commands) = sync_channel(QUEUE);
        let writer_thread = WriterThread::new(options, shared.clone());
        let thread = thread::Builder::new().name("history".into()).spawn(move || writer_thread.run(&commands))?;
        Ok(Self { handle, shared, queue: Some(queue), thread: Some(thread) })
    }

    /// Records an observation, once a minute. It never blocks: if the thread is too far behind, the observation is dropped
    /// and counted.
    pub fn record(&self, observation: Observation) {
        let Some(queue) = &self.queue else { return };
        match queue.try_send(Command::Record(observation)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.dropped.fetch_add(1, Relaxed);
            }
        }
    }

    /// Waits until everything recorded so far has been written or has failed to be.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(Command::Flush(done)).is_ok());
        if sent {
            let _ = wait.recv();
        }
    }

    /// A reader of this history.
    #[must_use]
    pub fn reader(&self) -> HistoryReader {
        self.handle.clone()
    }

    /// Writes the queue, stops the thread and waits for it. This is what dropping the value does; the method makes it
    /// explicit.
    pub fn finish(self) {}
}

impl Drop for History {
    fn drop(&mut self) {
        self.queue = None;
        self.handle.close_idle();
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the history thread panicked; this is a bug");
        }
    }
}

/// The state of the thread.
#[derive(Debug)]
struct WriterThread {
    options: HistoryOptions,
    shared: Arc<SharedStats>,
    writer: Option<Writer>,
    /// `None` until the file has been read, and after data was lost, so that it has to be read again.
    recorder: Option<Recorder>,
    pending: VecDeque<RowBatch>,
    /// Whether a problem with the file has been logged.
    is_failing: bool,
    /// Whether the wall clock is behind the last recorded minute.
    is_behind: bool,
}

impl WriterThread {
    fn new(options: HistoryOptions, shared: Arc<SharedStats>) -> Self {
        Self {
            options,
            shared,
            writer: None,
            recorder: None,
            pending: VecDeque::new(),
            is_failing: false,
            is_behind: false,
        }
    }

    fn run(mut self, commands: &Receiver<Command>) {
        if let Err(error) = self.open() {
            self.handle_error(&error);
        }
        for command in commands {
            match command {
                Command::Record(observation) => self.handle_observation(&observation),
                // Dropping the sender wakes the caller of `flush`.
                Command::Flush(done) => drop(done),
            }
        }
        self.writer.iter().for_each(Writer::checkpoint);
    }

    fn handle_observation(&mut self, observation: &Observation) {
        let began = Instant::now();
        if self.shared.is_damaged() {
            self.handle_error(&HistoryError::Damaged("found by a reader".into()));
        }
        let opened = self.open();
        match &mut self.recorder {
            Some(recorder) => match recorder.handle_observation(observation) {
                Some(batch) => self.handle_batch(batch),
                None => self.handle_past_minute(observation),
            },
            None => self.count_dropped(1),
        }
        match opened.and_then(|()| self.write()) {
            Ok(()) => self.handle_success(),
            Err(error) => self.handle_error(&error),
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.write_micros.store(micros, Relaxed);
        self.update_stats();
    }

    fn handle_batch(&mut self, batch: RowBatch) {
        self.is_behind = false;
        if let Some(time) = batch.wrong_after {
            let after = export::rfc3339(time);
            tracing::warn!(%after, "the clock was wrong: everything recorded after this time is deleted");
        }
        self.pending.push_back(batch);
    }

    /// Handles an observation whose minute, or a later one, has already been recorded.
    fn handle_past_minute(&mut self, observation: &Observation) {
        self.count_dropped(1);
        let ahead = self.recorder.as_ref().map_or(0, Recorder::last) - observation.time;
        // Small corrections of the clock are normal.
        let was_behind = std::mem::replace(&mut self.is_behind, ahead > 120);
        if self.is_behind && !was_behind {
            tracing::warn!(
                seconds = ahead,
                "the clock was set back: recording resumes after this number of seconds at the latest"
            );
        }
    }

    /// Opens the file and reads the state of the recorder, unless that has been done.
    fn open(&mut self) -> Result<(), HistoryError> {
        if self.writer.is_none() {
            self.writer = Some(Writer::open(&self.options)?);
        }
        if let (Some(writer), None) = (&self.writer, &self.recorder) {
            let LoadedState { known, next_key, clock } = writer.load()?;
            let HistoryOptions { limits, retention, .. } = &self.options;
            self.recorder = Some(Recorder::new(*limits, retention.days, known, next_key, clock));
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), HistoryError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        while let Some(batch) = self.pending.front() {
            if writer.apply(batch)? {
                self.shared.revision.fetch_add(1, Relaxed);
            }
            self.shared.last.store(batch.time, Relaxed);
            self.shared.written.fetch_add(1, Relaxed);
            self.pending.pop_front();
        }
        Ok(())
    }

    fn handle_success(&mut self) {
        self.shared.is_writing.store(!self.is_behind, Relaxed);
        if std::mem::take(&mut self.is_failing) {
            let dropped = self.shared.dropped.load(Relaxed);
            tracing::info!(dropped, "recording of the history has resumed");
        }
    }

    fn handle_error(&mut self, error: &HistoryError) {
        self.shared.is_writing.store(false, Relaxed);
        let is_new = !std::mem::replace(&mut self.is_failing, true);
        if is_new {
            tracing::warn!(%error, "cannot write the history; retrying every minute");
        }
        match error {
            HistoryError::Damaged(_) => {
                self.start_over();
                quarantine::set_aside(&self.options.path, is_new);
                self.shared.increment_file();
            }
            // The connection is still usable.
            HistoryError::Full | HistoryError::Locked => {}
            _ => self.writer = None,
        }
        if self.pending.len() > PENDING {
            self.start_over();
        }
    }

    /// Drops the pending batches. The recorder has counted on them, so it has to read the file again.
    fn start_over(&mut self) {
        self.count_dropped(self.pending.len());
        self.pending.clear();
        self.recorder = None;
        self.writer = None;
    }

    fn count_dropped(&self, count: usize) {
        self.shared.dropped.fetch_add(count as u64, Relaxed);
    }

    fn update_stats(&self) {
        self.shared.pending.store(self.pending.len() as u64, Relaxed);
        let servers = self.recorder.as_ref().map_or(0, Recorder::servers);
        self.shared.servers.store(servers as u64, Relaxed);
        self.shared.bytes.store(fs::metadata(&self.options.path).map_or(0, |file| file.len()), Relaxed);
    }
}
