//! Reading, from any thread, while somebody writes.

use crate::{
    Event, HistoryError, Resolution, Series, Stats, Subject, Summary, UnixSeconds, read, schema, stats::Shared,
};
use rusqlite::{Connection, OpenFlags};
use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Reads the history. Clones read the same one.
///
/// Each call takes up to some milliseconds and may wait for the disk: in asynchronous code it belongs into
/// `spawn_blocking`. No more than a few read at once; who does not get a turn in time gets [`HistoryError::Busy`].
///
/// Nobody who reads ever keeps the writer waiting, nor the other way round.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    shared: Arc<Shared>,
    patience: Duration,
    most: usize,
    idle: Mutex<Idle>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Idle {
    /// With the number of the file that they have open.
    connections: Vec<(u64, Connection)>,
    /// How many more are at work.
    busy: usize,
}

impl Handle {
    /// Reads a file, also while another program writes it.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if !path.exists() {
            return Err(HistoryError::Missing(path.to_owned()));
        }
        let handle = Self::new(path.to_owned(), Arc::default(), 1, Duration::from_secs(5));
        handle.read(|_| Ok(()))?;
        Ok(handle)
    }

    pub(crate) fn new(path: PathBuf, shared: Arc<Shared>, most: usize, patience: Duration) -> Self {
        let (idle, returned) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Pool { path, shared, patience, most: most.max(1), idle, returned }))
    }

    /// The points of a subject within some time, which is rounded outwards to whole steps. A subject without a history has
    /// points that say so.
    pub fn series(
        &self,
        subject: &Subject,
        range: Range<UnixSeconds>,
        resolution: Resolution,
    ) -> Result<Series, HistoryError> {
        self.read(|connection| read::series(connection, subject, &range, resolution))
    }

    /// A subject in a few numbers, if it has a history.
    pub fn summary(&self, subject: &Subject, now: UnixSeconds) -> Result<Option<Summary>, HistoryError> {
        self.read(|connection| read::summary(connection, subject, now))
    }

    /// What happened to a server before some moment (if given), the latest first. About 100 events are kept, and as many
    /// changes of the map.
    pub fn events(
        &self,
        subject: &Subject,
        limit: usize,
        before: Option<UnixSeconds>,
    ) -> Result<Vec<Event>, HistoryError> {
        self.read(|connection| read::events(connection, subject, limit, before.unwrap_or(UnixSeconds::MAX)))
    }

    /// Everything that has a history: the total, then lobbies, then servers; so many of them, from behind `after` on.
    pub fn subjects(&self, after: Option<&Subject>, limit: usize) -> Result<Vec<Subject>, HistoryError> {
        self.read(|connection| read::subjects(connection, after, limit))
    }

    /// How the writing goes.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.shared.stats()
    }

    /// Closes what nobody reads with, so that whoever closes the file for good can tidy up.
    pub(crate) fn close_idle(&self) {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).connections.clear();
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, HistoryError>) -> Result<T, HistoryError> {
        let file = self.0.shared.file();
        let mut turn = self.0.turn(file)?;
        let connection = match turn.connection.take() {
            Some(connection) => connection,
            None => self.0.connect()?,
        };
        let result = read(&connection);
        match &result {
            Err(HistoryError::Damaged(_)) => self.0.shared.report_damage(file),
            _ => turn.connection = Some(connection),
        }
        result
    }
}

/// The right to read, which ends by itself.
struct Turn<'a> {
    pool: &'a Pool,
    file: u64,
    connection: Option<Connection>,
}

impl Pool {
    fn turn(&self, file: u64) -> Result<Turn<'_>, HistoryError> {
        let until = Instant::now() + self.patience;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.busy >= self.most {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HistoryError::Busy);
            }
            (idle, _) = self.returned.wait_timeout(idle, left).unwrap_or_else(PoisonError::into_inner);
        }
        idle.busy += 1;
        // Those of a file that was set aside are of no use any more.
        idle.connections.retain(|(its, _)| *its == file);
        let connection = idle.connections.pop().map(|(_, connection)| connection);
        Ok(Turn { pool: self, file, connection })
    }

    fn connect(&self) -> Result<Connection, HistoryError> {
        if !self.path.exists() {
            return Err(HistoryError::Missing(self.path.clone()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.patience)?;
        connection.pragma_update(None, "query_only", true)?;
        schema::check(&connection)?;
        Ok(connection)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.busy -= 1;
        idle.connections.extend(self.connection.take().map(|connection| (self.file, connection)));
        drop(idle);
        self.pool.returned.notify_one();
    }
}
