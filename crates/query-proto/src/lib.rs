//! Querying game servers, answering queries for one, and the common view of a server. No sockets and no clock.
//!
//! * [`ServerInfo`] describes a server, regardless of the source: a lobby (documents 000 and 001), a Bloodmasters server
//!   (document 002) or a server of the session protocol (document 003).
//! * [`Prober`] queries thousands of servers at once and emits one [`ProbeResult`] per server.
//! * [`StreamExchange`] queries one server over TCP or HTTP, for the protocols that are carried by a connection.
//! * [`Responder`] is the other side: it answers queries for a game, within byte budgets.
//!
//! ```
//! use rallypoint_machine::Machine;
//! use rallypoint_query_proto::{Probe, Prober, ProberConfig, Protocol, Responder, ResponderConfig, ServerInfo};
//! use std::{net::SocketAddr, time::Instant};
//!
//! let now = Instant::now();
//! let client: SocketAddr = "192.0.2.1:1".parse()?;
//! let server: SocketAddr = "192.0.2.2:2".parse()?;
//! let info = ServerInfo { name: Some("Bacon Town".into()), players: Some(3), ..ServerInfo::default() };
//! let mut responder = Responder::new(ResponderConfig::default(), 7, &info)?;
//! let mut prober = Prober::new(ProberConfig::default(), [7; 32])?;
//! prober.enqueue(Probe::new(server, Protocol::Session.info()))?;
//!
//! let mut datagram = Vec::new();
//! while prober.poll_transmit(now, &mut datagram).is_some() {} // the network, in one direction
//! responder.handle_datagram(now, client, &datagram);
//! while let Some(sent) = responder.poll_transmit(now, &mut datagram) { // and in the other
//!     prober.handle_datagram(now, server, &datagram[datagram.len() - sent.len..]);
//! }
//! let result = prober.poll_event().expect("the server has answered");
//! let reply = result.reply().filter(|reply| reply.is_complete()).expect("the reply is complete");
//! assert_eq!(reply.info.name.as_deref(), Some("Bacon Town"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Texts in a [`ServerInfo`] are safe to display; the bytes as received are in [`QueryReply::raw`] and, for servers from a
//! list, in [`LobbyInfo::entries`].
//!
//! # Adding a protocol
//!
//! 1. A wire file in `rallypoint-wire`, `src/query/name.rs`, with its scheme, its port, and what parses and emits its datagrams;
//!    its `mod` and its line in the table are in `src/query.rs`.
//! 2. A file `src/protocols/name.rs` here, with its `mod` in `src/protocols.rs`: it implements `QueryProtocol`, that is, what to
//!    send next, given what has arrived; how replies are put together and mapped to [`ServerInfo`]; and, if it has one, the
//!    responder. A protocol over TCP or HTTP says so in `TRANSPORT`; its steps are the same.
//! 3. Inputs in `fuzz/corpus/queries`, and captures in `tests/captures`.
//!
//! Schemes, `x-query`, checks, configuration, the command line, the documentation's table and the fuzz targets follow from the
//! table.
#![forbid(unsafe_code)]

mod exchange;
mod info;
mod probe;
mod prober;
mod protocols;
mod reply;
mod responder;
mod secret;
mod stream;

pub use exchange::Transport;
pub use info::{Extension, ExtensionValue, LobbyInfo, Mod, Player, ServerInfo, Team};
pub use probe::{Probe, QueueError, candidates};
pub use prober::{Prober, ProberConfig, ProberConfigError, ProberStats};
pub use protocols::{SessionReplies, transport};
pub use rallypoint_wire::query::{Detail, Protocol, ServerQuery, UnknownProtocol};
pub use reply::{MissingPart, ProbeOutcome, ProbeResult, QueryReply, RawReply, RoundTrip, RttMethod};
pub use responder::{Responder, ResponderConfig, ResponderStats};
pub use stream::{StreamAction, StreamExchange};
