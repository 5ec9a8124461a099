//! The keys of lobbies that are known.

use crate::minisign::PublicKey;
use std::{fmt, str::FromStr};

/// The key of a lobby's copies, and the newest copy that was seen. Written as the key and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedKey {
    /// The key.
    pub key: PublicKey,
    /// When the newest copy was made, in seconds since 1970; 0 if none was seen.
    pub newest: u64,
}

/// Remembers the keys of lobbies, by their names.
pub trait KeyPins: fmt::Debug + Send + Sync {
    /// The key of a lobby, if it is known.
    fn pinned(&self, lobby: &str) -> Option<PinnedKey>;

    /// Stores the key of a lobby, in place of an earlier one.
    fn pin(&self, lobby: &str, key: PinnedKey);
}

/// A text that is not a pinned key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a public key and a time")]
pub struct InvalidPinnedKey;

impl fmt::Display for PinnedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.newest)
    }
}

impl FromStr for PinnedKey {
    type Err = InvalidPinnedKey;

    fn from_str(text: &str) -> Result<Self, InvalidPinnedKey> {
        let (key, newest) = text.split_once(' ').unwrap_or((text, "0"));
        let key = key.parse().map_err(|_| InvalidPinnedKey)?;
        Ok(Self { key, newest: newest.trim().parse().map_err(|_| InvalidPinnedKey)? })
    }
}
