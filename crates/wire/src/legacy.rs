//! The lobby protocol of old Gang Garrison 2 versions (L16). Ports and lengths are little-endian, UUIDs big-endian.
//!
//! A server sends a [`Registration`] by UDP; a client sends a [`ListRequest`] by TCP and reads a [`ListEntry`] per server, as
//! they come ([`ListReader`]) or as a whole ([`entries`]). Where the lobby of today has fields, this one has a text for
//! people: [`Info`] takes it apart and puts it together.
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

/// The port of the legacy lobby, UDP and TCP.
pub const PORT: u16 = 29_942;

/// How many servers a list can have: they are counted in one byte.
pub const MAX_SERVERS: usize = 255;
