//! The options of a history.

use std::{path::PathBuf, time::Duration};

/// The options of a [`History`](crate::History).
///
/// ```
/// use rallypoint_history::{HistoryOptions, Retention};
///
/// let retention = Retention { days: 365, ..Retention::default() };
/// let options = HistoryOptions { retention, ..HistoryOptions::new("history.db") };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryOptions {
    /// The SQLite file. Its folder is created if it does not exist.
    pub path: PathBuf,
    /// How long rows are kept.
    pub retention: Retention,
    /// Maximum numbers of servers and lists with a history.
    pub limits: SubjectLimits,
    /// Maximum size of the file in bytes. Beyond it nothing is recorded, as if the disk were full. Default: 4 GiB.
    pub max_bytes: u64,
    /// Maximum number of concurrent readers. At least 1; default 4.
    pub readers: usize,
    /// How long the writer waits for a lock of another program before it tries again a minute later, and how long a reader
    /// waits for a connection. Default: 5 s.
    pub busy_timeout: Duration,
}

/// How long rows are kept. Minutes that are kept longer than hours, or hours longer than days, are pointless but harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Number of days for which minutes are kept. Default: 2.
    pub minutes: u32,
    /// Number of days for which hours are kept. Default: 40.
    pub hours: u32,
    /// Number of days for which days are kept, and after which a server that is no longer listed is deleted. Default: 730.
    pub days: u32,
}

/// Bounds on the subjects with a history: any number of servers can be registered for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectLimits {
    /// Number of consecutive minutes for which a subject must be listed before its history begins. Default: 5.
    pub warm_up: u32,
    /// Maximum number of servers with a history. Servers that were listed longer take precedence. Default: 20,000.
    pub servers: usize,
    /// Maximum number of lists with a history, likewise. Default: 1,000.
    pub lists: usize,
}

impl HistoryOptions {
    /// The default options for a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            retention: Retention::default(),
            limits: SubjectLimits::default(),
            max_bytes: 4 << 30,
            readers: 4,
            busy_timeout: Duration::from_secs(5),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { minutes: 2, hours: 40, days: 730 }
    }
}

impl Default for SubjectLimits {
    fn default() -> Self {
        Self { warm_up: 5, servers: 20_000, lists: 1_000 }
    }
}
