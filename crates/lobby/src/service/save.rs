//! Saving the list while the lobby keeps running.
//!
//! The registry serializes a few thousand servers per turn of the event loop, so that no datagram waits for it; another thread
//! writes them to the disk before it gets the next ones, so that a save is never in memory as a whole.

use crate::data_dir::DataDir;
use rallypoint_files::NewFile;
use rallypoint_lobby_proto::{Registry, SaveFileWriter};
use rallypoint_udp::clock;
use std::{
    io,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

/// Number of servers that are serialized per turn of the event loop: about a millisecond of work.
const SERVERS_PER_TURN: u32 = 4_096;

/// Minimum ratio of the interval between saves to the duration of a save: saving takes at most 5 % of the time.
const MIN_PAUSE_RATIO: u32 = 20;

/// Counters of saves to the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveStats {
    /// Saves that were written.
    pub written: u64,
    /// Saves that could not be written.
    pub failed: u64,
    /// Whether the last save could not be written.
    pub is_failing: bool,
    /// When the last save was written. An unchanged list is not saved again.
    pub last: Option<SystemTime>,
    /// Duration of the last save.
    pub took: Duration,
    /// Size of the last save in bytes.
    pub bytes: usize,
}

/// [`SaveStats`] shared between threads.
pub(super) type SharedSaveStats = Arc<Mutex<SaveStats>>;

/// Schedules saves, and serializes the list in parts.
pub(super) struct Saves {
    interval: Duration,
    data_dir: Arc<DataDir>,
    stats: SharedSaveStats,
    writer: Writer,
    state: State,
    /// Publish count of the lists when the last save began: the list is unchanged while this is the same.
    saved: u64,
}

enum State {
    Waiting {
        until: Instant,
    },
    Serializing {
        saver: SaveFileWriter,
        began: Instant,
    },
    /// A part is being written: the last one if there is no saver.
    Writing {
        saver: Option<SaveFileWriter>,
        began: Instant,
    },
}

impl Saves {
    /// Starts the writer thread. It calls `written` after each part.
    pub fn start(
        data_dir: DataDir,
        interval: Duration,
        now: Instant,
        stats: SharedSaveStats,
        written: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let data_dir = Arc::new(data_dir);
        let writer = Writer::start(Output::new(data_dir.clone(), stats.clone()), written)?;
        Ok(Self { interval, data_dir, stats, writer, state: State::Waiting { until: now + interval }, saved: 0 })
    }

    /// Starts a save if one is due, or serializes the next part.
    pub fn handle_turn(&mut self, now: Instant, registry: &Registry, published: u64) {
        if let State::Waiting { until } = self.state
            && until <= now
            && published != self.saved
        {
            self.saved = published;
            self.state = State::Serializing { saver: SaveFileWriter::new(), began: now };
        }
        if let State::Serializing { saver, began } = &mut self.state {
            let mut saver = std::mem::take(saver);
            let began = *began;
            let (part, saver) = match registry.save_next(now, &mut saver, SERVERS_PER_TURN) {
                true => (Part::Last(saver.finish()), None),
                false => (Part::More(saver.take()), Some(saver)),
            };
            self.state = State::Writing { saver, began };
            self.writer.write(part);
        }
    }

    /// When [`handle_turn`](Self::handle_turn) is due.
    pub fn poll_timeout(&self, published: u64) -> Option<Instant> {
        match self.state {
            State::Waiting { until } => (published != self.saved).then_some(until),
            State::Serializing { began, .. } => Some(began),
            State::Writing { .. } => None,
        }
    }

    /// Handles the end of writing a part.
    pub fn handle_written(&mut self, now: Instant) {
        if let State::Writing { saver, began } = &mut self.state {
            let took = now.saturating_duration_since(*began);
            self.state = match saver.take() {
                Some(saver) => State::Serializing { saver, began: *began },
                None => State::Waiting { until: *began + self.interval.max(took * MIN_PAUSE_RATIO) },
            };
        }
    }

    /// Makes a last save in this thread. Returns whether it was written.
    pub fn finish(self, registry: &Registry) -> bool {
        let Self { data_dir, stats, mut writer, .. } = self;
        writer.end();
        let mut saver = SaveFileWriter::new();
        let mut output = Output::new(data_dir, stats);
        while !registry.save_next(clock::now(), &mut saver, SERVERS_PER_TURN) {
            output.write(&Part::More(saver.take()));
        }
        output.write(&Part::Last(saver.finish()))
    }
}

/// The writer thread. Dropping this waits until everything is written.
struct Writer {
    sender: Option<mpsc::Sender<Part>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(mut output: Output, written: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("lobby-save".into()).spawn(move || {
            for part in receiver {
                output.write(&part);
                written();
            }
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    fn write(&self, part: Part) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(part);
        }
    }

    /// Waits until everything is written, and ends the thread.
    fn end(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A part of a save.
enum Part {
    More(Vec<u8>),
    /// Completes the save.
    Last(Vec<u8>),
}

/// Assembles saves on the disk.
struct Output {
    data_dir: Arc<DataDir>,
    stats: SharedSaveStats,
    /// The incomplete save, or the error that makes it fail.
    file: Option<io::Result<NewFile>>,
    began: Instant,
    bytes: usize,
}

impl Output {
    fn new(data_dir: Arc<DataDir>, stats: SharedSaveStats) -> Self {
        Self { data_dir, stats, file: None, began: clock::now(), bytes: 0 }
    }

    /// Writes the next part. Returns whether it completed a save.
    fn write(&mut self, part: &Part) -> bool {
        let (bytes, is_last) = match part {
            Part::More(bytes) => (bytes, false),
            Part::Last(bytes) => (bytes, true),
        };
        let file = self.file.take().unwrap_or_else(|| {
            self.began = clock::now();
            self.bytes = 0;
            self.data_dir.new_servers()
        });
        let file = file.and_then(|mut file| file.write(bytes).map(|()| file));
        self.bytes += bytes.len();
        if is_last {
            return self.finish(&file.and_then(NewFile::commit));
        }
        self.file = Some(file);
        false
    }

    /// Counts a save, and logs the first failure and the first success after it.
    fn finish(&self, result: &io::Result<()>) -> bool {
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        match (result, stats.is_failing) {
            (Err(error), false) => {
                tracing::warn!(%error, "cannot save the list: the lobby keeps running, but a restart would restore the previous save");
            }
            (Ok(()), true) => tracing::info!("the list is saved again"),
            _ => {}
        }
        stats.is_failing = result.is_err();
        if result.is_err() {
            stats.failed += 1;
            return false;
        }
        *stats = SaveStats {
            written: stats.written + 1,
            last: Some(SystemTime::now()),
            took: self.began.elapsed(),
            bytes: self.bytes,
            ..*stats
        };
        true
    }
}
