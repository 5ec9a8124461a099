//! The lobby protocol of old Gang Garrison 2 versions (L16). Ports and lengths are little-endian, UUIDs big-endian.
//!
//! A server sends a [`Registration`] over UDP; a client sends a [`ListRequest`] over TCP and reads one [`ListEntry`] per
//! server, as the reply arrives ([`ListReader`]) or as a whole ([`entries`]). Instead of the fields of the current lobby
//! protocol there is a human-readable text, which [`Info`] parses and emits.
//!
//! ```
//! use rallypoint_wire::legacy::{Counts, Info, Registration, protocol_of_version};
//!
//! let counts = Counts { players: 3, bots: 0, slots: 10 };
//! let info = Info { map: Some(b"ctf_truefort"), name: b"Bacon Town 24/7", counts: Some(counts), ..Info::default() };
//! let sent = Registration { protocol_id: protocol_of_version(41), port: 8190.try_into()?, info };
//! let mut bytes = Vec::new();
//! sent.emit(&mut bytes);
//! assert!(bytes.ends_with(b"[ctf_truefort] Bacon Town 24/7 [3/10]"));
//! assert_eq!(Registration::parse(&bytes)?, sent);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod info;
mod list;
mod registration;
mod version;

pub use info::{Counts, Info};
pub use list::{ListEntry, ListReader, ListRequest, emit_list, entries};
pub use registration::Registration;
pub use version::{protocol_of_version, version_of_protocol};

/// Port of the legacy lobby, UDP and TCP.
pub const PORT: u16 = 29_942;

/// Maximum number of servers in a list: the count is one byte.
pub const MAX_SERVERS: usize = 255;
