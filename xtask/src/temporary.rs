//! Temporary directories for tests.

use std::{
    env, fs,
    ops::Deref,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A temporary directory, removed with its contents when dropped.
pub struct Temporary(PathBuf);

impl Temporary {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = env::temp_dir().join(format!("xtask-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    /// Writes a file, and creates the directories above it.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }
}

impl Deref for Temporary {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
