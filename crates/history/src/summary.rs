//! The summary of a subject.

use crate::{Subject, UnixSeconds};

/// Key figures of a subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The subject.
    pub subject: Subject,
    /// The latest name of a server, made safe for display and truncated if it is very long. Empty for other subjects.
    pub name: String,
    /// The latest map of a server, likewise.
    pub map: String,
    /// When the subject was first listed.
    pub first: UnixSeconds,
    /// The last minute in which it was listed.
    pub last: UnixSeconds,
    /// Whether a server was listed in the last recorded minute.
    pub listed: bool,
    /// The maximum number of players, if it ever had one.
    pub peak: Option<Peak>,
    /// Fractions of the last 24 hours, 7 days and 30 days in which it was listed. Only minutes that were recorded since its
    /// history began are counted; `None` if there are none.
    pub uptime: [Option<f64>; 3],
}

/// The maximum number of players of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Number of players.
    pub players: u32,
    /// When this number was first reached.
    pub time: UnixSeconds,
}
