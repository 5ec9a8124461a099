//! The session protocol (document 003), sans I/O: from a login to reliable, encrypted messages.
//!
//! An [`Endpoint`] is the server side of one socket, a [`Client`] the other side. Both have the five calls of
//! [`Machine`](rallypoint_machine::Machine): whoever owns a socket and a clock drives them.
//!
//! ```
//! use rallypoint_machine::Machine;
//! use rallypoint_session_proto::{Client, ClientConfig, Endpoint, EndpointConfig, Event};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (now, here, there) = (Instant::now(), "192.0.2.1:45555".parse()?, "192.0.2.2:1000".parse()?);
//! let mut server = Endpoint::new(EndpointConfig::for_game("tag"), [1; 32])?;
//! let mut client = Client::new(now, here, ClientConfig::new("alice", "tag"), [2; 32])?;
//! let mut bytes = Vec::new();
//! for _ in 0..4 {
//!     while client.poll_transmit(now, &mut bytes).is_some() {
//!         server.handle_datagram(now, there, &std::mem::take(&mut bytes));
//!     }
//!     while server.poll_transmit(now, &mut bytes).is_some() {
//!         client.handle_datagram(now, here, &std::mem::take(&mut bytes));
//!     }
//! }
//! let Some(Event::Connected { player, username, .. }) = server.poll_event() else { panic!("nobody came") };
//! assert_eq!(username, "alice");
//! server.send(now, player, b"welcome")?;
//! while server.poll_transmit(now, &mut bytes).is_some() {
//!     client.handle_datagram(now, here, &std::mem::take(&mut bytes));
//! }
//! assert_eq!(client.recv(), Some(&b"welcome"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! The time and all randomness come from outside: the seeds have to be ones that nobody can guess.
#![forbid(unsafe_code)]

mod client;
mod config;
mod connection;
mod crypto;
mod deadlines;
mod endpoint;
mod entropy;
mod reason;
mod stats;
mod stream;

pub use client::{Client, ClientEvent, LoginError};
pub use config::{ClientConfig, ConfigError, ConnectionConfig, Encryption, EncryptionPolicy, EndpointConfig};
pub use connection::Connection;
pub use crypto::{KeyError, PublicKey, StaticKey};
pub use endpoint::{Endpoint, EndpointStats, Event, PlayerId, QueryAnswers};
pub use rallypoint_wire::session::SlotIndex;
pub use reason::{Reason, SendError};
pub use stats::ConnectionStats;
pub use stream::{StreamError, StreamReader, StreamWriter};
