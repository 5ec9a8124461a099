//! Why history cannot be written or read.

use std::{io, path::PathBuf};
use thiserror::Error;

/// Why history cannot be written or read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// There is no file.
    #[error("there is no history at {0}: it begins when rallypoint serve has run for a minute")]
    Missing(PathBuf),
    /// The file is no history, or not a whole one.
    #[error("the history is damaged: {0}")]
    Damaged(String),
    /// The file comes from a program that knows more.
    #[error("the history is of a newer version ({found}; this program knows {known}): use the newer program")]
    Newer {
        /// The version of the file.
        found: i64,
        /// The latest version that is known.
        known: i64,
    },
    /// There is no room for more.
    #[error("there is no more room for the history: free some space, or raise history.max_size")]
    Full,
    /// Somebody else has the file.
    #[error("the history is locked by another program")]
    Locked,
    /// All readers have something to do, and did not end in time.
    #[error("too many want to read the history at once: try again")]
    Busy,
    /// More points were asked for than there can be.
    #[error("so long a time has too many points at this resolution: ask for less, or for a coarser one")]
    TooMany,
    /// Something else is wrong with the file or its folder.
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

/// Bytes in the file that no program of ours has written.
pub(crate) fn damaged(what: &str) -> HistoryError {
    HistoryError::Damaged(format!("{what} cannot be read"))
}
