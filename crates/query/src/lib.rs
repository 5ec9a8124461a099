//! Scanning game servers, lobbies and master lists over sockets.
//!
//! For launchers, bots and monitors: the engine behind `rallypoint query`, `list`, `ping`, `check`, `watch` and `browse`.
//!
//! * [`Target`] is a server, a lobby or a master list, as users write them: `play.example.org:6969`,
//!   `session://[2001:db8::1]`, `lobby://lobby.example.org/gg2`, `https://lobby.example.org/bloodmasterslist.php`.
//! * [`Scanner`] scans targets and returns a [`ScanEvent`] with a [`ScannedServer`] for each server, as it is found: thousands
//!   of servers per second, with retries, at a configurable rate.
//! * [`SingleProbe`] probes one server on a socket of its own.
//! * [`fetch_list`] reads a list without probing its servers.
//!
//! ```no_run
//! use rallypoint_query::{ScanConfig, ScanEvent, Scanner};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut scanner = Scanner::new(ScanConfig::default(), ["lobby://lobby.example.org/gg2".parse()?])?;
//! scanner.begin_pass();
//! while let Some(event) = scanner.next().await {
//!     match event {
//!         ScanEvent::Answered(server) => println!("{}: {:?} players", server.name(), server.info.players),
//!         ScanEvent::ListFailed(_, error) => eprintln!("no list: {error}"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A pass over one target takes these steps:
//!
//! ```text
//! Scanner    reads lists (list, tcp, http), resolves names, and hands groups of probes to the
//! └─ ProbeEngine    a thread with UDP sockets; the first answer of a group counts
//!    ├─ Prober            rate, retries, deadlines (rallypoint-query-proto)
//!    └─ StreamExchange    protocols over TCP and HTTP, one connection each (rallypoint-query-proto)
//! ```
//!
//! Everything that comes from the network is bounded, and safe to display. HTTP and TLS are behind the feature `http`.
#![forbid(unsafe_code)]

mod capture;
mod config;
mod engine;
mod error;
#[cfg(feature = "http")]
pub mod http;
mod list;
pub mod list_names;
#[cfg(feature = "http")]
pub mod mirror;
mod resolve;
mod route;
mod scanned_server;
mod scanner;
mod single;
mod stream;
mod target;
mod tcp;

pub use capture::{Direction, PacketObserver, PcapWriter};
pub use config::{Family, ScanConfig, ScanConfigError};
pub use engine::{GroupResult, ProbeEngine, ProbeFailure, ProbeReply};
pub use error::{ProbeError, ScanError};
pub use list::{FetchedServer, ListSummary, fetch_list};
pub use rallypoint_query_proto as proto;
pub use resolve::resolve;
pub use route::local_address_for;
pub use scanned_server::{ReplyStats, ScannedServer, milliseconds};
pub use scanner::{ScanEvent, ScanProgress, Scanner};
pub use single::{SingleProbe, SingleProbeConfig};
pub use target::{Host, HttpUrl, LobbyAddress, ParseTargetError, ServerAddress, Target, split_port};
pub use tcp::connect_tcp;
