//! Saving the list while the lobby goes on.
//!
//! The registry gives out a few thousand servers per turn, so that no datagram waits for it; another thread writes them to
//! the disk.

use crate::{clock, store::Store};
use rallypoint_lobby::{Registry, Saver};
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
    Waiting { until: Instant },
    Gathering { saver: Saver, began: Instant },
    Writing { began: Instant },
}

impl Saves {
    /// `written` is told, in another thread, whenever a save has ended.
    pub fn start(
        store: Store,
        every: Duration,
        now: Instant,
        stats: SharedStats,
        written: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let store = Arc::new(store);
        let writer = Writer::start(store.clone(), stats.clone(), written)?;
        Ok(Self { every, store, stats, writer, state: State::Waiting { until: now + every }, saved: 0 })
    }

    /// Goes on with what there is to do.
    pub fn handle_turn(&mut self, now: Instant, registry: &Registry, published: u64) {
        if let State::Waiting { until } = self.state
            && until <= now
            && published != self.saved
        {
            self.saved = published;
            self.state = State::Gathering { saver: Saver::new(), began: now };
        }
        if let State::Gathering { saver, began } = &mut self.state
            && registry.save_some(now, saver, PER_TURN)
        {
            let saver = std::mem::take(saver);
            self.state = State::Writing { began: *began };
            self.writer.write(saver);
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

    /// A save has ended.
    pub fn handle_written(&mut self, now: Instant) {
        if let State::Writing { began } = self.state {
            let took = now.saturating_duration_since(began);
            self.state = State::Waiting { until: began + self.every.max(took * SHARE) };
        }
    }

    /// Saves a last time, in this thread. Says whether that worked.
    pub fn finish(self, registry: &Registry) -> bool {
        let Self { store, stats, mut writer, .. } = self;
        writer.end();
        let mut saver = Saver::new();
        registry.save_some(clock::now(), &mut saver, u32::MAX);
        write(&store, saver, &stats)
    }
}

/// The thread that writes. It ends when this is dropped, after what it has to write.
struct Writer {
    sender: Option<mpsc::Sender<Saver>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(store: Arc<Store>, stats: SharedStats, written: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("lobby-save".into()).spawn(move || {
            for saver in receiver {
                write(&store, saver, &stats);
                written();
            }
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    fn write(&self, saver: Saver) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(saver);
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

/// Writes the list and says whether that worked. The operator is told once when it fails, and once when it works again.
fn write(store: &Store, saver: Saver, stats: &Mutex<SaveStats>) -> bool {
    let (began, bytes) = (clock::now(), saver.finish());
    let result = store.save_servers(&bytes);
    let mut stats = stats.lock().unwrap_or_else(PoisonError::into_inner);
    match (&result, stats.is_failing) {
        (Err(error), false) => {
            tracing::warn!(%error, "the list cannot be saved: the lobby goes on, but a restart would go back to the last save");
        }
        (Ok(()), true) => tracing::info!("the list can be saved again"),
        _ => {}
    }
    stats.is_failing = result.is_err();
    if result.is_ok() {
        *stats = SaveStats {
            written: stats.written + 1,
            last: Some(SystemTime::now()),
            took: began.elapsed(),
            bytes: bytes.len(),
            ..*stats
        };
    } else {
        stats.failed += 1;
    }
    result.is_ok()
}
