//! Sockets, batches, clock and entropy: what drives the state machines, and serves the list.
//!
//! Everything else in Rallypoint is told what arrives and what time it is; this is where that comes from. (Linux.)
//!
//! * [`Driver`] runs any state machine on UDP sockets, in a thread of its own: [`RecvBatch`] and [`SendBatch`] move many
//!   datagrams per system call.
//! * [`LobbyService`] is the whole lobby: the registry in such a thread, the list over TCP, checks of servers, and the list
//!   on disk for the next start.
//! * [`SessionServer`] and [`SessionClient`] are the session protocol with async, [`PolledServer`] and [`PolledClient`] for
//!   game loops: no thread, no runtime, one call per frame.
//!
//! ```
//! use rallypoint_lobby::Announcer;
//! use rallypoint_net::{Driver, Solo, UdpSocket};
//! use rallypoint_wire::lobby::{LobbyId, ServerId, Transport};
//! use std::{sync::Arc, time::Instant};
//!
//! let socket = Arc::new(UdpSocket::bind("127.0.0.1:0".parse()?, 1 << 20)?);
//! let (id, lobby, port) = (ServerId::from_bytes([7; 16]), LobbyId::GANG_GARRISON_2, 8190.try_into()?);
//! let to = vec!["127.0.0.1:29944".parse()?];
//! let machine = Announcer::new(id, lobby, Transport::Udp, port, b"Bacon Town 24/7", to, Instant::now())?;
//! let driver = Driver::start("announcer", vec![socket], |_| Solo { machine, on_event: |()| {}, max_datagram: 0 })?;
//! driver.commands().run(|solo, _now| solo.machine.stop());
//! assert!(driver.stop().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod batch;
mod check;
mod clock;
mod driver;
mod entropy;
mod list;
mod lobby;
mod mask;
mod seldom;
mod session;
mod store;
mod sys;
mod udp;
mod waker;

pub use batch::{Received, RecvBatch, SendBatch};
pub use driver::{Commands, Driven, Driver, Solo};
pub use list::{ListLimits, ListStats};
pub use lobby::{LobbyOptions, LobbyService, LocalAddrs, SaveStats, SocketStats, StartError};
pub use mask::Masked;
pub use seldom::Seldom;
pub use session::{
    BindError, ClientOptions, ConnectError, FakeNetwork, Faked, Joined, NotAcknowledged, PolledClient, PolledServer,
    ServerEvent, ServerOptions, SessionClient, SessionEvent, SessionServer, new_static_key,
};
pub use store::{replace_file, set_file_aside};
pub use udp::{UdpSocket, Undelivered};
