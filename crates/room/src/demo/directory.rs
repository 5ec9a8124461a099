//! The directory of a demo, which is removed at its end. A demo that is killed cannot do that, so the next one does.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The start of the name of every such directory.
const PREFIX: &str = "rallypoint-demo-";

/// A file that a running demo has locked. It is not empty, once it has been locked.
const LOCK: &str = "lock";

pub struct DemoDirectory {
    /// Closed before the directory is removed, which some systems require.
    _lock: File,
    directory: TempDir,
}

impl DemoDirectory {
    /// Creates a directory below that for temporary files, and removes those of demos that were killed.
    pub fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        let lock = locked_file(&directory.path().join(LOCK))?;
        for path in abandoned(&parent, directory.path()) {
            // A directory that cannot be removed does no harm here.
            let _ = fs::remove_dir_all(path);
        }
        Ok(Self { _lock: lock, directory })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn locked_file(path: &Path) -> io::Result<File> {
    let mut file = File::create(path)?;
    file.try_lock()?;
    file.write_all(b"locked\n")?;
    Ok(file)
}

/// The directories in `parent` that demos of the same user have left behind.
fn abandoned(parent: &Path, own: &Path) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    let owner = fs::metadata(own).map(|metadata| owner(&metadata)).ok();
    let candidates = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let is_named_so = entry.file_name().to_str()?.starts_with(PREFIX);
        // That of the entry itself, not of what a link leads to.
        let metadata = entry.metadata().ok()?;
        (is_named_so && metadata.is_dir() && Some(self::owner(&metadata)) == owner).then(|| entry.path())
    });
    candidates.filter(|path| path != own && is_abandoned(path)).collect()
}

/// Whether a demo has locked the directory, and no longer does.
fn is_abandoned(directory: &Path) -> bool {
    let Ok(lock) = File::options().read(true).write(true).open(directory.join(LOCK)) else { return false };
    lock.metadata().is_ok_and(|metadata| metadata.len() > 0) && lock.try_lock().is_ok()
}

#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

/// Elsewhere each user has a directory for temporary files.
#[cfg(not(unix))]
fn owner(_: &fs::Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directories_of_ended_demos_are_abandoned() {
        let parent = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let own = directory("rallypoint-demo-own");
        let running = directory("rallypoint-demo-running");
        let lock = locked_file(&running.join(LOCK)).unwrap();
        let starting = directory("rallypoint-demo-starting");
        File::create(starting.join(LOCK)).unwrap();
        directory("rallypoint-demo-without-a-lock");
        let other = directory("other");
        drop(locked_file(&other.join(LOCK)).unwrap());
        let killed = directory("rallypoint-demo-killed");
        drop(locked_file(&killed.join(LOCK)).unwrap());

        assert_eq!(abandoned(parent.path(), &own), std::slice::from_ref(&killed));
        drop(lock);
        let mut found = abandoned(parent.path(), &own);
        found.sort();
        assert_eq!(found, [killed, running]);
    }
}
