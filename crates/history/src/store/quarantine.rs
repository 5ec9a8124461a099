//! Damaged files are kept for inspection.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// Maximum number of damaged files that are kept. With more of them the disk is most likely at fault.
const MAX_FILES: u32 = 9;

/// Moves a file aside together with the journal files of SQLite, which must not be applied to the new file. Failures that
/// repeat every minute are logged only if they are new.
pub(crate) fn set_aside(path: &Path, is_new: bool) {
    let free =
        (1..=MAX_FILES).map(|number| with_suffix(path, &format!(".damaged-{number}"))).find(|aside| !aside.exists());
    let Some(aside) = free else {
        if is_new {
            let file = path.display();
            tracing::error!(%file, "too many damaged history files; recording is paused until they are removed");
        }
        return;
    };
    let result = fs::rename(path, &aside);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix));
    }
    match result {
        Ok(()) => tracing::warn!(kept_as = %aside.display(), "the damaged history was renamed; a new one was created"),
        Err(_) if !is_new => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "the damaged history cannot be renamed"),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
