//! A damaged file is kept for whoever wants to look at it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// If so many are there already, the disk is at fault, and more of them would only fill it.
const MOST: u32 = 9;

/// Sets a file aside, with what SQLite has beside it: its log belongs to the old file, and must not come near the new one.
/// What happens every minute is told only if it is new.
pub(crate) fn set_aside(path: &Path, is_new: bool) {
    let free = (1..=MOST).map(|number| with(path, &format!(".damaged-{number}"))).find(|aside| !aside.exists());
    let Some(aside) = free else {
        if is_new {
            let file = path.display();
            tracing::error!(%file, "too many damaged files are beside it: there is no history until they are gone");
        }
        return;
    };
    let result = fs::rename(path, &aside);
    for end in ["-wal", "-shm"] {
        let _ = fs::rename(with(path, end), with(&aside, end));
    }
    match result {
        Ok(()) => tracing::warn!(kept_as = %aside.display(), "the history is set aside, and begins anew"),
        Err(_) if !is_new => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "the damaged history cannot be set aside"),
    }
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}
