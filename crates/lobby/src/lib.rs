//! The lobby service: registrations over UDP, the list over TCP, reachability checks, and the list on disk for the next start.
//!
//! [`LobbyService`] runs a [`Registry`](rallypoint_lobby_proto::Registry) on sockets.
#![forbid(unsafe_code)]

mod check;
mod list;
mod mask;
mod seldom;
mod service;
mod store;

pub use list::{ListLimits, ListStats};
pub use mask::Masked;
pub use seldom::Seldom;
pub use service::{LobbyOptions, LobbyService, LocalAddrs, SaveStats, SocketStats, StartError};
pub use store::{replace_file, set_file_aside};
