//! The session protocol (document 003), sans I/O: from a login to reliable, encrypted messages.
//!
//! An [`Endpoint`] is the server side of one socket, a [`Client`] the other side. Both have the five calls of
//! [`Machine`](rallypoint_machine::Machine), and are driven by the owner of a socket and a clock, such as the crate
//! `rallypoint-session`.
//!
//! ```
//! use rallypoint_machine::Machine;
//! use rallypoint_session_proto::{Client, ClientConfig, Endpoint, EndpointConfig, ONLY_CHANNEL, ServerEvent};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Instant::now();
//! let server_addr = "192.0.2.1:45555".parse()?;
//! let client_addr = "192.0.2.2:1000".parse()?;
//! let mut server = Endpoint::new(EndpointConfig::for_game("tag"), [1; 32])?;
//! let mut client = Client::new(now, server_addr, ClientConfig::new("alice", "tag"), [2; 32])?;
//! let mut bytes = Vec::new();
//! for _ in 0..4 {
//!     while client.poll_transmit(now, &mut bytes).is_some() {
//!         server.handle_datagram(now, client_addr, &std::mem::take(&mut bytes));
//!     }
//!     while server.poll_transmit(now, &mut bytes).is_some() {
//!         client.handle_datagram(now, server_addr, &std::mem::take(&mut bytes));
//!     }
//! }
//! let Some(ServerEvent::Connected(new)) = server.poll_event() else { panic!("no player connected") };
//! assert_eq!(new.username, "alice");
//! if let Err(error) = server.send(now, new.player, ONLY_CHANNEL, b"welcome") {
//!     println!("{}: {error}", new.username); // the player has left, or its window is full: the others are served all the same
//! }
//! while server.poll_transmit(now, &mut bytes).is_some() {
//!     client.handle_datagram(now, server_addr, &std::mem::take(&mut bytes));
//! }
//! assert_eq!(client.recv(), Some((ONLY_CHANNEL, &b"welcome"[..])));
//! # Ok(())
//! # }
//! ```
//!
//! The time and all randomness come from outside: the seeds must be unpredictable.
#![forbid(unsafe_code)]

mod channels;
mod client;
mod config;
mod connection;
mod crypto;
mod deadline_queue;
mod endpoint;
mod error;
mod event;
mod reason;
#[cfg(test)]
mod recorded_sessions;
mod rng;
mod session;
mod session_machine;
mod stats;
mod stream;

pub use channels::{
    Channel, ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, ConnectToken, MessageId,
    TokenClaims, TokenError, TokenIssuer, TokenKey, TokenVerifier, WallClock,
};
pub use client::Client;
pub use config::{
    ClientConfig, ConnectionConfig, Encryption, EncryptionPolicy, EndpointConfig, Layer, SessionConfigError,
};
pub use connection::Connection;
pub use crypto::{Cipher, KeyError, PublicKey, StaticKey};
pub use endpoint::{Endpoint, QueryReplies};
pub use error::{DisconnectReason, LoginError, SendError};
pub use event::{ClientEvent, LoginRequest, NewPlayer, PlayerId, ServerEvent};
pub use rallypoint_limit::{Budget, Rate};
pub use rallypoint_wire::session::SlotIndex;
pub use session::ONLY_CHANNEL;
pub use session_machine::SessionMachine;
pub use stats::{ConnectionStats, EndpointStats};
pub use stream::{StreamError, StreamReader, StreamWriter};
