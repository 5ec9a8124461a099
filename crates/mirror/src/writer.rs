//! Writing copies: signed files in a directory, which any web server can publish (W120).
//!
//! ```text
//! CopyWriter         a task that checks once per second whether to write
//! ├─ schedule        when to write (no I/O)
//! ├─ source          what to write: the lobby's documents
//! └─ directory       signs, and replaces the files that changed; on the blocking pool
//! ```

mod directory;
mod key;
mod schedule;
mod source;

pub use directory::ExportError;
pub use key::ExportKey;
pub use source::{CopySnapshot, CopySource, ListFile};

use crate::minisign::PublicKey;
use directory::ExportDirectory;
use schedule::ExportSchedule;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::JoinHandle};

/// Interval at which it is checked whether something has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time that the last copy has to be written when the lobby shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// What was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportStats {
    /// Number of copies.
    pub written: u64,
    /// Number of failed attempts.
    pub failed: u64,
    /// Size of the last copy in bytes: of the files that were replaced.
    pub bytes: u64,
    /// When the last copy was made, in seconds since 1970; 0 for never.
    pub last: u64,
    /// Whether the last attempt failed.
    pub is_failing: bool,
}

/// Writes copies of a lobby's list. Clones refer to the same writer; it ends with [`shutdown`](Self::shutdown), or with its
/// runtime.
#[derive(Clone, Debug)]
pub struct CopyWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    key: PublicKey,
    counters: Arc<Counters>,
    shutdown: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last: AtomicU64,
    is_failing: AtomicBool,
}

impl CopyWriter {
    /// Starts to write copies into a directory, at most one per `interval`. Has to be called within a runtime.
    ///
    /// # Errors
    /// If the directory cannot be written to, or contains something else.
    pub fn start(
        directory: PathBuf,
        interval: Duration,
        key: ExportKey,
        source: impl CopySource,
    ) -> Result<Self, ExportError> {
        let public = key.public();
        let directory = ExportDirectory::open(directory, key)?;
        let counters = Arc::new(Counters::default());
        let (shutdown, is_shut_down) = watch::channel(false);
        let schedule = ExportSchedule::new(interval, Instant::now(), directory.has_copy());
        let task = WriterTask { source, counters: Arc::clone(&counters), schedule, directory: Some(directory) };
        let task = tokio::spawn(task.run(is_shut_down));
        Ok(Self(Arc::new(Inner { key: public, counters, shutdown, task: Mutex::new(Some(task)) })))
    }

    /// The key with which clients verify copies.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.0.key
    }

    /// What was written so far.
    #[must_use]
    pub fn stats(&self) -> ExportStats {
        let Counters { written, failed, bytes, last, is_failing } = &*self.0.counters;
        ExportStats {
            written: written.load(Relaxed),
            failed: failed.load(Relaxed),
            bytes: bytes.load(Relaxed),
            last: last.load(Relaxed),
            is_failing: is_failing.load(Relaxed),
        }
    }

    /// Writes a last copy if something has changed, and ends. It takes at most five seconds, and has to be called before the
    /// source ends.
    pub async fn shutdown(&self) {
        self.0.shutdown.send_replace(true);
        let task = self.0.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && tokio::time::timeout(SHUTDOWN_TIMEOUT, task).await.is_err()
        {
            tracing::warn!("the last copy of the list for mirrors was not written in time");
        }
    }
}

/// The task that writes copies.
struct WriterTask<S> {
    source: S,
    counters: Arc<Counters>,
    schedule: ExportSchedule,
    /// `None` if a write has panicked.
    directory: Option<ExportDirectory>,
}

impl<S: CopySource> WriterTask<S> {
    async fn run(mut self, mut shutdown: watch::Receiver<bool>) {
        // An empty list that is still being loaded must not replace the copy of the last run.
        tokio::select! {
            () = self.source.until_current() => {}
            () = self.source.ended() => return,
            () = shut_down(&mut shutdown) => return,
        }
        while self.directory.is_some() {
            self.write_if_due(Instant::now()).await;
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                () = self.source.ended() => return,
                () = shut_down(&mut shutdown) => {
                    let now = Instant::now();
                    self.schedule.finish(now);
                    self.write_if_due(now).await;
                    return;
                }
            }
        }
    }

    async fn write_if_due(&mut self, now: Instant) {
        let (version, is_empty) = self.source.state();
        if !self.schedule.is_due(now, version, is_empty) {
            return;
        }
        let Some(mut directory) = self.directory.take() else { return };
        let snapshot = self.source.snapshot();
        let made_at = unix_now();
        let write = move || {
            let result = directory.write(snapshot, made_at);
            (directory, result)
        };
        // A panic would be a bug; the runtime reports it, and no further copies are written.
        let Ok((directory, result)) = tokio::task::spawn_blocking(write).await else { return };
        match &result {
            Ok(_) => self.schedule.handle_written(now, Instant::now(), version, is_empty),
            Err(_) => self.schedule.handle_failure(Instant::now()),
        }
        self.counters.record(&result, made_at, directory.path());
        self.directory = Some(directory);
    }
}

impl Counters {
    /// Counts an attempt; a failure and its end are logged once.
    fn record(&self, result: &io::Result<u64>, made_at: u64, directory: &Path) {
        let was_failing = self.is_failing.swap(result.is_err(), Relaxed);
        let directory = directory.display();
        match result {
            Ok(bytes) => {
                self.written.fetch_add(1, Relaxed);
                self.bytes.store(*bytes, Relaxed);
                self.last.store(made_at, Relaxed);
                if was_failing {
                    tracing::info!(%directory, "copies of the list for mirrors are written again");
                }
            }
            Err(error) => {
                self.failed.fetch_add(1, Relaxed);
                if !was_failing {
                    tracing::warn!(%directory, %error, "cannot write the copy of the list for mirrors; the last one is kept");
                }
            }
        }
    }
}

/// Waits until the writer shuts down.
async fn shut_down(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the writer is gone.
    let _ = shutdown.wait_for(|shutdown| *shutdown).await;
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
