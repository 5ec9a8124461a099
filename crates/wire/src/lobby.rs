//! The lobby: documents 000 and 001, rulings L1 to L15. Big-endian.
//!
//! A server sends a [`Registration`] every 30 seconds and an [`Unregister`] when it stops, both by UDP. A client sends a
//! [`ListRequest`] by TCP and reads blocks, one per server, as they come ([`ListReader`]) or as a whole ([`blocks`]).

mod block;
mod id;
mod list;
mod registration;
mod table;

pub use block::{Endpoint, ListBlock};
pub use id::{LobbyId, ProtocolId, ServerId};
pub use list::{ListReader, ListRequest, blocks, emit_list};
pub use registration::{Datagram, Layout, Occupancy, Registration, Transport, Unregister};
pub use table::{Entries, Entry, EntryError, Table, TableBuf};

/// The port of the lobby, UDP and TCP.
pub const PORT: u16 = 29_944;

/// The largest registration that is accepted unless the operator says otherwise (L15).
pub const DEFAULT_MAX_REGISTRATION: usize = 4_096;

/// The largest registration that an operator can allow: what fits into a UDP datagram (L15).
pub const MAX_REGISTRATION: usize = 65_507;

/// The largest block that existing clients accept (L15).
pub const MAX_BLOCK: usize = 100_000;
