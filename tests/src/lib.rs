//! Test harness that runs the real `rallypoint` program over loopback sockets.
//!
//! Every test starts its own [`Lobby`] (the real binary, on free ports, in a directory of its own), lets [`GameServer`]s
//! register from any address of 127.0.0.0/8, and reads the list as a game would. Tests of other commands start them as a
//! [`Process`], or [`run`] them to completion, against [`MockServer`]s and [`Room`]s.
//!
//! Expected changes are polled for with [`eventually`]; the absence of a change is asserted after [`Lobby::settle`], when
//! everything that was sent earlier has been processed. No test sleeps for a fixed time and hopes.
//!
//! ```no_run
//! use rallypoint_harness::{GameServer, Lobby};
//!
//! let lobby = Lobby::with(&["lobby.lease=2s"]);
//! lobby.register(&GameServer::named("Bacon Town").from_ip("127.1.2.3"));
//! lobby.wait_until_listed(&["Bacon Town"]);
//! ```
#![forbid(unsafe_code)]

mod binary;
mod client;
mod command;
mod game_server;
mod lobby;
pub mod markdown;
mod mock_server;
#[cfg(target_os = "linux")]
mod network_namespace;
mod process;
mod redact;
mod redis_server;
mod room;
mod router;
mod signal;
mod skip;
mod static_files;
mod vectors;
mod wait;

pub use binary::program;
pub use client::{
    LIST_PROTOCOL, ParsedServer, connect, connect_from, connect_with_minimal_buffers, connect_with_small_buffer,
    http_get, list, list_request, read_to_end, send_request,
};
pub use command::{rallypoint, run, run_in_terminal, run_with_input, stderr, stdout};
pub use game_server::GameServer;
pub use lobby::{CLUSTER_SECRET, Lobby, LobbyBuilder};
pub use mock_server::{MockServer, QueryProtocol, SHORT_TIMEOUT, TcpPort, closed_udp_port, sample_info};
#[cfg(target_os = "linux")]
pub use network_namespace::{CABLES, Cable, SecondMachine, is_inside_a_namespace};
pub use process::Process;
pub use redact::{collapse_spaces, redact_ports_and_pings, redact_times};
pub use redis_server::{RedisCluster, RedisServer};
pub use room::{Room, join};
pub use router::Router;
pub use signal::Signal;
pub use skip::{has_ipv6, skip};
pub use static_files::StaticFiles;
pub use vectors::{hex, vectors};
pub use wait::{TIMEOUT, eventually, wait_for};
