//! The program `rallypoint` as strangers see it, over real sockets on loopback: the tests folder is a list of what it does.
//!
//! Every test starts its own [`Lobby`] (the real binary, at free ports, in a folder of its own), lets [`GameServer`]s
//! register from any address of 127.0.0.0/8, and looks at the list as a game would. What has to happen is waited for
//! ([`eventually`]); what must not happen is looked for after [`Lobby::settle`], when everything that was sent before has
//! been dealt with. Nothing sleeps for a time and hopes.
//!
//! ```no_run
//! use rallypoint_e2e::{GameServer, Lobby};
//!
//! let lobby = Lobby::with(&["lobby.lease=2s"]);
//! lobby.register(&GameServer::named("Bacon Town").from("127.1.2.3"));
//! lobby.until_listed(&["Bacon Town"]);
//! ```
#![forbid(unsafe_code)]

mod binary;
mod client;
mod game_server;
mod lobby;
mod process;
mod responder;
mod wait;

pub use client::{
    LISTS, Listed, ask, connect, connect_from, connect_stingily, connect_with_little_room, read_to_end, request,
};
pub use game_server::GameServer;
pub use lobby::{Lobby, Setup};
pub use process::{Ended, Process};
pub use responder::{Responder, TcpPort};
pub use rustix::process::Signal;
pub use wait::{LIMIT, eventually};

use std::net::{Ipv6Addr, UdpSocket};

/// Whether this machine has IPv6. A test that needs it says so when it has nothing to test.
#[must_use]
pub fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// Bytes from hexadecimal digits, as the vectors have them.
///
/// # Panics
/// If they are something else.
#[must_use]
pub fn hex(digits: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// The cases of a file of `crates/wire/tests/vectors`.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn vectors(name: &str) -> Vec<serde_json::Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/vectors");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).expect("the vectors");
    let file: serde_json::Value = serde_json::from_str(&text).expect("the vectors are JSON");
    file["cases"].as_array().expect("the vectors have cases").clone()
}
