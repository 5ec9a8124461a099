//! The output of the recorder.

use crate::{HistoryEvent, Sample, Subject, UnixSeconds, clock::ClockState, subject::Key};
use rallypoint_wire::lobby::ListId;

/// The rows that one observation adds to the file. They are written in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowBatch {
    /// The beginning of the minute.
    pub time: UnixSeconds,
    /// The state of the wall clock after this minute.
    pub clock: ClockState,
    /// Rows after this time are wrong, and are deleted before anything else is written.
    pub wrong_after: Option<UnixSeconds>,
    /// Subjects whose history begins.
    pub new: Vec<NewSubject>,
    /// Subjects whose history is deleted. A key is never both new and deleted.
    pub deleted: Vec<Key>,
    /// The samples of all subjects, in ascending order of their keys.
    pub samples: Vec<(Key, Sample)>,
    /// New maximum numbers of players.
    pub peaks: Vec<(Key, u32)>,
    /// Events, in order.
    pub events: Vec<(Key, HistoryEvent)>,
}

/// A subject that is not in the file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewSubject {
    pub key: Key,
    pub subject: Subject,
    pub first: UnixSeconds,
    pub list: Option<ListId>,
    pub name: String,
    pub map: String,
}

/// A subject of the file, as the recorder has to know it after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownSubject {
    pub key: Key,
    pub subject: Subject,
    /// When it was last listed, according to the rolled-up hours; it may have been listed later.
    pub last: UnixSeconds,
    /// Number of minutes in which it was listed.
    pub minutes: u32,
    pub peak: u32,
    pub listed: bool,
    pub name: String,
    pub map: String,
}
