//! What is kept over restarts: the list, and the key that public IDs are made with.
//!
//! Both files are for the lobby's eyes only. A file is replaced as a whole or not at all, whenever the power fails.

use crate::StartError;
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

/// The data directory. Nobody else can use it while this is there.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    _lock: File,
}

/// A file that takes the place of an old one when it is safely on the disk. Until then nothing has changed.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    new: PathBuf,
    path: PathBuf,
}

impl NewFile {
    fn create(path: PathBuf) -> io::Result<Self> {
        let new = beside(&path, "new");
        // What a crash has left here may belong to somebody else.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        Ok(Self { file, new, path })
    }

    /// Adds these bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// It is whole: now it counts.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.new, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for NewFile {
    /// What did not become whole takes up no room: most likely there was none.
    fn drop(&mut self) {
        // If it is whole, it has another name by now.
        let _ = fs::remove_file(&self.new);
    }
}

impl Store {
    /// Opens the directory, and makes it if it is not there.
    pub fn open(dir: &Path) -> Result<Self, StartError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            |source| StartError::DataDir { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail(dir))?;
        let path = dir.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(fail(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StartError::DataDirInUse { path: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(StartError::DataDir { path, source }),
        }
    }

    /// The key that public IDs are made with: a new one at the first start.
    pub fn public_id_key(&self) -> Result<[u8; 16], StartError> {
        let path = self.dir.join(KEY);
        let fail = |source| StartError::DataDir { path: path.clone(), source };
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

    /// The list as it was last saved.
    pub fn servers(&self) -> Result<Option<Vec<u8>>, StartError> {
        self.read(SERVERS).map_err(|source| StartError::DataDir { path: self.dir.join(SERVERS), source })
    }

    /// Begins to save the list.
    pub fn new_servers(&self) -> io::Result<NewFile> {
        NewFile::create(self.dir.join(SERVERS))
    }

    /// The list cannot be used: it is kept for whoever wants to look at it.
    pub fn set_servers_aside(&self, why: &dyn std::fmt::Display) {
        set_file_aside(&self.dir.join(SERVERS), why);
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.dir.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Replaces a file as a whole, or not at all, whenever the power fails. Only this user can read it.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path.to_owned())?;
    file.write(bytes)?;
    file.commit()
}

/// Moves a file that cannot be used out of the way, for whoever wants to look at it, and says so in the log.
pub fn set_file_aside(path: &Path, why: &dyn std::fmt::Display) {
    let free = (1..).map(|n| beside(path, &format!("damaged-{n}"))).find(|aside| !aside.exists());
    let Some(aside) = free else { return };
    match fs::rename(path, &aside) {
        Ok(()) => tracing::warn!(
            file = %path.display(),
            kept_as = %aside.display(),
            "a file cannot be used, because {why}: it is set aside, and the lobby starts without it"
        ),
        Err(error) => tracing::warn!(
            file = %path.display(),
            %error,
            "a file cannot be used, because {why}, nor set aside: the lobby starts without it"
        ),
    }
}

/// The same path with something behind its name.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_the_place_of_the_old_one_when_it_is_whole_and_leaves_nothing_if_it_never_is() {
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
