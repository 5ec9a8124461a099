//! The lobby protocol of documents 000 and 001 without sockets and clocks: registry, leases and prebuilt list replies.
//!
//! A [`Registry`] is given datagrams and the time; every datagram ends in exactly one [`RegistrationOutcome`]. It publishes
//! prebuilt replies ([`PublishedLists`]), which any thread can read without waiting, and reports changes as [`Event`]s.
//!
//! ```
//! use rallypoint_lobby_proto::{Config, HashKeys, RegistrationOutcome, Registry};
//! use rallypoint_wire::lobby::*;
//! use std::time::Instant;
//!
//! let mut registry = Registry::new(Config::default(), HashKeys::default(), Instant::now())?;
//! let mut table = TableBuf::new();
//! table.push(b"name", b"Bacon Town 24/7")?;
//! let id = ServerId::from_bytes([7; 16]);
//! let list = ListId::GANG_GARRISON_2;
//! let mut datagram = Vec::new();
//! Registration::new(id, list, Transport::Udp, 8190.try_into()?, Occupancy::default(), table.as_table())?.emit(&mut datagram);
//!
//! let outcome = registry.handle_datagram(Instant::now(), "203.0.113.9:51000".parse()?, &datagram);
//! assert_eq!(outcome, RegistrationOutcome::Listed);
//! registry.publish(Instant::now());
//! assert_eq!(registry.lists().list(&list).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The features `serde` (bans in JSON) and `invariants` (a self-check of the registry, for tests) are off by default.
#![forbid(unsafe_code)]

mod address_map;
mod bans;
mod checks;
mod config;
pub mod doors;
mod entry;
mod hash;
mod index;
mod latest_refusals;
mod listed_server;
mod lists;
mod outcome;
mod public_id;
mod recent_outcomes;
mod registry;
mod stats;
mod wheel;

pub use address_map::{AddressMap, Mapping};
pub use bans::{
    Ban, BanList, BanSubject, CanonicalNetwork, MAX_OPERATOR_TEXT, NamePattern, OperatorInputError, ParseNetworkError,
    UnlistedServer, operator_text,
};
pub use checks::{CheckKind, CheckRequest, CheckResult, CheckStats, CheckTarget, FailedCheckTimes};
pub use config::{Caps, CheckConfig, Config, RegistryConfigError};
pub use hash::HashKeys;
pub use latest_refusals::LatestRefusal;
pub use listed_server::{ListedServer, ListingOrigin};
pub use lists::{ListReply, ListSnapshot, PublishedList, PublishedLists};
pub use outcome::{RegistrationOutcome, UnlistReason};
pub use public_id::{ParsePublicIdError, PublicId};
pub use rallypoint_limit::NetworkSet;
pub use recent_outcomes::RecentOutcome;
pub use registry::{
    ApplyMode, ApplyOutcome, Event, LeaseRenewal, LocalChange, ProbedOutcome, ProbedServer, Registry, Removal,
    ReplicatedEndpoint, ReplicatedServer, RestoreError, SaveFileWriter,
};
pub use stats::RegistryStats;
