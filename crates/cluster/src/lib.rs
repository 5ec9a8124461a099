//! Several lobby nodes with one registry, through Redis or Valkey.
//!
//! Every node has the whole registry in memory and answers from it. The store carries changes and leases between the nodes:
//!
//! * a change that a node accepts is listed there at once, and written to the store by a script that decides conflicts (L8)
//!   atomically and gives the change a number;
//! * every change is a record of a log, a stream in the store, which all nodes read in order;
//! * a refresh only moves a deadline in a sorted set, in batches, and is not logged;
//! * a node that joins, or that missed records, reads everything and then the log from there on.
//!
//! [`ClusterNode`] decides what to write, what to apply and when to read everything again. It has no sockets and no clock. Its
//! [`Request`]s are executed by a store; its [`Update`]s go to the
//! [`Registry`](rallypoint_lobby_proto::Registry).
//!
//! ```
//! use rallypoint_cluster::{ClusterNode, NodeConfig, NodeState, RequestKind, StoreError, StoreErrorKind};
//! use std::time::{Duration, Instant};
//!
//! let now = Instant::now();
//! let config =
//!     NodeConfig { node: 7, secret_check: [0; 16], outage_limit: Duration::from_secs(300), max_servers: 100_000 };
//! let mut node = ClusterNode::new(config, now);
//! // The first request opens the store. Here it cannot be reached: the node tries again later.
//! let (id, request) = node.poll_request(now).expect("a request");
//! assert_eq!(request.kind(), RequestKind::Open);
//! let error = StoreError { kind: StoreErrorKind::Unreachable, message: "connection refused".into() };
//! node.handle_reply(now, now, id, Err(error));
//! assert!(matches!(node.state(), NodeState::Disconnected(_)));
//! assert!(node.poll_timeout().is_some_and(|retry| retry > now));
//! ```
#![forbid(unsafe_code)]

mod client;
mod clock;
mod message;
mod name;
mod node;
mod record;
mod report;
mod request;
mod secret;
mod service;
mod url;

pub(crate) use client::MessageId;
pub use client::{NodeHealth, StoreClient, StoreConnection, StoreNode, StoreStatus};
pub use clock::StoreClock;
pub use name::{NAME_FORM, is_valid_name};
pub use node::{ClusterNode, ContactEvent, ContactMonitor, NodeConfig, NodeState, NodeStats, StoreDefect, Update};
pub use record::{EntryValue, LogRecord, MalformedRecord, RecordKind};
pub(crate) use report::{NodeReport, reported_nodes};
pub use request::{
    BanWrite, Conflict, FORMAT, LeaseWrite, NodeRow, OLDEST_FORMAT, OpenedStore, Reply, Request, RequestId,
    RequestKind, StoreError, StoreErrorKind, Ticked, Write, WriteResult,
};
pub use secret::{ClusterSecret, SecretError};
pub use service::{ClusterOptions, ClusterService, ClusterStartError, PreparedNode};
pub use url::{StoreUrl, StoreUrlError};
