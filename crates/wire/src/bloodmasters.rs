//! The Bloodmasters query protocol: document 002, rulings B1 to B12. The length is little-endian, everything else big-endian
//! (B1).
//!
//! A client sends a [`Query`], a server answers with a [`Reply`] that carries the same [`Echo`]. A datagram can hold
//! several messages ([`messages`]), and a server answers each query among them ([`queries`]) in a datagram of its own (B3).
//! The [`master_list`] has the addresses of the servers.
//!
//! An empty datagram makes real servers stop answering (B10). Nothing here emits one.
//!
//! ```
//! use rallypoint_wire::bloodmasters::{ClientsBuf, Echo, GameType, Info, Query, Reply, Rules, queries};
//!
//! let mut datagram = Vec::new();
//! Query { echo: Echo(*b"ping") }.emit(&mut datagram);
//!
//! let info = Info { title: b"Mayan night", map_name: b"mayanctf", game_type: GameType::CAPTURE_THE_FLAG, ..Info::default() };
//! for query in queries(&datagram) {
//!     let clients = ClientsBuf::new();
//!     let reply = Reply::new(query.echo, info, Rules::default(), clients.as_clients(), b"Example 1.0")?;
//!     let mut answer = Vec::new();
//!     reply.emit(&mut answer);
//!     assert_eq!(Reply::parse(&answer)?, reply);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod info;
pub mod master_list;
mod message;
mod names;
mod plain;
mod reply;
mod string;

pub use client::{Client, Clients, ClientsBuf, TooManyClients};
pub use info::{Info, Rules};
pub use message::{Echo, Message, Messages, Query, messages, queries};
pub use names::{GameType, Team};
pub use plain::{ascii, strip_colours};
pub use reply::{Reply, ReplyTooLong};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "bloodmasters";

/// Name of the query protocol for people.
pub const TITLE: &str = "Bloodmasters (document 002)";

/// Default UDP port of a server (B8).
pub const PORT: u16 = 6_969;

/// Largest reply in bytes: what fits into a UDP datagram over IPv4, which is slightly less than the maximum of the length
/// field.
pub const MAX_REPLY: usize = 65_507;
