//! Where decisions are made and kept.

use super::{
    audit::{AuditLog, Entry},
    record::Record,
};
use crate::problem::Problem;
use arc_swap::{ArcSwap, Guard};
use axum::http::StatusCode;
use rallypoint_lobby::Bans;
use rallypoint_net::{LobbyService, replace_file, set_file_aside};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use thiserror::Error;

const FILE: &str = "admin.json";

/// What the operator has decided by HTTP, kept in a folder. Clones are the same.
#[derive(Clone, Debug)]
pub struct Admin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Whoever changes something holds this, so that the lobby is told of changes in their order.
    turn: tokio::sync::Mutex<()>,
    record: ArcSwap<Record>,
    audit: AuditLog,
}

/// Why decisions cannot be read back.
#[derive(Debug, Error)]
pub enum AdminError {
    /// The file is there, but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A later version of this program wrote it.
    #[error("{} is of a later version of this program: use that one, or move the file away", .0.display())]
    TooNew(PathBuf),
}

impl Admin {
    /// Reads back what was decided. A file that makes no sense is set aside, with a warning.
    pub fn open(dir: &Path) -> Result<Self, AdminError> {
        let path = dir.join(FILE);
        let record = match fs::read(&path) {
            // If there is something wrong with the folder itself, the lobby will say so.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Record::default()
            }
            Err(source) => return Err(AdminError::Unreadable { path, source }),
            Ok(bytes) => match serde_json::from_slice::<Record>(&bytes) {
                Ok(record) if record.version > Record::VERSION => return Err(AdminError::TooNew(path)),
                Ok(record) => record,
                Err(error) => {
                    set_file_aside(&path, &error);
                    Record::default()
                }
            },
        };
        let (turn, record) = (Default::default(), ArcSwap::from_pointee(record));
        Ok(Self(Arc::new(Inner { path, turn, record, audit: AuditLog::new(dir) })))
    }

    /// The bans that are in force, for a lobby that starts.
    #[must_use]
    pub fn bans(&self) -> Bans {
        self.0.record.load().in_force(Instant::now(), today())
    }

    pub(super) fn record(&self) -> Guard<Arc<Record>> {
        self.0.record.load()
    }

    /// Changes something: it is written into the audit log, kept, and told to the lobby, in this order. If one of these
    /// fails, what follows does not happen.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        lobby: &LobbyService,
        change: impl FnOnce(&mut Record) -> Result<(T, Entry), Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let _turn = self.0.turn.lock().await;
        let inner = Arc::clone(&self.0);
        let value = blocking(move || {
            let mut record = Record::clone(&inner.record.load());
            let (value, entry) = change(&mut record)?;
            inner.audit.add(&entry).map_err(|error| cannot_write(&error))?;
            record.bans.retain(|ban| ban.rule.is_in_force(entry.time));
            let json = serde_json::to_vec(&record).unwrap_or_default();
            replace_file(&inner.path, &json).map_err(|error| cannot_write(&error))?;
            inner.record.store(Arc::new(record));
            Ok(value)
        })
        .await?;
        lobby.set_more_bans(self.bans()).await;
        Ok(value)
    }

    /// Writes down what is done elsewhere.
    pub(super) async fn note_down(&self, entry: Entry) -> Result<(), Problem> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.audit.add(&entry).map_err(|error| cannot_write(&error))).await
    }

    /// The last entries of the audit log, the latest first.
    pub(super) async fn audit(&self, count: usize) -> Result<Vec<Entry>, Problem> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.audit.last(count).map_err(|error| cannot_write(&error))).await
    }
}

/// Seconds since 1970.
pub(super) fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Something that waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this is a fault of the program");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error)))
}

fn cannot_write(error: &io::Error) -> Problem {
    tracing::warn!(%error, "what the operator decided cannot be kept");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the data folder cannot be used, so nothing was changed: see the log")
}
