//! How much is kept, and where.

use std::{path::PathBuf, time::Duration};

/// How history is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The file. Its folder is made if it is not there.
    pub path: PathBuf,
    /// How long everything is kept.
    pub retention: Retention,
    /// How many have a history.
    pub limits: Limits,
    /// The file stays below so many bytes: what does not fit is not recorded, as if the disk were full.
    pub max_bytes: u64,
    /// How many can read at once, from 1 on.
    pub readers: usize,
    /// How long the file may be locked by somebody else before the writer tries again a minute later, and how long a
    /// reader waits for its turn.
    pub patience: Duration,
}

/// How long what is kept. A day less of minutes than of hours, and of hours than of days, makes no sense but no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Days for which every minute is kept.
    pub minutes: u32,
    /// Days for which every hour is kept.
    pub hours: u32,
    /// Days for which every day is kept; and for how long a server that is not seen any more is known at all.
    pub days: u32,
}

/// Bounds for what strangers can make the file remember: anybody can register any number of servers for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For how many minutes in a row something must be listed before it gets a history.
    pub warm_up: u32,
    /// How many servers have one. If there are more, those that were listed for longer win.
    pub servers: usize,
    /// The same for lobbies.
    pub lobbies: usize,
}

impl Options {
    /// The defaults, for a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            retention: Retention::default(),
            limits: Limits::default(),
            max_bytes: 4 << 30,
            readers: 4,
            patience: Duration::from_secs(5),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { minutes: 2, hours: 40, days: 730 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up: 5, servers: 20_000, lobbies: 1_000 }
    }
}
