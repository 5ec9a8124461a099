//! The data directory: the saved list, and the key from which public IDs are derived.
//!
//! Only the user of the lobby can read the files. A file is replaced completely or not at all, even if the power fails.

use crate::LobbyStartError;
use rallypoint_udp::entropy;
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
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

/// A file that replaces an old one once it is safely on the disk. Until then nothing has changed.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    new: PathBuf,
    path: PathBuf,
}

impl NewFile {
    fn create(path: PathBuf) -> io::Result<Self> {
        let new = with_suffix(&path, "new");
        // A file left by a crash may have another owner and other permissions.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        Ok(Self { file, new, path })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Replaces the old file.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.new, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for NewFile {
    /// Removes an incomplete file: most likely the disk is full.
    fn drop(&mut self) {
        // A committed file has another name by now.
        let _ = fs::remove_file(&self.new);
    }
}

impl DataDir {
    /// Opens and locks the directory; creates it if it does not exist.
    pub fn open(dir: &Path) -> Result<Self, LobbyStartError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            |source| LobbyStartError::data_dir(path, source)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail(dir))?;
        let path = dir.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
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
        replace_file(&path, &key).map_err(fail)?;
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

/// Replaces a file completely or not at all, even if the power fails. Only this user can read it.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path.to_owned())?;
    file.write(bytes)?;
    file.commit()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_complete_and_an_incomplete_one_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace_file(&path, b"old").unwrap();
        let mut half = NewFile::create(path.clone()).unwrap();
        half.write(b"ne").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(half);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        replace_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
}
