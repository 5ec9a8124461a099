//! Sockets, batches, clock and entropy: what drives the state machines, and serves the list.
//!
//! This is the one crate that does I/O for the protocols. Linux.
#![deny(unsafe_code)]

mod clock;
mod entropy;
mod list;
mod lobby;

pub use list::{ListLimits, ListStats};
pub use lobby::{LobbyOptions, LobbyService, LocalAddrs, SocketStats, StartError};
