//! What readers of the book share: the latest snapshot, and the events since.

use crate::{
    Differences,
    book::{Batch, Cursor, Published, Snapshot, Verified},
};
use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use rallypoint_lobby_proto::PublicId;
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tokio::sync::{broadcast, mpsc};

/// How many bytes of events are kept for those who come back. A busy lobby of a thousand servers makes some 30 kB per
/// second, so this is minutes; whoever was away for longer fetches the list.
const KEPT_BYTES: usize = 8 << 20;

/// How many batches a listener may be behind before it is cut: it comes back and resumes.
const BEHIND: usize = 64;

/// What somebody found out by asking a server.
#[derive(Clone, Debug)]
pub struct Told {
    /// Which server.
    pub id: PublicId,
    /// Whether it is what it says.
    pub verified: Verified,
    /// In what it is not, if it is [`Verified::Differs`].
    pub differences: Differences,
    /// What it said.
    pub info: Option<Arc<ServerInfo>>,
}

impl Told {
    /// A verdict, and nothing besides.
    #[must_use]
    pub fn new(id: PublicId, verified: Verified) -> Self {
        Self { id, verified, differences: Differences::default(), info: None }
    }
}

/// The latest snapshot and the events since.
#[derive(Debug)]
pub struct Live {
    snapshot: ArcSwap<Snapshot>,
    past: Mutex<Past>,
    batches: broadcast::Sender<Arc<Batch>>,
    /// Servers that came.
    newcomers: broadcast::Sender<Arc<[PublicId]>>,
    told: mpsc::Sender<Told>,
    is_current: AtomicBool,
}

/// The last events.
#[derive(Debug, Default)]
struct Past {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

/// Where a listener begins.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The last event that is in `missed`, or that was there before.
    pub cursor: Cursor,
    /// What happened since the event that it knew; `None` if that is not known any more.
    pub missed: Option<Vec<Bytes>>,
    /// What happens from now on.
    pub batches: broadcast::Receiver<Arc<Batch>>,
}

impl Live {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> (Self, mpsc::Receiver<Told>) {
        let (told, asked) = mpsc::channel(1_024);
        let (snapshot, past) = (ArcSwap::new(snapshot), Mutex::default());
        let (batches, newcomers) = (broadcast::Sender::new(BEHIND), broadcast::Sender::new(BEHIND));
        (Self { snapshot, past, batches, newcomers, told, is_current: false.into() }, asked)
    }

    /// All servers as they are now.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// Where to tell what was found out by asking servers.
    #[must_use]
    pub fn telling(&self) -> mpsc::Sender<Told> {
        self.told.clone()
    }

    /// Servers that come from now on, a few at a time. They are in the snapshot.
    pub(crate) fn newcomers(&self) -> broadcast::Receiver<Arc<[PublicId]>> {
        self.newcomers.subscribe()
    }

    /// How many listen.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.batches.receiver_count()
    }

    /// Whether this is the list as the lobby has it, but for the last moments: not before it was read for the first time,
    /// nor after the lobby has ended.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.is_current.load(Relaxed)
    }

    pub(crate) fn set_current(&self, is_current: bool) {
        self.is_current.store(is_current, Relaxed);
    }

    pub(crate) fn publish(&self, published: Published) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        self.snapshot.store(published.snapshot);
        if !published.listed.is_empty() {
            let _ = self.newcomers.send(published.listed.into());
        }
        if let Some(batch) = published.batch {
            past.bytes += batch.size();
            past.batches.push_back(Arc::clone(&batch));
            while past.bytes > KEPT_BYTES
                && let Some(oldest) = past.batches.pop_front()
            {
                past.bytes -= oldest.size();
            }
            // It is an error if nobody listens. It is sent under the lock, so that nobody who joins misses it or gets it
            // twice.
            let _ = self.batches.send(batch);
        }
    }

    /// Begins to listen, after an event that the listener knows.
    pub(crate) fn join(&self, after: Option<Cursor>, lobby: Option<LobbyId>) -> Joined {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = self.snapshot.load().cursor();
        let missed = match after {
            None => Some(Vec::new()),
            Some(after) => past.since(after, cursor, lobby),
        };
        Joined { cursor, missed, batches: self.batches.subscribe() }
    }
}

impl Past {
    fn since(&self, after: Cursor, now: Cursor, lobby: Option<LobbyId>) -> Option<Vec<Bytes>> {
        let kept_from = self.batches.front().map_or(now.number, |batch| batch.before().number);
        if after.epoch != now.epoch || after.number > now.number || after.number < kept_from {
            return None;
        }
        let first = self.batches.partition_point(|batch| batch.last().number <= after.number);
        Some(self.batches.iter().skip(first).flat_map(|batch| batch.after(after.number, lobby)).collect())
    }
}
