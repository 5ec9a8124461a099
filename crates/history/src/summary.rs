//! A subject in a few numbers.

use crate::{Subject, UnixSeconds};

/// What there is to say about a subject in a few numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What it is about.
    pub subject: Subject,
    /// The last name of a server, fit to be shown; cut if it is very long. Empty for others.
    pub name: String,
    /// The last map of a server, likewise.
    pub map: String,
    /// When it was first seen.
    pub first: UnixSeconds,
    /// When it was last seen, to the minute.
    pub last: UnixSeconds,
    /// Whether it was listed at the last look. Only of servers.
    pub listed: bool,
    /// When it had the most players, if it ever had one.
    pub peak: Option<Peak>,
    /// For which share of the last 24 hours, 7 and 30 days it was listed. Counted are only minutes in which somebody
    /// looked since it has a history, which begins when it was listed for a few minutes; nothing if there are none.
    pub uptime: [Option<f64>; 3],
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// How many played.
    pub players: u32,
    /// When there were first so many.
    pub time: UnixSeconds,
}
