//! Errors at the start of a lobby, each one sentence for the operator.

use crate::AdminFileError;
use rallypoint_lobby_proto::{RegistryConfigError, doors::Door};
use rallypoint_udp::{BindError, EntropyError, is_too_many_open_files};
use std::{io, path::PathBuf};
use thiserror::Error;

/// Why a lobby cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LobbyStartError {
    /// A socket of a door cannot be bound.
    #[error("{error}")]
    Bind {
        /// The door.
        door: &'static Door,
        /// The system's error.
        error: BindError,
    },
    /// The operating system provides no random bytes for keys and hash seeds.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// No address is configured, or only IPv6 addresses on a machine without IPv6.
    #[error("there is no address to listen on")]
    NoAddress,
    /// The data directory cannot be used.
    #[error(
        "cannot write to the data directory {path}: {source}; {}, or choose another data directory",
        data_dir_advice(source),
        path = path.display(),
    )]
    DataDir {
        /// The file or directory that cannot be used.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The data directory cannot be opened because too many files are open.
    #[error(
        "cannot write to the data directory {path}: {source}; raise the limit of open files (ulimit -n)",
        path = path.display(),
    )]
    TooManyOpenFiles {
        /// The file or directory that cannot be opened.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The data directory is used by another lobby.
    #[error(
        "the data directory {path} is used by another lobby: stop that lobby, or choose another data directory",
        path = path.display(),
    )]
    DataDirInUse {
        /// The directory.
        path: PathBuf,
    },
    /// The operator's bans and notes cannot be read.
    #[error(transparent)]
    AdminFile(#[from] AdminFileError),
    /// The configuration is contradictory or out of range.
    #[error(transparent)]
    Config(#[from] RegistryConfigError),
    /// The system cannot create a thread or register a socket.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl LobbyStartError {
    /// A file or directory in the data directory that cannot be used.
    pub(crate) fn data_dir(path: PathBuf, source: io::Error) -> Self {
        if is_too_many_open_files(&source) {
            Self::TooManyOpenFiles { path, source }
        } else {
            Self::DataDir { path, source }
        }
    }
}

/// A hint for the operator about a data directory that cannot be used.
fn data_dir_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::IsADirectory => "a file is expected there: move that directory away",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a directory is expected there: move that file away"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        _ => "make it writable",
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_advice_depends_on_the_error_of_the_system() {
        for (code, advice) in [
            (libc::EACCES, "; make it writable, or choose another data directory"),
            (libc::EROFS, "; make it writable, or choose another data directory"),
            (libc::ENOSPC, "; free some space, or choose another data directory"),
            (libc::EDQUOT, "; free some space, or choose another data directory"),
            (libc::EMFILE, "; raise the limit of open files (ulimit -n)"),
        ] {
            let error = LobbyStartError::data_dir("data".into(), io::Error::from_raw_os_error(code));
            assert!(error.to_string().ends_with(advice), "{error}");
        }
    }
}
