//! Replacing a file.

use crate::OwnerOnly;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A file that replaces an old one once it is safely on the disk. Until then nothing has changed. Only its
/// owner can read it, unless it is created as a public one.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    new: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// Creates the file beside the one to be replaced, with the suffix `.new`.
    ///
    /// # Errors
    /// An error of the system.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        Self::create_with(path, OpenOptions::new().owner_only())
    }

    /// Creates a file that all users can read, whatever the umask: one that a web server publishes.
    ///
    /// # Errors
    /// An error of the system.
    pub fn create_public(path: PathBuf) -> io::Result<Self> {
        let new = Self::create_with(path, &mut OpenOptions::new())?;
        #[cfg(unix)]
        new.file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        Ok(new)
    }

    fn create_with(path: PathBuf, options: &mut OpenOptions) -> io::Result<Self> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        // A file left by a crash may have another owner and other permissions.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = options.write(true).create_new(true).open(&new)?;
        Ok(Self { file, new, path })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// An error of the system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Waits until the bytes are on the disk. A disk that is full is noticed here at the latest, so several files that belong
    /// together are all synced before the first is committed.
    ///
    /// # Errors
    /// An error of the system.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Replaces the old file.
    ///
    /// # Errors
    /// An error of the system. The old file is then still there.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.new, &self.path)?;
        sync_directory(&self.path)
    }
}

impl Drop for NewFile {
    /// Removes an incomplete file: most likely the disk is full.
    fn drop(&mut self) {
        // A committed file has another name by now.
        let _ = fs::remove_file(&self.new);
    }
}

/// Replaces a file completely or not at all, even if the power fails. Only its owner can read it.
///
/// # Errors
/// An error of the system. The old file is then still there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path.to_owned())?;
    file.write(bytes)?;
    file.commit()
}

/// Waits until the new name of a file is on the disk.
#[cfg(unix)]
fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Windows opens no directories; its file system writes names to its journal by itself.
#[cfg(not(unix))]
fn sync_directory(_file: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_complete_and_an_incomplete_one_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, b"old").unwrap();
        let mut half = NewFile::create(path.clone()).unwrap();
        half.write(b"ne").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(half);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        assert!(!crate::is_open_to_group_or_others(&fs::metadata(&path).unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn a_public_file_can_be_read_by_others_and_not_written() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = NewFile::create_public(path.clone()).unwrap();
        file.write(b"for all").unwrap();
        file.sync().unwrap();
        file.commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    }
}
