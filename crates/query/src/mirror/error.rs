//! Why a copy is not used.

use crate::ProbeError;
use rallypoint_minisign::{KeyId, SignatureError};
use std::time::Duration;

/// Why the copy of a mirror is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// It cannot be had.
    #[error(transparent)]
    Fetch(#[from] ProbeError),
    /// The signature is not one of the expected key.
    #[error(transparent)]
    Signature(#[from] SignatureError),
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
    /// It is correctly signed, but it is no list.
    #[error("it is signed, but it is not the list of a lobby")]
    NotAList,
    /// It is made for later versions of this program.
    #[error("it has format {0}, which this version does not know: update this program")]
    NewerFormat(u32),
    /// It is the copy of another lobby.
    #[error("it is a copy of {0}")]
    OtherLobby(String),
    /// It is too old.
    #[error("it is {} old, and copies are used for at most {}", length(*.age), length(*.max))]
    TooOld {
        /// Its age.
        age: Duration,
        /// The maximum age.
        max: Duration,
    },
    /// It was made in the future.
    #[error("it was made {} in the future: is this machine's clock right?", length(*.0))]
    FromTheFuture(Duration),
}

/// A duration in words: "3 minutes".
pub(super) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
