//! Saving the list while the lobby goes on.
//!
//! The registry gives out a few thousand servers per turn, so that no datagram waits for it; another thread writes them to
//! the disk before it gets the next ones, so that a save never is in memory as a whole.

use crate::store::{NewFile, Store};
use rallypoint_lobby_proto::{Registry, SaveFileWriter};
use rallypoint_udp::clock;
use std::{
    io,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

/// How many servers are gathered per turn: about a millisecond's work.
const PER_TURN: u32 = 4_096;

/// Saving takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// How saving goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveStats {
    /// Saves that are on the disk.
    pub written: u64,
    /// Saves that could not be written.
    pub failed: u64,
    /// Whether the last one could not be written.
    pub is_failing: bool,
    /// When the last one was written. If nothing changes, nothing is saved.
    pub last: Option<SystemTime>,
    /// How long that took.
    pub took: Duration,
    /// How many bytes it has.
    pub bytes: usize,
}

/// The same, for several threads.
pub(super) type SharedStats = Arc<Mutex<SaveStats>>;

/// When and how the list is saved.
pub(super) struct Saves {
    every: Duration,
    store: Arc<Store>,
    stats: SharedStats,
    writer: Writer,
    state: State,
    /// How often the lists had been published when the last save began: if that has not changed, nothing has.
    saved: u64,
}

enum State {
    Waiting {
        until: Instant,
    },
    Gathering {
        saver: SaveFileWriter,
        began: Instant,
    },
    /// A part is being written: the last one, if there is no saver.
    Writing {
        saver: Option<SaveFileWriter>,
        began: Instant,
    },
}

impl Saves {
    /// `written` is told, in another thread, whenever a part is written.
    pub fn start(
        store: Store,
        every: Duration,
        now: Instant,
        stats: SharedStats,
        written: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let store = Arc::new(store);
        let writer = Writer::start(Output::new(store.clone(), stats.clone()), written)?;
        Ok(Self { every, store, stats, writer, state: State::Waiting { until: now + every }, saved: 0 })
    }

    /// Goes on with what there is to do.
    pub fn handle_turn(&mut self, now: Instant, registry: &Registry, published: u64) {
        if let State::Waiting { until } = self.state
            && until <= now
            && published != self.saved
        {
            self.saved = published;
            self.state = State::Gathering { saver: SaveFileWriter::new(), began: now };
        }
        if let State::Gathering { saver, began } = &mut self.state {
            let (mut saver, began) = (std::mem::take(saver), *began);
            let (part, saver) = match registry.save_next(now, &mut saver, PER_TURN) {
                true => (Part::Last(saver.finish()), None),
                false => (Part::More(saver.take()), Some(saver)),
            };
            self.state = State::Writing { saver, began };
            self.writer.write(part);
        }
    }

    /// When [`handle_turn`](Self::handle_turn) has something to do.
    pub fn poll_timeout(&self, published: u64) -> Option<Instant> {
        match self.state {
            State::Waiting { until } => (published != self.saved).then_some(until),
            State::Gathering { began, .. } => Some(began),
            State::Writing { .. } => None,
        }
    }

    /// A part is written.
    pub fn handle_written(&mut self, now: Instant) {
        if let State::Writing { saver, began } = &mut self.state {
            let took = now.saturating_duration_since(*began);
            self.state = match saver.take() {
                Some(saver) => State::Gathering { saver, began: *began },
                None => State::Waiting { until: *began + self.every.max(took * SHARE) },
            };
        }
    }

    /// Saves a last time, in this thread. Says whether that worked.
    pub fn finish(self, registry: &Registry) -> bool {
        let Self { store, stats, mut writer, .. } = self;
        writer.end();
        let (mut saver, mut output) = (SaveFileWriter::new(), Output::new(store, stats));
        while !registry.save_next(clock::now(), &mut saver, PER_TURN) {
            output.write(&Part::More(saver.take()));
        }
        output.write(&Part::Last(saver.finish()))
    }
}

/// The thread that writes. It ends when this is dropped, after what it has to write.
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

    /// Waits for the last save.
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

/// What is written at a time.
enum Part {
    More(Vec<u8>),
    /// Then the save is whole.
    Last(Vec<u8>),
}

/// Puts saves together on the disk.
struct Output {
    store: Arc<Store>,
    stats: SharedStats,
    /// The save that is not whole yet, or why it will not be.
    file: Option<io::Result<NewFile>>,
    began: Instant,
    bytes: usize,
}

impl Output {
    fn new(store: Arc<Store>, stats: SharedStats) -> Self {
        Self { store, stats, file: None, began: clock::now(), bytes: 0 }
    }

    /// Writes the next part. Says whether there is a new save.
    fn write(&mut self, part: &Part) -> bool {
        let (bytes, is_last) = match part {
            Part::More(bytes) => (bytes, false),
            Part::Last(bytes) => (bytes, true),
        };
        let file = self.file.take().unwrap_or_else(|| {
            (self.began, self.bytes) = (clock::now(), 0);
            self.store.new_servers()
        });
        let file = file.and_then(|mut file| file.write(bytes).map(|()| file));
        self.bytes += bytes.len();
        if is_last {
            return self.tell(&file.and_then(NewFile::commit));
        }
        self.file = Some(file);
        false
    }

    /// Notes what came of a save. The operator is told once when saving fails, and once when it works again.
    fn tell(&self, result: &io::Result<()>) -> bool {
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        match (result, stats.is_failing) {
            (Err(error), false) => {
                tracing::warn!(%error, "the list cannot be saved: the lobby goes on, but a restart would go back to the last save");
            }
            (Ok(()), true) => tracing::info!("the list can be saved again"),
            _ => {}
        }
        stats.is_failing = result.is_err();
        if result.is_err() {
            stats.failed += 1;
            return false;
        }
        let (last, took) = (Some(SystemTime::now()), self.began.elapsed());
        *stats = SaveStats { written: stats.written + 1, last, took, bytes: self.bytes, ..*stats };
        true
    }
}
