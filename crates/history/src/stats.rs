//! How the writing goes: what the writer tells and everybody can read.

use crate::UnixSeconds;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// How the writing goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Whether the last sweep was written.
    pub is_writing: bool,
    /// The minute that was last written; 0 if there is none.
    pub last: UnixSeconds,
    /// Sweeps that were written.
    pub written: u64,
    /// Sweeps that are lost.
    pub dropped: u64,
    /// Sweeps that wait to be written.
    pub pending: u64,
    /// Servers that have a history.
    pub servers: u64,
    /// Bytes on the disk, without what is not yet in its place there.
    pub bytes: u64,
    /// How long the last sweep took to write, in microseconds.
    pub write_micros: u64,
}

impl Stats {
    /// How many seconds ago the last minute was written; a minute or so if all is well.
    #[must_use]
    pub fn lag(&self, now: UnixSeconds) -> Option<u64> {
        (self.last > 0).then(|| u64::try_from(now - self.last).unwrap_or(0))
    }
}

/// The same, for several threads.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub is_writing: AtomicBool,
    pub last: AtomicI64,
    pub written: AtomicU64,
    pub dropped: AtomicU64,
    pub pending: AtomicU64,
    pub servers: AtomicU64,
    pub bytes: AtomicU64,
    pub write_micros: AtomicU64,
    /// Grows when the file is another one.
    file: AtomicU64,
    /// A reader found damage in the file with this number, plus one; 0 for none.
    damaged: AtomicU64,
}

impl Shared {
    pub fn stats(&self) -> Stats {
        Stats {
            is_writing: self.is_writing.load(Relaxed),
            last: self.last.load(Relaxed),
            written: self.written.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            pending: self.pending.load(Relaxed),
            servers: self.servers.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            write_micros: self.write_micros.load(Relaxed),
        }
    }

    pub fn file(&self) -> u64 {
        self.file.load(Relaxed)
    }

    pub fn set_another_file(&self) {
        self.file.fetch_add(1, Relaxed);
    }

    pub fn report_damage(&self, file: u64) {
        self.damaged.store(file + 1, Relaxed);
    }

    /// Whether a reader found damage in the present file.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Relaxed) == self.file() + 1
    }
}
