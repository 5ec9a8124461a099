//! The list of a lobby from a mirror, while the lobby itself does not answer (W120 to W122).
//!
//! A lobby exports its list as signed files, which any web server can publish. A client reads one of them,
//! [`SIGNED_FILE`]: a signature, and the JSON document that it signs. [`LobbyCopy`] decides whether it is accepted, without I/O;
//! [`MirrorConfig`] fetches it, and remembers the key of each lobby with the help of [`KeyPins`].

#[cfg(feature = "http")]
mod copy;
#[cfg(feature = "http")]
mod error;
#[cfg(feature = "http")]
mod fallback;
#[cfg(feature = "http")]
mod pin;

#[cfg(feature = "http")]
pub use copy::{CopyRules, LobbyCopy};
#[cfg(feature = "http")]
pub use error::MirrorError;
#[cfg(feature = "http")]
pub use fallback::{MirrorConfig, MirrorEvent, MirroredList};
#[cfg(feature = "http")]
pub use pin::{KeyPins, PinnedKey};
#[cfg(feature = "http")]
pub use rallypoint_minisign::PublicKey;

/// The name of the document with all servers. The signature contains it.
pub const FILE: &str = "servers.json";

/// The name of the file that a client reads: the signature of [`FILE`], followed by its content.
pub const SIGNED_FILE: &str = "servers.signed";

/// The name of the file with the public key.
pub const KEY_FILE: &str = "rallypoint.pub";

/// The version of the document.
pub const FORMAT: u32 = 1;
