//! Requests of a node to the store, and the replies.

use crate::record::{EntryValue, LogRecord};
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use thiserror::Error;

/// Version of the layout of keys and values. A node refuses a store with a later one, or with one before [`OLDEST_FORMAT`].
///
/// Nodes of neighbouring versions have the same layout, or know each other's. These additions leave it as it is, because
/// earlier versions ignore them: keys, fields of `meta`, of log records, messages and reports, kinds of messages, flags of
/// entries, origins, reasons for a removal, and kinds of log records that do not change the list. Anything else needs another
/// format. A node that knows it goes on with the old one until all nodes report that they know the new one, and then begins a
/// new epoch: a node that does not know the format reads it when it opens the store again, and is refused.
pub const FORMAT: u32 = 1;

/// The oldest layout that this version works with.
pub const OLDEST_FORMAT: u32 = 1;

/// Identifies a request, so that its reply can be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    pub(crate) session: u64,
    pub(crate) kind: RequestKind,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// [`Request::Open`].
    Open,
    /// [`Request::Tick`].
    Tick,
    /// [`Request::Write`].
    Write,
    /// [`Request::Renew`].
    Renew,
    /// [`Request::Fetch`].
    Fetch,
    /// [`Request::Scan`].
    Scan,
    /// [`Request::Bans`].
    Bans,
    /// [`Request::ReadLog`]. It can take some seconds, and is executed on a connection of its own.
    ReadLog,
}

/// A request to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads the state of the store; one that is empty is given this epoch.
    Open {
        /// Unique to this request.
        epoch: [u8; 16],
        /// [`ClusterSecret::check_value`](crate::ClusterSecret::check_value).
        secret_check: [u8; 16],
    },
    /// Ends leases that are due, reports the node, and reads the state of the log.
    Tick {
        /// The epoch in which this is valid.
        epoch: [u8; 16],
        /// Identifies the changes that this makes.
        token: [u8; 16],
        /// The node.
        node: u64,
        /// The node's report about itself, if one is due.
        report: Option<Vec<u8>>,
        /// Number of the last change that is known.
        after: u64,
    },
    /// Writes changes, in this order.
    Write {
        /// The epoch in which they are valid.
        epoch: [u8; 16],
        /// The changes, each with its token.
        writes: Vec<([u8; 16], Write)>,
    },
    /// Renews leases.
    Renew(Vec<LeaseWrite>),
    /// Reads the current state of servers.
    Fetch(Vec<PublicId>),
    /// Reads the next part of all entries.
    Scan {
        /// 0 at first, then as in the last reply.
        cursor: u64,
    },
    /// Reads all bans.
    Bans,
    /// Reads the log after this change, and waits some seconds for a record if there is none.
    ReadLog {
        /// Number of the last change that is known.
        after: u64,
    },
}

impl Request {
    /// The kind of the request.
    #[must_use]
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Open { .. } => RequestKind::Open,
            Self::Tick { .. } => RequestKind::Tick,
            Self::Write { .. } => RequestKind::Write,
            Self::Renew(_) => RequestKind::Renew,
            Self::Fetch(_) => RequestKind::Fetch,
            Self::Scan { .. } => RequestKind::Scan,
            Self::Bans => RequestKind::Bans,
            Self::ReadLog { .. } => RequestKind::ReadLog,
        }
    }
}

/// A change. Times are in milliseconds of the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A server is listed with these endpoints, besides those of the other family that other nodes wrote.
    Put {
        /// The server.
        id: PublicId,
        /// Its state.
        value: Box<EntryValue>,
        /// When the leases of its IPv4 and its IPv6 endpoint end; 0 without one.
        leases: [u64; 2],
    },
    /// A server has left the list.
    Remove {
        /// The server.
        id: PublicId,
        /// Why.
        reason: UnlistReason,
        /// A server with a later lease than this stays.
        deadline: u64,
    },
    /// A ban was added, changed or lifted.
    Ban(BanWrite),
}

/// A ban that was added, changed or lifted. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanWrite {
    /// Its subject.
    pub subject: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// When the operator decided it; an earlier decision does not replace a later one.
    pub since: u64,
    /// When the ban ends or was lifted; 0 if it has no end.
    pub end: u64,
    /// Whether the operator decides it now: then it is later than all others, whatever the clocks of the nodes are.
    pub is_current: bool,
}

/// A lease to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseWrite {
    /// The server.
    pub id: PublicId,
    /// Whether it is the lease of its IPv6 endpoint.
    pub is_ipv6: bool,
    /// Its end, in milliseconds of the store's clock.
    pub deadline: u64,
}

/// The reply to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The state of the store.
    Opened(OpenedStore),
    /// The state of the log; `None` if the store has another epoch, or none.
    Ticked(Option<Ticked>),
    /// One result for each change; `None` if the store has another epoch, or none.
    Written(Option<Vec<WriteResult>>),
    /// The servers whose leases the store does not have.
    Renewed(Vec<PublicId>),
    /// The state of the requested servers, in order; `None` for those that the store does not have.
    Fetched(Vec<Option<EntryValue>>),
    /// Entries. The scan is complete if the cursor is 0. Malformed ones are only counted.
    Scanned {
        /// Where to continue.
        cursor: u64,
        /// Entries, possibly some that were returned before.
        entries: Vec<(PublicId, EntryValue)>,
        /// Number of values that are not entries.
        malformed: u64,
    },
    /// Bans: subjects and values.
    Bans {
        /// The bans.
        bans: Vec<(Vec<u8>, Vec<u8>)>,
        /// Number of further ones, which were left out because there are too many.
        left_out: usize,
        /// Number of values that are too long to be bans; 1 if the key has another program's value.
        malformed: u64,
    },
    /// Records of the log, in order; none if there are none yet. A malformed record ends them.
    Log {
        /// The records.
        records: Vec<LogRecord>,
        /// Whether a record followed that is not one.
        is_malformed: bool,
    },
}

/// The state of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedStore {
    /// Version of the layout.
    pub format: u32,
    /// Derived from the secret with which the store was set up.
    pub secret_check: Vec<u8>,
    /// Identifies this content of the store: one that was emptied has another.
    pub epoch: [u8; 16],
    /// Number of the last change.
    pub seq: u64,
    /// Token of the last change.
    pub token: Vec<u8>,
    /// The store's time in milliseconds.
    pub time: u64,
}

/// The state of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// Number of the last change.
    pub seq: u64,
    /// Token of the last change.
    pub token: Vec<u8>,
    /// The store's time in milliseconds.
    pub time: u64,
    /// The nodes that reported, this one included; only if the request had a report.
    pub nodes: Option<Vec<NodeRow>>,
    /// Whether there are further leases that have ended.
    pub has_more: bool,
    /// Number of servers in the store.
    pub servers: u64,
    /// Number of bans in the store, in force or not; `None` if their key has another program's value.
    pub bans: Option<u64>,
    /// Whether the log has the change after the last one that was known when the tick was sent, if there is one.
    pub is_log_complete: bool,
}

/// A node in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Random number of the node.
    pub node: u64,
    /// When it last reported, in milliseconds of the store's clock.
    pub time: u64,
    /// Its report.
    pub report: Vec<u8>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// The change was made, or the store had that state already, with this number; 0 if it does not have the server.
    Done(u64),
    /// The change was refused; this is the state of the server in the store.
    Refused(Conflict, Option<Box<EntryValue>>),
}

/// The state in the store that contradicts a refused change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The server, or another one at its endpoint, registered later with another node.
    Stale,
    /// The endpoint belongs to a server that the cluster queries itself (W38).
    Taken,
    /// The server has just unregistered (L11).
    Tombstone,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct StoreError {
    /// Its meaning for the node.
    pub kind: StoreErrorKind,
    /// One sentence for the operator.
    pub message: String,
}

/// The meaning of a [`StoreError`] for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The store cannot be reached, or does not answer in time.
    Unreachable,
    /// The store refuses changes: it is a replica, out of memory, or its disk is full.
    ReadOnly,
    /// A reply is too large to be one of a store that only nodes write to.
    TooLarge,
    /// A key of the cluster has another program's value.
    Foreign,
    /// The store has lost its content. It is set up again at once, unless that happens again and again.
    Emptied,
    /// The store refuses the node: password, user, certificate, or it is not Redis or Valkey.
    Rejected,
}

impl StoreErrorKind {
    /// A short name, for programs that read the state of a node.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreachable => "store_unreachable",
            Self::ReadOnly => "store_read_only",
            Self::TooLarge | Self::Foreign => "store_foreign_value",
            Self::Rejected => "store_rejected",
            Self::Emptied => "store_emptied",
        }
    }

    /// One sentence for everyone: unlike the message of the error, it does not name the store.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Unreachable => "the store cannot be reached, or does not answer in time",
            Self::ReadOnly => "the store refuses changes: it is a replica, out of memory, or its disk is full",
            Self::TooLarge | Self::Foreign => "a key of the cluster has another program's value",
            Self::Rejected => "the store refuses the node: password, user or certificate, or it is not Redis or Valkey",
            Self::Emptied => "the store has lost its content, and is being filled again",
        }
    }
}
