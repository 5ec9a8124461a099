//! Keeps a game server registered with lobbies (document 001).
//!
//! A lobby lists a server for as long as it hears from it: the server registers, repeats that every 30 seconds, and
//! unregisters when it ends. This crate does that, over IPv4 and IPv6, and follows lobbies whose DNS records change. It
//! compiles nothing of the lobby itself and needs no async runtime.
//!
//! ```text
//! AnnounceThread      a background thread: start it and forget it
//! AnnounceTask        for tokio (feature `async`)
//!        │
//! PolledAnnouncer     for game loops: sockets and name resolution, one call per frame
//!        │
//!    Announcer        the state machine: no sockets, no clock
//! ```
//!
//! # Registering a game
//!
//! ```
//! use rallypoint_announce::{AnnounceConfig, AnnounceThread, Occupancy};
//!
//! # let lobby_socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
//! # let lobby = lobby_socket.local_addr()?.to_string(); // such as "lobby.example.org"
//! let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
//! config.lobbies.push(lobby.parse()?);
//! config.occupancy.slots = 24;
//! let announce = AnnounceThread::start(config)?;
//!
//! // While the game runs:
//! announce.set_occupancy(Occupancy { slots: 24, players: 3, ..Occupancy::default() });
//!
//! // At the end: removes the server from the list. Dropping `announce` does the same.
//! announce.stop();
//! # let mut datagram = [0; 512];
//! # let (len, _) = lobby_socket.recv_from(&mut datagram)?;
//! # assert!(datagram[..len].windows(15).any(|bytes| bytes == b"Bacon Town 24/7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod announcer;
mod config;
mod error;
mod event;
mod lobby_host;
mod polled;
mod resolver;
mod sockets;
#[cfg(feature = "async")]
mod task;
mod thread;

pub use announcer::Announcer;
pub use config::AnnounceConfig;
pub use error::{AnnounceError, AnnounceStartError, ParseLobbyHostError};
pub use event::{AnnounceEvent, SendFailure};
pub use lobby_host::{LobbyHost, ResolvedLobby};
pub use polled::PolledAnnouncer;
#[cfg(feature = "async")]
pub use task::AnnounceTask;
pub use thread::AnnounceThread;

// The types of the protocol that a configuration consists of.
pub use rallypoint_wire::lobby::{ListId, Occupancy, ProtocolId, ServerId, Transport};
