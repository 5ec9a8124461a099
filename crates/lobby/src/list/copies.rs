//! Copies of replies that are asked for often, in files that exist only in memory.
//!
//! What is sent from memory is copied for every client; what is sent from a file is not, and that copying is the largest
//! single part of a large reply's cost. So a version of a list that many ask for gets a file of its own.

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

/// The client that gets the first reply from a file. Making one costs about as much as it saves with so many clients, and
/// a list that changes faster than it is read needs none.
const WORTH_IT: u32 = 8;

/// For less than this a file saves nothing.
const SMALLEST: usize = 32 << 10;

/// How many files there can be: readers may hold on to old versions, and descriptors are few.
pub(crate) const MAX_COPIES: usize = 64;

/// How many bytes there can be in them.
const MOST_BYTES: usize = 64 << 20;

/// Makes copies, but not too many; none if that could end the process: what is sent from a file cannot be sent without the
/// signal of a broken pipe.
#[derive(Debug)]
pub(super) struct Copies(Option<Demands>);

/// The demand for each reply that is large enough for a file, by the address of the reply in memory. The `Weak` keeps the
/// address from being reused.
#[derive(Debug, Default)]
struct Demands {
    by_reply: Mutex<HashMap<usize, TrackedReply>>,
    used: Arc<Used>,
}

/// A reply that is still in use somewhere, and the demand for it.
type TrackedReply = (Weak<ListReply>, Arc<Demand>);

#[derive(Debug, Default)]
struct Used {
    files: AtomicUsize,
    bytes: AtomicUsize,
}

/// A reply in a file, which is never written to again.
#[derive(Debug)]
pub(super) struct Copy {
    file: File,
    taken: Taken,
}

/// How often a reply was asked for, and its copy if that was often enough.
#[derive(Debug, Default)]
struct Demand {
    reads: AtomicU32,
    copy: OnceLock<Arc<Copy>>,
}

impl Copies {
    pub fn new() -> Self {
        Self(is_sigpipe_ignored().then(Demands::default))
    }

    /// The copy of a reply that a client wants, if it has one by now. Nobody waits for another to make it.
    pub fn copy_of(&self, reply: &Arc<ListReply>) -> Option<Arc<Copy>> {
        let demands = self.0.as_ref().filter(|_| reply.size() >= SMALLEST)?;
        let demand = demands.of(reply);
        if let Some(copy) = demand.copy.get() {
            return Some(copy.clone());
        }
        if demand.reads.fetch_add(1, Relaxed) + 1 != WORTH_IT {
            return None;
        }
        // Without a copy it goes on as before.
        let copy = Arc::new(Copy::new(reply, demands.used.take(reply.size())?).ok()?);
        Some(demand.copy.get_or_init(|| copy).clone())
    }
}

impl Demands {
    fn of(&self, reply: &Arc<ListReply>) -> Arc<Demand> {
        let mut by_reply = self.by_reply.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::as_ptr(reply) as usize;
        if let Some((_, demand)) = by_reply.get(&key) {
            return Arc::clone(demand);
        }
        // Copies of replies that are neither published nor being sent are released.
        by_reply.retain(|_, (reply, _)| reply.strong_count() > 0);
        let demand = Arc::<Demand>::default();
        by_reply.insert(key, (Arc::downgrade(reply), Arc::clone(&demand)));
        demand
    }
}

impl Copy {
    fn new(reply: &ListReply, taken: Taken) -> io::Result<Self> {
        let mut file = File::from(memfd_create("list", MemfdFlags::CLOEXEC)?);
        reply.pieces().try_for_each(|piece| file.write_all(piece))?;
        Ok(Self { file, taken })
    }

    /// How many bytes there are.
    pub fn size(&self) -> usize {
        self.taken.bytes
    }

    /// Hands over as much of what follows the first `offset` bytes as the system takes now.
    pub fn send(&self, socket: &Socket, offset: usize) -> io::Result<usize> {
        match NonZeroUsize::new(self.size().saturating_sub(offset)) {
            None => Ok(0),
            left => socket.sendfile(&self.file, offset, left),
        }
    }
}

/// A file and its bytes, of what there can be. Dropping it gives them back.
#[derive(Debug)]
struct Taken {
    used: Arc<Used>,
    bytes: usize,
}

impl Used {
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let files = self.files.fetch_add(1, Relaxed);
        let sum = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        let taken = Taken { used: self.clone(), bytes };
        (files < MAX_COPIES && sum <= MOST_BYTES).then_some(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.used.files.fetch_sub(1, Relaxed);
        self.used.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_only_so_many_files_and_only_so_many_bytes_in_them() {
        let used = Arc::new(Used::default());
        let mut all: Vec<_> = (0..MAX_COPIES).map(|_| used.take(1_000).unwrap()).collect();
        assert!(used.take(1).is_none(), "too many files");
        all.truncate(1);
        assert!(used.take(MOST_BYTES).is_none(), "too many bytes");
        assert!(used.take(MOST_BYTES - 1_000).is_some());
        drop(all);
        assert_eq!((used.files.load(Relaxed), used.bytes.load(Relaxed)), (0, 0));
    }
}
