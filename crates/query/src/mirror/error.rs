//! Why a mirror is not used.

use crate::ProbeError;
use rallypoint_mirror::{CopyError, minisign::KeyId};

/// Why the copy of a mirror is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// It cannot be had.
    #[error(transparent)]
    Fetch(#[from] ProbeError),
    /// It is not accepted.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The mirror has no valid key, and none is known.
    #[error("its public key cannot be read, and the key of this lobby is not known: {0}")]
    NoKey(String),
    /// The copy is signed with another key than those before.
    #[error(
        "it is signed with the key {found}, but the key of this lobby was {pinned}: it may be a forgery; ask the operator \
         whether the key has changed"
    )]
    KeyChanged {
        /// The key that the copy names.
        found: KeyId,
        /// The key that is remembered.
        pinned: KeyId,
    },
}
