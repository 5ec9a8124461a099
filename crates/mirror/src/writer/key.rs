//! The key that signs copies.

use crate::minisign::{PublicKey, SigningKey};
use rallypoint_files::is_open_to_others;
use rallypoint_udp::entropy;
use std::{fs, io, path::Path};

/// The key that signs copies of a lobby's list.
#[derive(Debug)]
pub struct ExportKey(SigningKey);

/// Size of the file in bytes.
const SIZE: usize = 32;

impl ExportKey {
    /// The name of the file in the data directory.
    pub const FILE: &str = "export.key";

    /// Reads the key from a file, which is created at first use. A file that is not a key is an error: clients remember the key, so
    /// it must not change by accident.
    ///
    /// # Errors
    /// If the file cannot be read or created, or is not a key.
    pub fn load_or_create(path: &Path) -> io::Result<Self> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let seed: [u8; SIZE] = match fs::read(path) {
            Ok(bytes) => bytes.try_into().map_err(|_| invalid("it is not 32 bytes long: restore it from a backup"))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let seed = entropy::bytes().map_err(io::Error::other)?;
                rallypoint_files::replace(path, &seed)?;
                seed
            }
            Err(error) => return Err(error),
        };
        if is_open_to_others(&path.metadata()?) {
            tracing::warn!(file = %path.display(), "other users can read the key that signs copies of the list: run chmod 600");
        }
        SigningKey::from_seed(seed).map(Self).map_err(|error| invalid(&error.to_string()))
    }

    /// The key with which clients verify copies.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.0.public()
    }

    pub(super) fn signing_key(&self) -> &SigningKey {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_created_once_and_belongs_to_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ExportKey::FILE);
        let key = ExportKey::load_or_create(&path).unwrap().public();
        assert_eq!(ExportKey::load_or_create(&path).unwrap().public(), key);
        assert!(!rallypoint_files::is_open_to_group_or_others(&path.metadata().unwrap()));
        fs::write(&path, b"short").unwrap();
        let error = ExportKey::load_or_create(&path).unwrap_err();
        assert!(error.to_string().contains("not 32 bytes"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"short", "it is not replaced");
    }
}
