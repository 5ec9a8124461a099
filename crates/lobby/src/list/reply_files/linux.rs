//! Popular replies in memory-backed files, from which the system sends them without a copy.
//!
//! Bytes that are sent from user memory are copied for every client, and that copy is the largest single part of a large
//! reply's cost. `sendfile` avoids it, so a version of a list that many clients request gets a file of its own.

use rallypoint_lobby_proto::ListReply;
use rallypoint_udp::is_sigpipe_ignored;
use rustix::fs::{MemfdFlags, memfd_create};
use socket2::Socket;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
};

/// Number of requests for the same reply after which it is put into a file. Creating the file costs about as much as it saves
/// over that many clients, and a list that changes faster than it is read needs none.
const MIN_REQUESTS: u32 = 8;

/// Minimum size of a reply in bytes. Smaller ones stay in the processor's cache, where copying them costs less than what
/// `sendfile` does for each of their pages.
const MIN_SIZE: usize = 512 << 10;

/// Maximum number of files. Slow readers keep files of old versions open, and file descriptors are scarce.
pub(crate) const MAX_REPLY_FILES: usize = 64;

/// Maximum number of bytes in all files, unless the memory cap is low.
const MAX_BYTES: usize = 64 << 20;

/// Creates files for popular replies. It is disabled where SIGPIPE is not ignored: `sendfile` has no `MSG_NOSIGNAL`, so a
/// client that disconnects would end the process.
#[derive(Debug)]
pub(crate) struct ReplyFiles(Option<RequestCounts>);

/// Number of requests for each reply that is large enough for a file, by the address of the reply in memory.
#[derive(Debug, Default)]
struct RequestCounts {
    by_reply: Mutex<HashMap<usize, Arc<RequestCount>>>,
    budget: Arc<FileBudget>,
}

/// Number of requests for one reply, and its file if there were enough of them.
#[derive(Debug)]
struct RequestCount {
    /// It also keeps the address of the reply from being reused.
    reply: Weak<ListReply>,
    requests: AtomicU32,
    file: OnceLock<Arc<ReplyFile>>,
}

/// A reply in a file. The file is never written to again.
#[derive(Debug)]
pub(crate) struct ReplyFile {
    file: File,
    reservation: Reservation,
}

impl ReplyFiles {
    /// Files of at most `max_bytes` together.
    pub fn new(max_bytes: usize) -> Self {
        let budget = Arc::new(FileBudget { max_bytes: max_bytes.min(MAX_BYTES), ..FileBudget::default() });
        Self(is_sigpipe_ignored().then(|| RequestCounts { budget, ..RequestCounts::default() }))
    }

    /// Counts a request for a reply, and returns the reply's file if it has one. Requests do not wait for a file that another
    /// request is creating.
    pub fn request(&self, reply: &Arc<ListReply>) -> Option<Arc<ReplyFile>> {
        let counts = self.0.as_ref().filter(|_| reply.size() >= MIN_SIZE)?;
        let count = counts.count(reply);
        if let Some(file) = count.file.get() {
            return Some(file.clone());
        }
        if count.requests.fetch_add(1, Relaxed) + 1 != MIN_REQUESTS {
            return None;
        }
        // If no file can be created, the reply is sent from user memory as before.
        let file = Arc::new(ReplyFile::create(reply, counts.budget.reserve(reply.size())?).ok()?);
        Some(count.file.get_or_init(|| file).clone())
    }
}

impl RequestCounts {
    fn count(&self, reply: &Arc<ListReply>) -> Arc<RequestCount> {
        let mut by_reply = self.by_reply.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::as_ptr(reply) as usize;
        if let Some(count) = by_reply.get(&key) {
            return Arc::clone(count);
        }
        // Files of replies that are neither published nor being sent are released.
        by_reply.retain(|_, count| count.reply.strong_count() > 0);
        let count = RequestCount { reply: Arc::downgrade(reply), requests: AtomicU32::new(0), file: OnceLock::new() };
        let count = Arc::new(count);
        by_reply.insert(key, Arc::clone(&count));
        count
    }
}

impl ReplyFile {
    fn create(reply: &ListReply, reservation: Reservation) -> io::Result<Self> {
        let mut file = File::from(memfd_create("list", MemfdFlags::CLOEXEC)?);
        reply.pieces().try_for_each(|piece| file.write_all(piece))?;
        Ok(Self { file, reservation })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.reservation.bytes
    }

    /// Sends as much as the system accepts now, starting at `offset`. Returns the number of bytes sent.
    pub fn send(&self, socket: &Socket, offset: usize) -> io::Result<usize> {
        match NonZeroUsize::new(self.size().saturating_sub(offset)) {
            None => Ok(0),
            left => socket.sendfile(&self.file, offset, left),
        }
    }
}

/// Number and size of all files that exist.
#[derive(Debug, Default)]
struct FileBudget {
    max_bytes: usize,
    files: AtomicUsize,
    bytes: AtomicUsize,
}

/// The share of one file in the budget. Dropping it returns the share.
#[derive(Debug)]
struct Reservation {
    budget: Arc<FileBudget>,
    bytes: usize,
}

impl FileBudget {
    fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let files = self.files.fetch_add(1, Relaxed);
        let total = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        let reservation = Reservation { budget: self.clone(), bytes };
        (files < MAX_REPLY_FILES && total <= self.max_bytes).then_some(reservation)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.files.fetch_sub(1, Relaxed);
        self.budget.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_size_of_files_are_limited() {
        let budget = Arc::new(FileBudget { max_bytes: MAX_BYTES, ..FileBudget::default() });
        let mut reservations: Vec<_> = (0..MAX_REPLY_FILES).map(|_| budget.reserve(1_000).unwrap()).collect();
        assert!(budget.reserve(1).is_none(), "too many files");
        reservations.truncate(1);
        assert!(budget.reserve(MAX_BYTES).is_none(), "too many bytes");
        assert!(budget.reserve(MAX_BYTES - 1_000).is_some());
        drop(reservations);
        assert_eq!((budget.files.load(Relaxed), budget.bytes.load(Relaxed)), (0, 0));
    }
}
