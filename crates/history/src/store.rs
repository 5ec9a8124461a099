//! The thread that writes.

mod aside;
#[cfg(test)]
mod tests;

use crate::{
    Handle, HistoryError, Options, Sweep,
    batch::Batch,
    export,
    recorder::Recorder,
    stats::Shared,
    write::{Loaded, Writer},
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

/// Sweeps that may wait for the thread; at one a minute, it has been busy for that many minutes.
const QUEUE: usize = 4;

/// Batches that may wait for room on the disk, or for a lock to go away. At 10,000 servers each has some 200 kB.
const PENDING: usize = 30;

/// History that is being written. When this is dropped, or [`finish`](Self::finish)ed, what is in the queue is written.
///
/// Trouble with the file is never an error here: it is told once in the log, recording goes on in memory for half an hour,
/// and every minute the file is tried again. A damaged file is set aside.
///
/// ```
/// use rallypoint_history::{History, Options, Resolution, Subject, Sweep};
/// use rallypoint_lobby_proto::{Config, Registry, HashKeys};
/// use std::time::Instant;
///
/// # let folder = std::env::temp_dir().join(format!("rallypoint-history-example-{}", std::process::id()));
/// let registry = Registry::new(Config::default(), HashKeys::default(), Instant::now())?;
/// let history = History::start(Options::new(folder.join("history.db")))?;
/// history.record(Sweep { time: 1_800_000_000, listed: registry.lists().snapshot(), moves: Vec::new() });
/// history.flush();
///
/// let handle = history.handle();
/// let series = handle.series(&Subject::Total, 1_800_000_000..1_800_000_060, Resolution::Minute)?;
/// assert_eq!(series.points[0].up_share(), Some(1.0));
/// # drop(history);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct History {
    handle: Handle,
    shared: Arc<Shared>,
    /// Gone when the end has begun.
    queue: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Order {
    Record(Sweep),
    Flush(SyncSender<()>),
}

impl History {
    /// Starts the thread. The file is opened by it, and may well not be usable.
    pub fn start(options: Options) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let handle = Handle::new(options.path.clone(), shared.clone(), options.readers, options.patience);
        let (queue, orders) = sync_channel(QUEUE);
        let keeper = Keeper::new(options, shared.clone());
        let thread = thread::Builder::new().name("history".into()).spawn(move || keeper.run(&orders))?;
        Ok(Self { handle, shared, queue: Some(queue), thread: Some(thread) })
    }

    /// Has a sweep recorded, one a minute. This never waits: if the thread is too far behind, the sweep is dropped and
    /// counted.
    pub fn record(&self, sweep: Sweep) {
        let Some(queue) = &self.queue else { return };
        match queue.try_send(Order::Record(sweep)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.dropped.fetch_add(1, Relaxed);
            }
        }
    }

    /// Waits until everything that was recorded so far is written, or has failed to be.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(Order::Flush(done)).is_ok());
        if sent {
            let _ = wait.recv();
        }
    }

    /// For reading.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Writes what is in the queue, and ends the thread.
    pub fn finish(self) {}
}

impl Drop for History {
    fn drop(&mut self) {
        self.queue = None;
        self.handle.close_idle();
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the part that writes the history has failed; this is a fault of the program");
        }
    }
}

/// What the thread has.
#[derive(Debug)]
struct Keeper {
    options: Options,
    shared: Arc<Shared>,
    writer: Option<Writer>,
    /// Not there until the file could be read once, and after so much was lost that it has to be read again.
    recorder: Option<Recorder>,
    pending: VecDeque<Batch>,
    /// Something is wrong with the file, and that was told.
    is_in_trouble: bool,
    /// The clock says a time that the history has gone beyond.
    is_behind: bool,
}

impl Keeper {
    fn new(options: Options, shared: Arc<Shared>) -> Self {
        Self {
            options,
            shared,
            writer: None,
            recorder: None,
            pending: VecDeque::new(),
            is_in_trouble: false,
            is_behind: false,
        }
    }

    fn run(mut self, orders: &Receiver<Order>) {
        if let Err(error) = self.open() {
            self.handle_trouble(&error);
        }
        for order in orders {
            match order {
                Order::Record(sweep) => self.handle_sweep(&sweep),
                // Whoever waits is told when this is dropped.
                Order::Flush(done) => drop(done),
            }
        }
        self.writer.iter().for_each(Writer::tidy);
    }

    fn handle_sweep(&mut self, sweep: &Sweep) {
        let began = Instant::now();
        if self.shared.is_damaged() {
            self.handle_trouble(&HistoryError::Damaged("a reader could not read it".into()));
        }
        let opened = self.open();
        match &mut self.recorder {
            Some(recorder) => match recorder.handle_sweep(sweep) {
                Some(batch) => self.handle_batch(batch),
                None => self.handle_set_back(sweep),
            },
            None => self.drop_some(1),
        }
        match opened.and_then(|()| self.write()) {
            Ok(()) => self.handle_success(),
            Err(error) => self.handle_trouble(&error),
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.write_micros.store(micros, Relaxed);
        self.tell();
    }

    fn handle_batch(&mut self, batch: Batch) {
        self.is_behind = false;
        if let Some(time) = batch.wrong_after {
            let after = export::rfc3339(time);
            tracing::warn!(%after, "the clock was wrong: what was recorded after this time is taken back");
        }
        self.pending.push_back(batch);
    }

    /// This minute, or a later one, was recorded already.
    fn handle_set_back(&mut self, sweep: &Sweep) {
        self.drop_some(1);
        let ahead = self.recorder.as_ref().map_or(0, Recorder::last) - sweep.time;
        // A second or a minute twice is nobody's fault.
        let was_behind = std::mem::replace(&mut self.is_behind, ahead > 120);
        if self.is_behind && !was_behind {
            tracing::warn!(
                seconds = ahead,
                "the clock was set back: the history goes on in so many seconds at the latest"
            );
        }
    }

    /// Opens the file, if it is not open, and reads what the recorder has to know, if that does not know it.
    fn open(&mut self) -> Result<(), HistoryError> {
        if self.writer.is_none() {
            self.writer = Some(Writer::open(&self.options)?);
        }
        if let (Some(writer), None) = (&self.writer, &self.recorder) {
            let Loaded { known, next_key, clock } = writer.load()?;
            let Options { limits, retention, .. } = &self.options;
            self.recorder = Some(Recorder::new(*limits, retention.days, known, next_key, clock));
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), HistoryError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        while let Some(batch) = self.pending.front() {
            writer.apply(batch)?;
            self.shared.last.store(batch.time, Relaxed);
            self.shared.written.fetch_add(1, Relaxed);
            self.pending.pop_front();
        }
        Ok(())
    }

    fn handle_success(&mut self) {
        self.shared.is_writing.store(!self.is_behind, Relaxed);
        if std::mem::take(&mut self.is_in_trouble) {
            let dropped = self.shared.dropped.load(Relaxed);
            tracing::info!(dropped, "the history is recorded again");
        }
    }

    fn handle_trouble(&mut self, error: &HistoryError) {
        self.shared.is_writing.store(false, Relaxed);
        let is_new = !std::mem::replace(&mut self.is_in_trouble, true);
        if is_new {
            tracing::warn!("{error}; everything else goes on, and it is tried again every minute");
        }
        match error {
            HistoryError::Damaged(_) => {
                self.start_over();
                aside::set_aside(&self.options.path, is_new);
                self.shared.set_another_file();
            }
            // The connection is as good as ever.
            HistoryError::Full | HistoryError::Locked => {}
            _ => self.writer = None,
        }
        if self.pending.len() > PENDING {
            self.start_over();
        }
    }

    /// What could not be written is lost, and so is what the recorder made of it: it has to read the file again.
    fn start_over(&mut self) {
        self.drop_some(self.pending.len());
        self.pending.clear();
        (self.recorder, self.writer) = (None, None);
    }

    fn drop_some(&self, count: usize) {
        self.shared.dropped.fetch_add(count as u64, Relaxed);
    }

    fn tell(&self) {
        self.shared.pending.store(self.pending.len() as u64, Relaxed);
        let servers = self.recorder.as_ref().map_or(0, Recorder::servers);
        self.shared.servers.store(servers as u64, Relaxed);
        self.shared.bytes.store(fs::metadata(&self.options.path).map_or(0, |file| file.len()), Relaxed);
    }
}
