//! The lobby of documents 000 and 001, without sockets and clocks.
//!
//! * [`Registry`] is the list itself: it is given datagrams and the time, and every datagram ends in exactly one
//!   [`RegistrationOutcome`]. It publishes prebuilt replies ([`PublishedLists`]) that any thread can read without waiting.
//!
//! ```
//! use rallypoint_lobby_proto::{Config, RegistrationOutcome, Registry, HashKeys};
//! use rallypoint_wire::lobby::*;
//! use std::time::Instant;
//!
//! let mut registry = Registry::new(Config::default(), HashKeys::default(), Instant::now())?;
//! let mut table = TableBuf::new();
//! table.push(b"name", b"Bacon Town 24/7")?;
//! let id = ServerId::from_bytes([7; 16]);
//! let lobby = LobbyId::GANG_GARRISON_2;
//! let mut datagram = Vec::new();
//! Registration::new(id, lobby, Transport::Udp, 8190.try_into()?, Occupancy::default(), table.as_table())?.emit(&mut datagram);
//!
//! let outcome = registry.handle_datagram(Instant::now(), "203.0.113.9:51000".parse()?, &datagram);
//! assert_eq!(outcome, RegistrationOutcome::Listed);
//! registry.publish(Instant::now());
//! assert_eq!(registry.lists().lobby(&lobby).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod addresses;
mod bans;
mod checks;
mod config;
mod entry;
mod hash;
mod latest_refusals;
mod legacy;
mod lists;
mod outcome;
mod recent_outcomes;
mod registry;
mod stats;
mod wheel;

pub use rallypoint_limit::NetworkSet;

pub use addresses::{AddressMap, Mapping, canonical};
pub use bans::{
    Ban, BanError, BanList, BanSubject, BannedServer, NamePattern, Network, ParseNetworkError, operator_text,
};
pub use checks::{CheckKind, CheckRequest, CheckResult, CheckStats, CheckTarget};
pub use config::{Caps, CheckConfig, Config, ConfigError};
pub use entry::{ListedServer, ListingOrigin, ParsePublicIdError, PublicId};
pub use latest_refusals::LatestRefusal;
pub use lists::{ListReply, ListSnapshot, LobbyList, PublishedLists};
pub use outcome::{RegistrationOutcome, UnlistReason};
pub use recent_outcomes::RecentOutcome;
pub use registry::{Event, HashKeys, ProbedOutcome, ProbedServer, Registry, RestoreError, SaveFileWriter};
pub use stats::RegistryStats;
