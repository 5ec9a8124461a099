//! The subjects that have a history.

use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use std::fmt;

/// Seconds since 1970-01-01 00:00 UTC.
pub type UnixSeconds = i64;

/// A subject of the history: a server, a list, or all servers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// All servers of all lists. In minutes without a sample of it, the program did not run.
    Total,
    /// All servers of a list.
    List(ListId),
    /// One server.
    Server(PublicId),
}

/// The number of a subject in the file, which stands for its 16 bytes. Keys are never reused.
pub(crate) type Key = u32;

/// The key of [`Subject::Total`].
pub(crate) const TOTAL: Key = 0;

impl Subject {
    /// The kind: `total`, `list` or `server`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::List(_) => "list",
            Self::Server(_) => "server",
        }
    }

    /// The form in the file: a kind, and 16 bytes.
    pub(crate) fn parts(&self) -> (i64, [u8; 16]) {
        match self {
            Self::Total => (0, [0; 16]),
            Self::List(id) => (1, *id.as_bytes()),
            Self::Server(id) => (2, *id.as_bytes()),
        }
    }

    pub(crate) fn from_parts(kind: i64, id: [u8; 16]) -> Option<Self> {
        match kind {
            0 => Some(Self::Total),
            1 => Some(Self::List(ListId::from_bytes(id))),
            2 => Some(Self::Server(PublicId::from_bytes(id))),
            _ => None,
        }
    }
}

/// The ID; empty for the total.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Total => Ok(()),
            Self::List(id) => id.fmt(f),
            Self::Server(id) => id.fmt(f),
        }
    }
}
