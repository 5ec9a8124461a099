//! Signed static copies of a lobby's list: written by a lobby, published by any web server, verified by clients while the lobby
//! does not answer (W120 to W122).
//!
//! ```text
//! servers.json       all servers               [`FILE`]; every file has a signature beside it, `*.minisig`
//! servers.signed     signature and document    [`SIGNED_FILE`]: what a client reads, so that both are of the same age
//! rallypoint.pub     the public key            [`KEY_FILE`]
//! index.html         the list for people
//! lists/*.bin        the reply of each list    document 001, as a file
//! ```
//!
//! [`LobbyCopy`] decides whether a copy is accepted. With the feature `writer`, a `CopyWriter` writes copies into a directory.
//!
//! ```
//! use rallypoint_mirror::{CopyRules, FILE, LobbyCopy, minisign::{SigningKey, TrustedComment}};
//!
//! let document = br#"{"format":1,"hosts":[],"max_age":86400,"servers":["a server"]}"#;
//! // The seed is secret and comes from a secure random generator.
//! let key = SigningKey::from_seed([7; 32])?;
//! let comment = TrustedComment { timestamp: 1_800_000_000, file: FILE.into() };
//! let signed = [key.sign(document, &comment).to_string().as_bytes(), document].concat();
//!
//! let rules = CopyRules { key: &key.public(), lobby: "lobby.example.org", max_age: None, now: 1_800_000_060 };
//! let copy: LobbyCopy<String> = LobbyCopy::open(&signed, &rules)?;
//! assert_eq!((copy.made_at, &*copy.servers[0]), (1_800_000_000, "a server"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod copy;
pub mod minisign;
mod pin;
#[cfg(feature = "writer")]
mod writer;

pub use copy::{CopyError, CopyRules, LobbyCopy, age_in_words};
pub use pin::{InvalidPinnedKey, KeyPins, PinnedKey};
#[cfg(feature = "writer")]
pub use writer::{CopySnapshot, CopySource, CopyWriter, ExportError, ExportKey, ExportStats, ListFile};

/// The name of the document with all servers. The signature contains it.
pub const FILE: &str = "servers.json";

/// The name of the file that a client reads: the signature of [`FILE`], followed by its content.
pub const SIGNED_FILE: &str = "servers.signed";

/// The name of the file with the public key.
pub const KEY_FILE: &str = "rallypoint.pub";

/// The page with the list for people.
pub const PAGE: &str = "index.html";

/// The directory of the raw lists, below that of the copy.
pub const LISTS: &str = "lists";

/// The version of the document.
pub const FORMAT: u32 = 1;
