//! The lists that most clients request, serialized and compressed once for all of them.
//!
//! A list is built when it is requested and has changed since. While lists change all the time, a response may be slightly out
//! of date, because building takes at most a few percent of the time. Every list contains the cursor of the last event it
//! reflects, so a client that continues with the events misses nothing.
//!
//! tower-http's compression does not replace this: it compresses per request (some 10 ms of CPU time for a list of a thousand
//! servers), while here a request costs nothing but the reference to the bytes.

use crate::{
    api::servers::{full_list, write_list},
    live::{Live, LiveSnapshot},
    page::MAX_AGE_UNDER_LOAD,
    render_age::RenderAge,
    render_limiter::{RenderRequest, TooManyWaiting},
    server::Connection,
};
use arc_swap::ArcSwapOption;
use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use rallypoint_limit::Evictable as _;
use rallypoint_wire::lobby::ListId;
use std::{
    collections::{HashMap, VecDeque},
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::OnceCell;

/// Maximum age of a list that has changed since, whatever building it costs.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Maximum number of lists that are kept prebuilt.
const MAX_LISTS: usize = 1_024;

/// Minimum size in bytes of a list whose holders are tracked.
const MIN_TRACKED: usize = 16 << 10;

/// The prebuilt forms of all lists together, and of single lists.
#[derive(Debug)]
pub(crate) struct PrebuiltLists {
    all: Slot,
    lists: Mutex<HashMap<ListId, Arc<Slot>>>,
    superseded: SupersededLists,
    kept: Arc<KeptBytes>,
}

/// Earlier versions of lists that clients have not received completely, oldest first.
#[derive(Debug)]
struct SupersededLists {
    /// Maximum number of bytes in all of them. Beyond it, the readers of the oldest are disconnected.
    max_bytes: usize,
    lists: Mutex<VecDeque<Weak<PrebuiltList>>>,
}

/// The bytes of a list that are sent to a client. They keep the list in memory, and the list knows their connection.
struct HeldList {
    list: Arc<PrebuiltList>,
    bytes: Bytes,
    reader: u64,
}

/// The bytes of lists that are kept until the next request.
#[derive(Debug)]
struct KeptBytes {
    max: usize,
    used: AtomicUsize,
}

/// The share of one list in the kept bytes. Dropping it returns the share.
#[derive(Debug)]
struct KeptShare {
    budget: Arc<KeptBytes>,
    bytes: usize,
}

impl KeptBytes {
    fn reserve(self: &Arc<Self>, bytes: usize) -> Option<KeptShare> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let share = KeptShare { budget: Arc::clone(self), bytes };
        (used <= self.max).then_some(share)
    }
}

impl Drop for KeptShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Slot {
    list: ArcSwapOption<(Arc<PrebuiltList>, KeptShare)>,
    /// The last list, also if it is too large to be kept: clients that it is being sent to share it.
    last: Mutex<Weak<PrebuiltList>>,
    budget: Arc<KeptBytes>,
    /// Held while a list is built, so that it is built once.
    building: tokio::sync::Mutex<()>,
}

/// A list as it is sent.
#[derive(Debug)]
pub(crate) struct PrebuiltList {
    age: RenderAge,
    /// Time in microseconds that compressing has taken.
    gzip_cost: AtomicU64,
    pub json: Bytes,
    gzip: OnceCell<Bytes>,
    pub etag: HeaderValue,
    pub gzip_etag: HeaderValue,
    readers: Mutex<Readers>,
}

/// The connections to which a list is being sent.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

impl PrebuiltLists {
    /// No lists. At most `max_kept` bytes of lists are kept that are not being sent; slow readers can keep versions of at most
    /// `max_superseded` bytes that are no longer current.
    pub fn new(max_kept: usize, max_superseded: usize) -> Self {
        let kept = Arc::new(KeptBytes { max: max_kept, used: AtomicUsize::new(0) });
        let superseded = SupersededLists { max_bytes: max_superseded, lists: Mutex::default() };
        Self { all: Slot::new(&kept), lists: Mutex::default(), superseded, kept }
    }

    /// One list, or all lists together. If it has to be built, that is done in the turn of the client.
    pub async fn list(
        &self,
        live: &Live,
        list: Option<ListId>,
        turn: &RenderRequest<'_>,
    ) -> Result<Arc<PrebuiltList>, TooManyWaiting> {
        match list {
            None => self.all.current(live, None, turn, &self.superseded).await,
            Some(list) => self.slot(live, list).current(live, Some(list), turn, &self.superseded).await,
        }
    }

    fn slot(&self, live: &Live, list: ListId) -> Arc<Slot> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = lists.get(&list) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::new(&self.kept));
        let snapshot = live.snapshot();
        // A client can request any UUID: slots are kept only for lists that exist.
        if snapshot.lists().contains_key(&list) {
            if lists.len() >= MAX_LISTS {
                lists.retain(|list, _| snapshot.lists().contains_key(list));
            }
            if lists.len() >= MAX_LISTS {
                // Their lists may still be on their way to clients.
                lists.values().filter_map(|slot| slot.last()).for_each(|list| self.superseded.add(&list));
                lists.clear();
            }
            lists.insert(list, Arc::clone(&slot));
        }
        slot
    }
}

impl Slot {
    fn new(budget: &Arc<KeptBytes>) -> Self {
        let budget = Arc::clone(budget);
        Self { list: ArcSwapOption::empty(), last: Mutex::default(), budget, building: tokio::sync::Mutex::default() }
    }

    /// The last list, if it was kept or is being sent.
    fn last(&self) -> Option<Arc<PrebuiltList>> {
        let kept = self.list.load();
        let kept = kept.as_ref().map(|kept| Arc::clone(&kept.0));
        kept.or_else(|| self.last.lock().unwrap_or_else(PoisonError::into_inner).upgrade())
    }

    /// Keeps a list if there is room for it and its compressed form.
    fn keep(&self, list: &Arc<PrebuiltList>) {
        // The old list makes room first.
        self.list.store(None);
        let share = self.budget.reserve(2 * list.json.len());
        self.list.store(share.map(|share| Arc::new((Arc::clone(list), share))));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(list);
    }

    async fn current(
        &self,
        live: &Live,
        list: Option<ListId>,
        turn: &RenderRequest<'_>,
        superseded: &SupersededLists,
    ) -> Result<Arc<PrebuiltList>, TooManyWaiting> {
        if let Some(list) = self.fresh(live) {
            return Ok(list);
        }
        // The turn comes before the lock: a client whose turn is late must not keep others from building the list.
        let _permit = match turn.acquire().await {
            Ok(permit) => permit,
            Err(refused) => {
                let list = self.last().filter(|list| list.age.elapsed() < MAX_AGE_UNDER_LOAD);
                return list.ok_or(refused);
            }
        };
        let _building = self.building.lock().await;
        // Another request may have built it in the meantime.
        if let Some(list) = self.fresh(live) {
            return Ok(list);
        }
        let snapshot = Arc::clone(&live.snapshot());
        let build = move || Arc::new(PrebuiltList::new(&snapshot, list));
        let list = match tokio::task::spawn_blocking(build).await {
            Ok(list) => list,
            // The runtime is shutting down.
            Err(_) => Arc::new(PrebuiltList::new(&live.snapshot(), list)),
        };
        if let Some(old) = self.last() {
            superseded.add(&old);
        }
        self.keep(&list);
        Ok(list)
    }

    /// The list of this slot if it is current, or not old enough for another one.
    fn fresh(&self, live: &Live) -> Option<Arc<PrebuiltList>> {
        let list = self.last()?;
        let gzip_cost = Duration::from_micros(list.gzip_cost.load(Ordering::Relaxed));
        list.age.with_cost(gzip_cost).is_fresh(live.snapshot().version(), MAX_AGE).then_some(list)
    }
}

impl SupersededLists {
    /// Adds a list that is no longer current, and disconnects the readers of the oldest ones if there are too many bytes.
    fn add(&self, list: &Arc<PrebuiltList>) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.push_back(Arc::downgrade(list));
        lists.retain(|list| list.strong_count() > 0);
        let mut bytes: usize = lists.iter().filter_map(Weak::upgrade).map(|list| list.size()).sum();
        while bytes > self.max_bytes
            && let Some(oldest) = lists.pop_front()
        {
            let Some(oldest) = oldest.upgrade() else { continue };
            bytes -= oldest.size();
            oldest.readers().connections.values().for_each(|connection| connection.evict());
        }
    }
}

impl AsRef<[u8]> for HeldList {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldList {
    fn drop(&mut self) {
        self.list.readers().connections.remove(&self.reader);
    }
}

impl PrebuiltList {
    /// Bytes of this list, JSON or compressed, to be sent to a client.
    pub fn held(self: &Arc<Self>, bytes: &Bytes, connection: &Arc<Connection>) -> Bytes {
        if bytes.len() < MIN_TRACKED {
            return bytes.clone();
        }
        let mut readers = self.readers();
        let reader = readers.next;
        readers.next += 1;
        readers.connections.insert(reader, Arc::clone(connection));
        drop(readers);
        Bytes::from_owner(HeldList { list: Arc::clone(self), bytes: bytes.clone(), reader })
    }

    fn size(&self) -> usize {
        self.json.len() + self.gzip.get().map_or(0, Bytes::len)
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new(snapshot: &LiveSnapshot, list: Option<ListId>) -> Self {
        let started = Instant::now();
        let json = write_list(&full_list(list), snapshot, &|_| 0.0, usize::MAX);
        let etag = |suffix| {
            let tag = format!("\"{:08x}-{}{suffix}\"", snapshot.cursor().epoch, snapshot.version());
            HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
        };
        Self {
            age: RenderAge::new(snapshot.version(), started),
            gzip_cost: AtomicU64::new(0),
            json,
            gzip: OnceCell::new(),
            etag: etag(""),
            gzip_etag: etag("-gz"),
            readers: Mutex::default(),
        }
    }

    /// The list compressed with gzip, by the first request for it.
    pub async fn gzip(&self, turn: &RenderRequest<'_>) -> Result<&Bytes, TooManyWaiting> {
        if let Some(gzip) = self.gzip.get() {
            return Ok(gzip);
        }
        let _permit = turn.acquire().await?;
        let compress = || async {
            let started = Instant::now();
            let json = self.json.clone();
            let gzip = tokio::task::spawn_blocking(move || gzip(&json)).await.unwrap_or_default();
            self.gzip_cost.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
            gzip
        };
        Ok(self.gzip.get_or_init(compress).await)
    }
}

/// Compresses with gzip, at the default level.
pub(crate) fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
    // Writing to memory does not fail.
    let written = encoder.write_all(bytes);
    written.and_then(|()| encoder.finish()).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Cursor;
    use rallypoint_lobby::TableSnapshot;

    fn list(size: usize) -> Arc<PrebuiltList> {
        let snapshot = LiveSnapshot::new(Arc::new(TableSnapshot::empty()), Cursor { epoch: 7, number: 0 }, 0);
        Arc::new(PrebuiltList { json: vec![0; size].into(), ..PrebuiltList::new(&snapshot, None) })
    }

    #[test]
    fn readers_of_the_oldest_versions_are_disconnected() {
        let superseded = SupersededLists { max_bytes: 250_000, lists: Mutex::default() };
        let readers: Vec<_> = (0..5)
            .map(|_| {
                let list = list(100_000);
                let connection = Arc::new(Connection::new(Instant::now()));
                let bytes = list.held(&list.json, &connection);
                superseded.add(&list);
                (connection, bytes)
            })
            .collect();
        let evicted: Vec<_> = readers.iter().map(|(connection, _)| connection.is_evicted()).collect();
        assert_eq!(evicted, [true, true, true, false, false]);
        drop(readers);
        superseded.add(&list(100_000));
        assert!(superseded.lists.lock().unwrap().len() <= 1, "what is received is forgotten");
    }

    #[test]
    fn a_list_forgets_readers_that_have_received_it() {
        let list = list(100_000);
        let connection = Arc::new(Connection::new(Instant::now()));
        let bytes = list.held(&list.json, &connection);
        assert_eq!((list.readers().connections.len(), bytes.len()), (1, 100_000));
        drop(bytes);
        assert_eq!(list.readers().connections.len(), 0);
    }
}
