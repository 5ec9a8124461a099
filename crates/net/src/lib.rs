//! Sockets, batches, clock and entropy: what drives the state machines, and serves the list.
//!
//! This is the one crate that does I/O for the protocols. Linux.
#![deny(unsafe_code)]

mod batch;
mod check;
mod clock;
mod driver;
mod entropy;
mod list;
mod lobby;
mod mask;
mod store;
mod sys;
mod udp;
mod waker;

pub use batch::{Received, RecvBatch, SendBatch};
pub use driver::{Commands, Driven, Driver, Solo};
pub use list::{ListLimits, ListStats};
pub use lobby::{LobbyOptions, LobbyService, LocalAddrs, SocketStats, StartError};
pub use mask::Masked;
pub use udp::UdpSocket;
