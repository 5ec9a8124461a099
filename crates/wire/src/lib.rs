//! Parsers and emitters for every protocol that Rallypoint implements.
//!
//! | module | document | contents |
//! |---|---|---|
//! | [`lobby`] | 000, 001 | registering and unregistering a server, requesting the list |
//! | [`legacy`] | ruling L16 | the lobby protocol of old Gang Garrison 2 clients |
//! | [`bloodmasters`] | 002, ruling L17 | querying a Bloodmasters server; its master list |
//! | [`quake3`] | dpmaster | heartbeats, descriptions and lists of Quake 3 and its relatives |
//! | [`session`] | 003 | queries, logins, data, acknowledgements |
//! | [`pcap`] | | packet capture files with datagrams |
//!
//! Parsing is total: any input gives a value or a [`DecodeError`], and never panics. Values borrow from the datagram; no
//! parser allocates. `emit` appends to a `Vec<u8>` that the caller reuses. There is no I/O and no clock.
//!
//! Enums of messages, such as [`lobby::Datagram`], are exhaustive on purpose: a receiver has to handle every message of its
//! protocol. Enums of errors are `#[non_exhaustive]`.
//!
//! ```
//! use rallypoint_wire::lobby::{Datagram, ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
//!
//! let mut table = TableBuf::new();
//! table.push(b"name", b"Bacon Town 24/7")?;
//! let lobby = ListId::GANG_GARRISON_2;
//! let occupancy = Occupancy { slots: 24, players: 7, ..Occupancy::default() };
//! let port = 8190.try_into()?;
//! let sent = Registration::new(ServerId::from_bytes([7; 16]), lobby, Transport::Tcp, port, occupancy, table.as_table())?;
//! let mut bytes = Vec::new();
//! sent.emit(&mut bytes);
//!
//! let Datagram::Register(received) = Datagram::parse(&bytes)? else { panic!("not a registration") };
//! assert_eq!(received.table().get(b"name"), Some(&b"Bacon Town 24/7"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bloodmasters;
mod counted;
mod error;
pub mod legacy;
pub mod lobby;
pub mod pcap;
pub mod quake3;
pub mod query;
mod reader;
pub mod session;
pub mod text;
mod writer;

pub use error::{DecodeError, DecodeErrorKind};
pub use reader::Reader;
pub use writer::Writer;
