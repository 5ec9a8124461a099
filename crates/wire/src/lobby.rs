//! The lobby protocol: documents 000 and 001, rulings L1 to L15. Big-endian.
//!
//! A server sends a [`Registration`] every 30 seconds and an [`Unregister`] when it stops, both over UDP. A client sends a
//! [`ListRequest`] over TCP and reads one block per server, as the reply arrives ([`ListReader`]) or as a whole ([`blocks`]).

mod block;
mod id;
mod list;
mod registration;
mod revision;
mod table;

pub use block::{Endpoint, ListBlock};
pub use id::{ListId, ProtocolId, ServerId};
pub use list::{ListReader, ListRequest, blocks, emit_list};
pub use registration::{Datagram, Layout, Occupancy, Registration, Transport, Unregister};
pub use revision::Revision;
pub use table::{Entries, Entry, EntryError, Table, TableBuf};

/// Port of the lobby, UDP and TCP.
pub const PORT: u16 = 29_944;

/// Default limit for the size of a registration, in bytes (L15).
pub const DEFAULT_MAX_REGISTRATION: usize = 4_096;

/// Highest limit that an operator can configure for the size of a registration: what fits into a UDP datagram (L15).
pub const MAX_REGISTRATION: usize = 65_507;

/// Largest block that existing clients accept, in bytes (L15).
pub const MAX_BLOCK: usize = 100_000;
