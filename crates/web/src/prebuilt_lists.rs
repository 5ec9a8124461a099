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
    render_limiter::{RenderTurn, TooManyWaiting},
};
use arc_swap::ArcSwapOption;
use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::HashMap,
    io::Write,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::OnceCell;

/// Building a list may take at most one part in this many of the time.
const BUILD_TIME_SHARE: u32 = 20;

/// Maximum age of a list that has changed since, whatever building it costs.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Maximum number of lobbies whose lists are kept.
const MAX_LOBBIES: usize = 1_024;

/// The prebuilt lists of all lobbies together, and of single lobbies.
#[derive(Debug, Default)]
pub(crate) struct PrebuiltLists {
    all: Slot,
    lobbies: Mutex<HashMap<LobbyId, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    list: ArcSwapOption<PrebuiltList>,
    /// Held while a list is built, so that it is built once.
    building: tokio::sync::Mutex<()>,
}

/// A list as it is sent.
#[derive(Debug)]
pub(crate) struct PrebuiltList {
    version: u64,
    built_at: Instant,
    /// Time in microseconds that building and compressing have taken.
    cost: AtomicU64,
    pub json: Bytes,
    gzip: OnceCell<Bytes>,
    pub etag: HeaderValue,
    pub gzip_etag: HeaderValue,
}

impl PrebuiltLists {
    /// The list of one lobby, or of all lobbies. If it has to be built, that is done in the turn of the client.
    pub async fn list(
        &self,
        live: &Live,
        lobby: Option<LobbyId>,
        turn: &RenderTurn<'_>,
    ) -> Result<Arc<PrebuiltList>, TooManyWaiting> {
        match lobby {
            None => self.all.current(live, None, turn).await,
            Some(lobby) => self.slot(live, lobby).current(live, Some(lobby), turn).await,
        }
    }

    fn slot(&self, live: &Live, lobby: LobbyId) -> Arc<Slot> {
        let mut lobbies = self.lobbies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = lobbies.get(&lobby) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::default());
        let snapshot = live.snapshot();
        // A client can request any UUID: slots are kept only for lobbies that exist.
        if snapshot.lobbies().contains_key(&lobby) {
            if lobbies.len() >= MAX_LOBBIES {
                lobbies.retain(|lobby, _| snapshot.lobbies().contains_key(lobby));
            }
            if lobbies.len() >= MAX_LOBBIES {
                lobbies.clear();
            }
            lobbies.insert(lobby, Arc::clone(&slot));
        }
        slot
    }
}

impl Slot {
    async fn current(
        &self,
        live: &Live,
        lobby: Option<LobbyId>,
        turn: &RenderTurn<'_>,
    ) -> Result<Arc<PrebuiltList>, TooManyWaiting> {
        if let Some(list) = self.fresh(live) {
            return Ok(list);
        }
        // The turn comes before the lock: a client whose turn is late must not keep others from building the list.
        let _permit = match turn.wait().await {
            Ok(permit) => permit,
            Err(refused) => return self.list.load_full().ok_or(refused),
        };
        let _building = self.building.lock().await;
        // Another request may have built it in the meantime.
        if let Some(list) = self.fresh(live) {
            return Ok(list);
        }
        let snapshot = Arc::clone(&live.snapshot());
        let build = move || Arc::new(PrebuiltList::new(&snapshot, lobby));
        let list = match tokio::task::spawn_blocking(build).await {
            Ok(list) => list,
            // The runtime is shutting down.
            Err(_) => Arc::new(PrebuiltList::new(&live.snapshot(), lobby)),
        };
        self.list.store(Some(Arc::clone(&list)));
        Ok(list)
    }

    /// The list of this slot if it is current, or not old enough for another one.
    fn fresh(&self, live: &Live) -> Option<Arc<PrebuiltList>> {
        let list = self.list.load_full()?;
        let pause = (Duration::from_micros(list.cost.load(Ordering::Relaxed)) * BUILD_TIME_SHARE).min(MAX_AGE);
        (list.version == live.snapshot().version() || list.built_at.elapsed() < pause).then_some(list)
    }
}

impl PrebuiltList {
    fn new(snapshot: &LiveSnapshot, lobby: Option<LobbyId>) -> Self {
        let started = Instant::now();
        let json = write_list(&full_list(lobby), snapshot, usize::MAX);
        let etag = |suffix| {
            let tag = format!("\"{:08x}-{}{suffix}\"", snapshot.cursor().epoch, snapshot.version());
            HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
        };
        Self {
            version: snapshot.version(),
            built_at: started,
            cost: AtomicU64::new(started.elapsed().as_micros() as u64),
            json,
            gzip: OnceCell::new(),
            etag: etag(""),
            gzip_etag: etag("-gz"),
        }
    }

    /// The list compressed with gzip, by the first request for it.
    pub async fn gzip(&self, turn: &RenderTurn<'_>) -> Result<&Bytes, TooManyWaiting> {
        if let Some(gzip) = self.gzip.get() {
            return Ok(gzip);
        }
        let _permit = turn.wait().await?;
        let compress = || async {
            let started = Instant::now();
            let json = self.json.clone();
            let gzip = tokio::task::spawn_blocking(move || gzip(&json)).await.unwrap_or_default();
            self.cost.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
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
