//! The lobby service: registrations over UDP, the list over TCP, reachability checks, verification, watched servers, bans, and
//! the saved list.
//!
//! [`LobbyService`] runs a [`Registry`](rallypoint_lobby_proto::Registry) on sockets.
//!
//! ```
//! use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
//! use rallypoint_lobby_proto::doors::LOBBY;
//!
//! let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! let options = LobbyOptions { doors: DoorAddrs::lobby(vec!["127.0.0.1:0".parse()?]), ..LobbyOptions::default() };
//! let lobby = LobbyService::start(options, runtime.handle())?;
//! println!("servers register at {}", lobby.local_addrs()[&LOBBY][0]);
//! assert_eq!(lobby.stats().listed, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`ServerTable`] is the table of listed servers for displays, fed by the registry's events; [`ServerFeed`] gives other
//!   tasks its latest snapshot and its updates.
//! * Verification probes servers that state how to query them (E1) and compares their replies with their registrations:
//!   [`Verification`], [`Differences`].
//! * [`AdminStore`] holds the bans and notes that the operator has added at run time, and writes an audit log.
//! * [`WatchTarget`] is a server that does not register and is listed while it replies to probes.
#![forbid(unsafe_code)]

mod admin;
mod announcement;
mod check;
mod cluster;
mod data_dir;
mod door_addrs;
mod latency;
mod list;
mod log_throttle;
mod masked_addr;
mod memory;
mod probe;
mod probe_report;
mod service;
mod table;
pub mod text;
mod verify;
mod wall_clock;
mod watch;

pub use admin::{AdminError, AdminFileError, AdminRecord, AdminStore, AuditEntry, Lifts, Note, StoredBan};
pub use announcement::AnnouncementError;
pub use cluster::{
    BanChange, BoxFuture, CheckCoordinator, ClusterLink, ClusterNodeStatus, ClusterProblem, ClusterStatus,
    NodeIdentity, OperatorDecision, Peers,
};
pub use door_addrs::DoorAddrs;
pub use list::{ListLimits, ListStats};
pub use log_throttle::LogThrottle;
pub use masked_addr::MaskedAddr;
pub use memory::default_memory_cap;
pub use probe::ProbePool;
pub use probe_report::{AllOutcomes, FailedCheckAge, NodeLatency, NodeOutcome, ProbeReport};
pub use service::{LobbyEvents, LobbyOptions, LobbyService, LobbyStartError, SaveStats, SocketStats};
pub use table::{
    FoldedTexts, PUBLISH_INTERVAL, ServerFeed, ServerRecord, ServerTable, Subscription, TableChange, TableScope,
    TableSnapshot, TableUpdate, Totals,
};
pub use verify::{Differences, SessionKeyStatus, Verification, VerificationResult};
pub use wall_clock::{WallClock, unix_now};
pub use watch::WatchTarget;
