//! What the recorder wants to have written.

use crate::{Event, Sample, Subject, UnixSeconds, clock::Clock, subject::Key};
use rallypoint_wire::lobby::LobbyId;

/// What one sweep adds to the file. All of it is written, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The beginning of the minute.
    pub time: UnixSeconds,
    /// What the clock is known for, from this minute on.
    pub clock: Clock,
    /// Whatever the file has after this is wrong, and goes before anything else is done.
    pub wrong_after: Option<UnixSeconds>,
    /// They have a history from now on.
    pub new: Vec<New>,
    /// They have none any more. A key is never both new and forgotten.
    pub forgotten: Vec<Key>,
    /// Everything that was seen, by ascending key.
    pub samples: Vec<(Key, Sample)>,
    /// More players than ever before.
    pub peaks: Vec<(Key, u32)>,
    /// What happened, in order.
    pub events: Vec<(Key, Event)>,
}

/// A subject that the file does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct New {
    pub key: Key,
    pub subject: Subject,
    pub first: UnixSeconds,
    pub lobby: Option<LobbyId>,
    pub name: String,
    pub map: String,
}

/// A subject that the file has: what the recorder has to know of it after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub key: Key,
    pub subject: Subject,
    /// When it was last seen, as far as that is rolled up: it may have been seen later.
    pub last: UnixSeconds,
    /// How many minutes it was seen in all.
    pub minutes: u32,
    pub peak: u32,
    pub listed: bool,
    pub name: String,
    pub map: String,
}
