//! Where decisions are made and kept.

use super::{
    audit::{AuditLog, Entry},
    record::Record,
};
use crate::problem::Problem;
use arc_swap::{ArcSwap, Guard};
use axum::http::StatusCode;
use rallypoint_lobby::{LobbyService, replace_file, set_file_aside};
use rallypoint_lobby_proto::BanList;
use serde::Deserialize;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
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

/// All that is asked of a file before it is read.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Why decisions cannot be read back.
#[derive(Debug, Error)]
pub enum AdminError {
    /// The file is there, but cannot be read.
    #[error("cannot read {}: {source}; make it readable or move it away, or choose another --data-dir", path.display())]
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
            // A later version may look different in everything else.
            Ok(bytes) if serde_json::from_slice(&bytes).is_ok_and(|Version { version }| version > Record::VERSION) => {
                return Err(AdminError::TooNew(path));
            }
            Ok(bytes) => match serde_json::from_slice::<Record>(&bytes) {
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
    pub fn bans(&self) -> BanList {
        self.0.record.load().in_force(Instant::now(), SystemTime::now())
    }

    pub(super) fn record(&self) -> Guard<Arc<Record>> {
        self.0.record.load()
    }

    /// Changes something: it is written into the audit log, kept, and told to the lobby, in this order. If one of these
    /// fails, what follows does not happen.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        lobby: &LobbyService,
        change: impl FnOnce(&mut Record) -> Result<(T, Vec<Entry>), Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (admin, lobby) = (self.clone(), lobby.clone());
        to_its_end(async move {
            let _turn = admin.0.turn.lock().await;
            let inner = Arc::clone(&admin.0);
            let value = blocking(move || {
                let mut record = Record::clone(&inner.record.load());
                let utc = SystemTime::now();
                record.bans.retain(|numbered| numbered.ban.is_in_force(utc));
                let (value, entries) = change(&mut record)?;
                let keep = || {
                    inner.audit.add(&entries)?;
                    replace_file(&inner.path, &serde_json::to_vec(&record)?)
                };
                keep().map_err(|error| cannot_use(&error))?;
                inner.record.store(Arc::new(record));
                Ok(value)
            })
            .await?;
            lobby.set_more_bans(admin.bans()).await;
            Ok(value)
        })
        .await
    }

    /// The audit log, the latest entry first.
    pub(super) async fn audit(&self) -> Result<Vec<Entry>, Problem> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.audit.entries().map_err(|error| cannot_use(&error))).await
    }
}

/// Something that is not left half done when whoever asked for it hangs up.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(fault()))
}

/// Something that waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(fault()))
}

fn fault() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this is a fault of the program")
}

fn cannot_use(error: &io::Error) -> Problem {
    tracing::warn!(%error, "the operator's decisions cannot be kept or read");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the data folder cannot be used, so nothing was changed: see the log")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, task::Poll};
    use tokio::sync::oneshot;

    #[test]
    fn what_is_begun_is_done_even_if_nobody_waits_for_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let ((go, wait), (done, is_done)) = (oneshot::channel::<()>(), oneshot::channel());
            let mut work = Box::pin(to_its_end(async move {
                let _ = wait.await;
                done.send(()).unwrap();
                Ok(())
            }));
            assert!(poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_pending())).await);
            drop(work);
            go.send(()).unwrap();
            is_done.await.unwrap();
        });
    }

    #[test]
    fn a_file_of_a_later_version_is_left_alone_whatever_else_it_has() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), r#"{"version":2,"bans":{}}"#).unwrap();
        assert!(matches!(Admin::open(dir.path()), Err(AdminError::TooNew(_))));
        assert!(dir.path().join(FILE).exists());
    }
}
