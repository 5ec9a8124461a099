//! Counters of the writer, readable from any thread.

use crate::UnixSeconds;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// Counters of the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryStats {
    /// Whether the last observation was written.
    pub is_writing: bool,
    /// The last minute that was written; 0 if there is none.
    pub last: UnixSeconds,
    /// Number of observations that were written.
    pub written: u64,
    /// Number of observations that were lost.
    pub dropped: u64,
    /// Number of observations that wait to be written.
    pub pending: u64,
    /// Number of servers with a history.
    pub servers: u64,
    /// Size of the file in bytes, without the write-ahead log.
    pub bytes: u64,
    /// Duration of the last write, in microseconds.
    pub write_micros: u64,
    /// Changes whenever the sums of hours and days do: about once an hour, when an hour is rolled up.
    pub revision: u64,
}

impl HistoryStats {
    /// Time since the last minute that was written, in seconds; about 60 in normal operation.
    #[must_use]
    pub fn lag(&self, now: UnixSeconds) -> Option<u64> {
        (self.last > 0).then(|| u64::try_from(now - self.last).unwrap_or(0))
    }
}

/// The shared form of [`HistoryStats`].
#[derive(Debug, Default)]
pub(crate) struct SharedStats {
    pub is_writing: AtomicBool,
    pub last: AtomicI64,
    pub written: AtomicU64,
    pub dropped: AtomicU64,
    pub pending: AtomicU64,
    pub servers: AtomicU64,
    pub bytes: AtomicU64,
    pub write_micros: AtomicU64,
    pub revision: AtomicU64,
    /// Incremented when the file is replaced.
    file: AtomicU64,
    /// The number of the file in which a reader found damage, plus one; 0 if there is none.
    damaged: AtomicU64,
}

impl SharedStats {
    pub fn stats(&self) -> HistoryStats {
        HistoryStats {
            is_writing: self.is_writing.load(Relaxed),
            last: self.last.load(Relaxed),
            written: self.written.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            pending: self.pending.load(Relaxed),
            servers: self.servers.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            write_micros: self.write_micros.load(Relaxed),
            revision: self.revision.load(Relaxed),
        }
    }

    pub fn file(&self) -> u64 {
        self.file.load(Relaxed)
    }

    pub fn increment_file(&self) {
        self.file.fetch_add(1, Relaxed);
        self.revision.fetch_add(1, Relaxed);
    }

    pub fn report_damage(&self, file: u64) {
        self.damaged.store(file + 1, Relaxed);
    }

    /// Whether a reader found damage in the current file.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Relaxed) == self.file() + 1
    }
}
