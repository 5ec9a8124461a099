//! Why a lobby cannot start, in one sentence for the person who started it.

use crate::AdminFileError;
use rallypoint_lobby_proto::ConfigError;
use rallypoint_udp::{BindError, EntropyError};
use std::{io, path::PathBuf};
use thiserror::Error;

/// Why a lobby cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A socket of the lobby's own port cannot be bound.
    #[error(transparent)]
    BindLobby(BindError),
    /// A socket of the legacy port cannot be bound.
    #[error(transparent)]
    BindLegacy(BindError),
    /// The operating system gives no random bytes for keys and hash seeds.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// No address at all.
    #[error("there is no address to listen on: give one with --lobby")]
    NoAddress,
    /// The data directory cannot be used.
    #[error("cannot write to the data directory {path}: {source}; {}", advice(source), path = path.display())]
    DataDir {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The data directory is used by another lobby.
    #[error("the data directory {path} is used by another lobby: stop it, or choose another with --data-dir", path = path.display())]
    DataDirInUse {
        /// The directory.
        path: PathBuf,
    },
    /// The operator's bans and notes cannot be read.
    #[error(transparent)]
    AdminFile(#[from] AdminFileError),
    /// The configuration is contradictory or out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system has no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What to do about a data directory that cannot be used.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "let the program have more open files (ulimit -n)"
        }
        io::ErrorKind::IsADirectory => {
            "a file of the lobby's should be there: move that folder away, or choose another --data-dir"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a folder should be there: move that file away, or choose another --data-dir"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or choose another --data-dir",
        _ => "make it writable or choose another with --data-dir",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_about_what_is_wrong() {
        for (code, said) in [
            (libc::EACCES, "make it writable or choose another with --data-dir"),
            (libc::EROFS, "make it writable or choose another with --data-dir"),
            (libc::ENOSPC, "free some space, or choose another --data-dir"),
            (libc::EDQUOT, "free some space, or choose another --data-dir"),
            (libc::EMFILE, "let the program have more open files (ulimit -n)"),
        ] {
            let error = StartError::DataDir { path: "data".into(), source: io::Error::from_raw_os_error(code) };
            assert!(error.to_string().ends_with(said), "{error}");
        }
    }
}
