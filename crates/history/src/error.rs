//! The errors of reading and writing the history.

use std::{io, path::PathBuf};
use thiserror::Error;

/// Why the history cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The file does not exist.
    #[error("no history at {0}: it is created when rallypoint serve has run for a minute")]
    Missing(PathBuf),
    /// The file is not a history, or it is corrupt.
    #[error("the history is damaged: {0}")]
    Damaged(String),
    /// The file was written by a newer program.
    #[error("the history has a newer format ({found}; this program supports {known}): use the newer program")]
    Newer {
        /// The version of the file.
        found: i64,
        /// The latest version that this program supports.
        known: i64,
    },
    /// The disk is full, or the maximum size is reached.
    #[error("no space left for the history: free some disk space, or raise history.max_size")]
    Full,
    /// Another program has locked the file.
    #[error("the history is locked by another program")]
    Locked,
    /// All connections for readers were in use for too long.
    #[error("too many concurrent readers of the history: try again")]
    Busy,
    /// The series would have more points than the maximum.
    #[error("too many points: choose a shorter time range or a coarser resolution")]
    TooMany,
    /// Another error of the file or its folder.
    #[error("the history cannot be used: {0}")]
    Other(String),
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged(error.to_string()),
            Some(DiskFull) => Self::Full,
            Some(DatabaseBusy | DatabaseLocked) => Self::Locked,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<io::Error> for HistoryError {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// An error for bytes in the file that this program cannot have written.
pub(crate) fn damaged(what: &str) -> HistoryError {
    HistoryError::Damaged(format!("{what} cannot be decoded"))
}
