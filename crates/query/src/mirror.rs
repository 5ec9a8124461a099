//! The list of a lobby from a mirror, while the lobby itself does not answer (W120 to W122).
//!
//! [`LobbyCopy`](rallypoint_mirror::LobbyCopy) decides whether a copy is accepted, without I/O; [`MirrorConfig`] fetches it, and
//! remembers the key of each lobby with the help of [`KeyPins`].

mod copied_list;
mod error;
mod fallback;

pub use copied_list::CopiedList;
pub use error::MirrorError;
pub use fallback::{MirrorConfig, MirrorEvent, MirroredList};
pub use rallypoint_mirror::{CopyError, CopyRules, FILE, KeyPins, PinnedKey, minisign::PublicKey};
