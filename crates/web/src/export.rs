//! A static copy of the list for mirrors: signed files, which any web server can publish (W120).
//!
//! ```text
//! ExportService    a task that checks once per second whether to write
//! ├─ schedule      when to write (no I/O)
//! ├─ document      servers.json
//! ├─ page          index.html
//! └─ directory     signs, and replaces the files that changed; on the blocking pool
//! ```

mod directory;
mod document;
mod key;
mod page;
mod schedule;

pub use directory::ExportError;
pub use key::ExportKey;

use crate::ListNames;
use arc_swap::ArcSwap;
use directory::ExportDirectory;
use rallypoint_lobby::{LobbyService, LogThrottle, unix_now};
use rallypoint_minisign::PublicKey;
use schedule::ExportSchedule;
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinHandle};

/// Interval at which it is checked whether something has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time that the last copy has to be written when the lobby shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Where, how often and with which key copies are written.
#[derive(Debug)]
pub struct ExportOptions {
    /// The directory, for copies alone. It is created if it does not exist.
    pub directory: PathBuf,
    /// Minimum time between two copies, from 1 s to 1 h. Default: 5 s. A copy of a very long list is written less often.
    pub interval: Duration,
    /// The key that signs the files.
    pub key: ExportKey,
    /// The settings that can be changed while it runs.
    pub settings: ExportSettings,
}

/// The contents of a copy that come from the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportSettings {
    /// Names under which players know the lobby: its host, with its port if it is not the default one. A client that was asked
    /// for another lobby refuses the copy. Default: none, then the key alone identifies the lobby.
    pub hosts: Vec<String>,
    /// How long clients use a copy, unless their user sets another time. Default: a day.
    pub max_age: Duration,
    /// The address of the live page. Default: none.
    pub page_url: Option<String>,
    /// Where copies are published, for the live page. Default: none.
    pub mirrors: Vec<String>,
    /// Title of the page. Default: "Rallypoint".
    pub title: String,
    /// Names of the lists.
    pub names: ListNames,
}

impl ExportOptions {
    /// The default interval and settings.
    #[must_use]
    pub fn new(directory: PathBuf, key: ExportKey) -> Self {
        Self { directory, interval: Duration::from_secs(5), key, settings: ExportSettings::default() }
    }
}

impl Default for ExportSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            max_age: Duration::from_secs(24 * 60 * 60),
            page_url: None,
            mirrors: Vec::new(),
            title: "Rallypoint".into(),
            names: ListNames::default(),
        }
    }
}

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

/// A running export. Clones refer to the same one; it ends with [`shutdown`](Self::shutdown), or with its runtime.
#[derive(Clone, Debug)]
pub struct ExportService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    key: PublicKey,
    shared: Arc<Shared>,
    shutdown: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    settings: ArcSwap<ExportSettings>,
    written: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last: AtomicU64,
    is_failing: AtomicBool,
}

impl ExportService {
    /// Starts to write copies of a lobby's list. Has to be called within a runtime.
    ///
    /// # Errors
    /// If the directory cannot be written to, or contains something else.
    pub fn start(options: ExportOptions, lobby: LobbyService) -> Result<Self, ExportError> {
        let ExportOptions { directory, interval, key, settings } = options;
        let public = key.public();
        let directory = ExportDirectory::open(directory, key)?;
        let shared = Arc::new(Shared {
            settings: ArcSwap::from_pointee(settings),
            written: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            last: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
        });
        let (shutdown, is_shut_down) = watch::channel(false);
        let schedule = ExportSchedule::new(interval, Instant::now(), directory.has_copy());
        let task = ExportTask {
            lobby,
            shared: Arc::clone(&shared),
            schedule,
            directory: Some(directory),
            throttle: LogThrottle::default(),
        };
        let task = tokio::spawn(task.run(is_shut_down));
        Ok(Self(Arc::new(Inner { key: public, shared, shutdown, task: Mutex::new(Some(task)) })))
    }

    /// The key with which clients verify copies.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.0.key
    }

    /// What was written so far.
    #[must_use]
    pub fn stats(&self) -> ExportStats {
        let Shared { written, failed, bytes, last, is_failing, .. } = &*self.0.shared;
        ExportStats {
            written: written.load(Relaxed),
            failed: failed.load(Relaxed),
            bytes: bytes.load(Relaxed),
            last: last.load(Relaxed),
            is_failing: is_failing.load(Relaxed),
        }
    }

    /// The description of the lobby in its copies.
    pub(crate) fn settings(&self) -> Arc<ExportSettings> {
        self.0.shared.settings.load_full()
    }

    /// Replaces what copies say about the lobby, from the next copy on.
    pub fn set_settings(&self, settings: ExportSettings) {
        self.0.shared.settings.store(Arc::new(settings));
    }

    /// Writes a last copy if something has changed, and ends. It takes at most five seconds, and has to be called before the
    /// lobby shuts down.
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
struct ExportTask {
    lobby: LobbyService,
    shared: Arc<Shared>,
    schedule: ExportSchedule,
    /// `None` if a write has panicked.
    directory: Option<ExportDirectory>,
    throttle: LogThrottle,
}

impl ExportTask {
    async fn run(mut self, mut shutdown: watch::Receiver<bool>) {
        // An empty list that is still being loaded must not replace the copy of the last run.
        tokio::select! {
            () = self.lobby.servers().until_current() => {}
            () = self.lobby.ended() => return,
            () = shut_down(&mut shutdown) => return,
        }
        while self.directory.is_some() {
            self.write_if_due(Instant::now()).await;
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                () = self.lobby.ended() => return,
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
        let table = Arc::clone(&self.lobby.servers().snapshot());
        let version = table.version();
        let is_empty = table.is_empty();
        if !self.schedule.is_due(now, version, is_empty) {
            return;
        }
        let Some(mut directory) = self.directory.take() else { return };
        let settings = self.shared.settings.load_full();
        let lists = self.lobby.lists().snapshot();
        let write = move || {
            let result = directory.write(table, &lists, &settings, unix_now());
            (directory, result)
        };
        // A panic would be a bug; the runtime reports it, and no further copies are written.
        let Ok((directory, result)) = tokio::task::spawn_blocking(write).await else { return };
        self.record(&result, directory.path(), now, (version, is_empty));
        self.directory = Some(directory);
    }

    /// Records an attempt to write the table with this version, which may be empty.
    fn record(
        &mut self,
        result: &io::Result<u64>,
        path: &std::path::Path,
        started: Instant,
        (version, is_empty): (u64, bool),
    ) {
        let shared = &self.shared;
        let finished = Instant::now();
        let was_failing = shared.is_failing.swap(result.is_err(), Relaxed);
        match result {
            Ok(bytes) => {
                self.schedule.handle_written(started, finished, version, is_empty);
                shared.written.fetch_add(1, Relaxed);
                shared.bytes.store(*bytes, Relaxed);
                shared.last.store(unix_now(), Relaxed);
                if was_failing {
                    tracing::info!(directory = %path.display(), "copies of the list for mirrors are written again");
                }
            }
            Err(error) => {
                self.schedule.handle_failure(finished);
                shared.failed.fetch_add(1, Relaxed);
                if self.throttle.record(finished).is_some() {
                    let directory = path.display();
                    tracing::warn!(%directory, %error, "cannot write the copy of the list for mirrors; the last one is kept");
                }
            }
        }
    }
}

/// Waits until the export shuts down.
async fn shut_down(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the service is gone.
    let _ = shutdown.wait_for(|shutdown| *shutdown).await;
}
