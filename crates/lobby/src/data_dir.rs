//! The data directory: the saved list, and the key from which public IDs are derived.
//!
//! Only the user of the lobby can read the files. A file is replaced completely or not at all, even if the power fails.

use crate::LobbyStartError;
use rallypoint_files::{NewFile, OwnerOnly, create_private_dir};
use rallypoint_udp::entropy;
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

const SERVERS: &str = "servers.save";
const KEY: &str = "public-id.key";
const LOCK: &str = "lock";

/// The data directory. It is locked against other lobbies while this exists.
#[derive(Debug)]
pub(crate) struct DataDir {
    dir: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Opens and locks the directory; creates it if it does not exist.
    pub fn open(dir: &Path) -> Result<Self, LobbyStartError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            |source| LobbyStartError::data_dir(path, source)
        };
        create_private_dir(dir).map_err(fail(dir))?;
        let path = dir.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).owner_only().open(&path);
        let lock = lock.map_err(fail(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(LobbyStartError::DataDirInUse { path: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(LobbyStartError::data_dir(path, source)),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The key from which public IDs are derived. It is created at the first start.
    pub fn public_id_key(&self) -> Result<[u8; 16], LobbyStartError> {
        let path = self.dir.join(KEY);
        let fail = |source| LobbyStartError::data_dir(path.clone(), source);
        if let Some(bytes) = self.read(KEY).map_err(fail)? {
            match bytes.try_into() {
                Ok(key) => return Ok(key),
                Err(_) => set_file_aside(&path, &"it is not 16 bytes long"),
            }
        }
        let key = entropy::bytes()?;
        rallypoint_files::replace(&path, &key).map_err(fail)?;
        Ok(key)
    }

    /// The saved list, if there is one.
    pub fn servers(&self) -> Result<Option<Vec<u8>>, LobbyStartError> {
        self.read(SERVERS).map_err(|source| LobbyStartError::data_dir(self.dir.join(SERVERS), source))
    }

    /// Starts to write a new save of the list.
    pub fn new_servers(&self) -> io::Result<NewFile> {
        NewFile::create(self.dir.join(SERVERS))
    }

    /// Renames a saved list that cannot be used, so that it can be examined.
    pub fn set_servers_aside(&self, reason: &dyn std::fmt::Display) {
        set_file_aside(&self.dir.join(SERVERS), reason);
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.dir.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Renames a file that cannot be used, so that it can be examined, and logs a warning.
pub(crate) fn set_file_aside(path: &Path, reason: &dyn std::fmt::Display) {
    let free = (1..).map(|n| with_suffix(path, &format!("damaged-{n}"))).find(|aside| !aside.exists());
    let Some(aside) = free else { return };
    match fs::rename(path, &aside) {
        Ok(()) => tracing::warn!(
            file = %path.display(),
            %reason,
            kept_as = %aside.display(),
            "unusable file renamed; starting without it"
        ),
        Err(error) => tracing::warn!(
            file = %path.display(),
            %reason,
            %error,
            "unusable file cannot be renamed; starting without it"
        ),
    }
}

/// The path with a suffix: `file.suffix`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}
