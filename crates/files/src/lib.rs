//! Files that only their owner can read, and that are replaced completely or not at all, even if the power fails.
//!
//! The permission to read a file is a mode on Unix. On Windows a new file inherits the permissions of its directory, and those of a
//! user's own directories exclude other users.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("secret");
//! rallypoint_files::replace(&path, b"of its owner")?;
//! assert!(!rallypoint_files::is_open_to_others(&path.metadata()?));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod replace;

pub use replace::{NewFile, replace};

use std::{
    fs::{DirBuilder, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Options with which a file or a directory is created so that only its owner can use it.
pub trait OwnerOnly {
    /// Makes what is created accessible to its owner only. It does not change what exists.
    fn owner_only(&mut self) -> &mut Self;
}

impl OwnerOnly for OpenOptions {
    fn owner_only(&mut self) -> &mut Self {
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(self, 0o600);
        self
    }
}

impl OwnerOnly for DirBuilder {
    fn owner_only(&mut self) -> &mut Self {
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(self, 0o700);
        self
    }
}

/// Creates a directory, and those above it, that only its owner can use. It may exist already.
///
/// # Errors
/// An error of the system.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).owner_only().create(path)
}

/// Creates a directory, and those above it, that all users can read, whatever the umask. What exists is not changed.
///
/// # Errors
/// An error of the system.
pub fn create_public_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_public_dir(parent)?;
    }
    std::fs::create_dir(path)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Whether users outside the file's group can access it; false where files have no modes.
#[must_use]
pub fn is_open_to_others(file: &Metadata) -> bool {
    has_mode(file, 0o007)
}

/// Whether users other than the owner can access the file; false where files have no modes.
#[must_use]
pub fn is_open_to_group_or_others(file: &Metadata) -> bool {
    has_mode(file, 0o077)
}

#[cfg(unix)]
fn has_mode(file: &Metadata, bits: u32) -> bool {
    std::os::unix::fs::MetadataExt::mode(file) & bits != 0
}

#[cfg(not(unix))]
fn has_mode(_file: &Metadata, _bits: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_directories_are_created_with_those_above_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        create_public_dir(&path).unwrap();
        create_public_dir(&path).unwrap();
        #[cfg(unix)]
        for directory in [&*path, path.parent().unwrap()] {
            assert!(
                has_mode(&directory.metadata().unwrap(), 0o005) && !has_mode(&directory.metadata().unwrap(), 0o022)
            );
        }
        std::fs::write(path.join("file"), "").unwrap();
        assert!(create_public_dir(&path.join("file")).is_err() && create_public_dir(&path.join("file/d")).is_err());
    }
}
