//! Reading the history from any thread, also while it is written.

use crate::{
    HistoryError, HistoryEvent, HistoryStats, Resolution, Series, ServerTrend, Subject, Summary, UnixSeconds, read,
    schema, stats::SharedStats, trend,
};
use rallypoint_lobby_proto::PublicId;
use rusqlite::{Connection, OpenFlags};
use std::{
    collections::HashMap,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Reads the history. Clones share their connections.
///
/// Each call takes up to some milliseconds and may wait for the disk: asynchronous code should use `spawn_blocking`. The
/// number of concurrent readers is bounded; a call that does not get a connection in time fails with
/// [`HistoryError::Busy`]. Readers never block the writer, nor the other way round.
///
/// ```no_run
/// use rallypoint_history::{HistoryReader, Resolution, Subject};
///
/// let reader = HistoryReader::open("history.db".as_ref())?;
/// let day = 1_800_000_000..1_800_086_400;
/// for point in reader.series(&Subject::Total, day, Resolution::Hour)?.points {
///     println!("{}: {:?}", point.time, point.players);
/// }
/// # Ok::<(), rallypoint_history::HistoryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HistoryReader(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    shared: Arc<SharedStats>,
    busy_timeout: Duration,
    max_readers: usize,
    idle: Mutex<Idle>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Idle {
    /// Idle connections, each with the number of the file that it has open.
    connections: Vec<(u64, Connection)>,
    /// Number of connections in use.
    busy: usize,
}

impl HistoryReader {
    /// Opens a file, also while another program writes it.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if !path.exists() {
            return Err(HistoryError::Missing(path.to_owned()));
        }
        let handle = Self::new(path.to_owned(), Arc::default(), 1, Duration::from_secs(5));
        handle.read(|_| Ok(()))?;
        Ok(handle)
    }

    pub(crate) fn new(path: PathBuf, shared: Arc<SharedStats>, max_readers: usize, busy_timeout: Duration) -> Self {
        let idle = Mutex::default();
        let returned = Condvar::new();
        Self(Arc::new(Pool { path, shared, busy_timeout, max_readers: max_readers.max(1), idle, returned }))
    }

    /// The points of a subject in a time range, which is rounded outwards to whole steps. The points of a subject without a
    /// history have no players.
    pub fn series(
        &self,
        subject: &Subject,
        range: Range<UnixSeconds>,
        resolution: Resolution,
    ) -> Result<Series, HistoryError> {
        self.read(|connection| read::series(connection, subject, &range, resolution))
    }

    /// The summary of a subject, if it has a history.
    pub fn summary(&self, subject: &Subject, now: UnixSeconds) -> Result<Option<Summary>, HistoryError> {
        self.read(|connection| read::summary(connection, subject, now))
    }

    /// The events of a server before a time (if given), latest first. About 100 events are kept, and as many changes of the
    /// map.
    pub fn events(
        &self,
        subject: &Subject,
        limit: usize,
        before: Option<UnixSeconds>,
    ) -> Result<Vec<HistoryEvent>, HistoryError> {
        self.read(|connection| read::events(connection, subject, limit, before.unwrap_or(UnixSeconds::MAX)))
    }

    /// The subjects with a history: the total, then lists, then servers; at most `limit` of those after `after`.
    pub fn subjects(&self, after: Option<&Subject>, limit: usize) -> Result<Vec<Subject>, HistoryError> {
        self.read(|connection| read::subjects(connection, after, limit))
    }

    /// The recent past of all servers that were listed in the last seven days. It reads up to four rows per server.
    pub fn trends(&self, now: UnixSeconds) -> Result<HashMap<PublicId, ServerTrend>, HistoryError> {
        self.read(|connection| trend::trends(connection, now))
    }

    /// Counters of the writer.
    #[must_use]
    pub fn stats(&self) -> HistoryStats {
        self.0.shared.stats()
    }

    /// Closes idle connections, so that the writer can checkpoint the file when it closes it.
    pub(crate) fn close_idle(&self) {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).connections.clear();
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, HistoryError>) -> Result<T, HistoryError> {
        let file = self.0.shared.file();
        let mut pooled = self.0.acquire(file)?;
        let connection = match pooled.connection.take() {
            Some(connection) => connection,
            None => self.0.connect()?,
        };
        let result = read(&connection);
        match &result {
            Err(HistoryError::Damaged(_)) => self.0.shared.report_damage(file),
            _ => pooled.connection = Some(connection),
        }
        result
    }
}

/// A connection in use, which is returned when this is dropped.
struct PooledConnection<'a> {
    pool: &'a Pool,
    file: u64,
    connection: Option<Connection>,
}

impl Pool {
    fn acquire(&self, file: u64) -> Result<PooledConnection<'_>, HistoryError> {
        let until = Instant::now() + self.busy_timeout;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.busy >= self.max_readers {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HistoryError::Busy);
            }
            (idle, _) = self.returned.wait_timeout(idle, left).unwrap_or_else(PoisonError::into_inner);
        }
        idle.busy += 1;
        // Connections to a file that was moved aside are useless.
        idle.connections.retain(|(number, _)| *number == file);
        let connection = idle.connections.pop().map(|(_, connection)| connection);
        Ok(PooledConnection { pool: self, file, connection })
    }

    fn connect(&self) -> Result<Connection, HistoryError> {
        if !self.path.exists() {
            return Err(HistoryError::Missing(self.path.clone()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.busy_timeout)?;
        connection.pragma_update(None, "query_only", true)?;
        schema::check(&connection)?;
        Ok(connection)
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.busy -= 1;
        idle.connections.extend(self.connection.take().map(|connection| (self.file, connection)));
        drop(idle);
        self.pool.returned.notify_one();
    }
}
