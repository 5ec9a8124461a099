//! Lists that most clients ask for, written and compressed once for all of them.
//!
//! A list is written when somebody asks for it and it has changed. When lists change all the time, an answer may be a
//! little old: writing takes up a few percent of the time at most. Every list says which events it has seen, so that a
//! client that goes on with events misses nothing.

use crate::{
    api::servers::{whole, write_list},
    book::LiveSnapshot,
    live::Live,
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

/// Writing takes at most one part in so many of the time.
const SHARE: u32 = 20;

/// A list is never older than this, whatever it costs.
const OLDEST: Duration = Duration::from_secs(2);

/// The lists of so many lobbies are kept at once.
const MOST_LOBBIES: usize = 1_024;

/// The prebuilt lists.
#[derive(Debug, Default)]
pub(crate) struct Prebuilt {
    all: Slot,
    lobbies: Mutex<HashMap<LobbyId, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    built: ArcSwapOption<Built>,
    writing: tokio::sync::Mutex<()>,
}

/// A list as it is sent.
#[derive(Debug)]
pub(crate) struct Built {
    version: u64,
    at: Instant,
    /// What it has cost so far, in microseconds.
    cost: AtomicU64,
    pub json: Bytes,
    gzip: OnceCell<Bytes>,
    pub etag: HeaderValue,
    pub gzip_etag: HeaderValue,
}

impl Prebuilt {
    /// The list of all lobbies, or of one.
    pub async fn list(&self, live: &Live, lobby: Option<LobbyId>) -> Arc<Built> {
        match lobby {
            None => self.all.current(live, None).await,
            Some(lobby) => self.slot(live, lobby).current(live, Some(lobby)).await,
        }
    }

    fn slot(&self, live: &Live, lobby: LobbyId) -> Arc<Slot> {
        let mut lobbies = self.lobbies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = lobbies.get(&lobby) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::default());
        let snapshot = live.snapshot();
        // Anybody can ask for any UUID: only lobbies that exist are remembered.
        if snapshot.lobbies().contains_key(&lobby) {
            if lobbies.len() >= MOST_LOBBIES {
                lobbies.retain(|lobby, _| snapshot.lobbies().contains_key(lobby));
            }
            if lobbies.len() >= MOST_LOBBIES {
                lobbies.clear();
            }
            lobbies.insert(lobby, Arc::clone(&slot));
        }
        slot
    }
}

impl Slot {
    async fn current(&self, live: &Live, lobby: Option<LobbyId>) -> Arc<Built> {
        if let Some(built) = self.fresh(live) {
            return built;
        }
        let _writing = self.writing.lock().await;
        // Somebody else may have written it meanwhile.
        if let Some(built) = self.fresh(live) {
            return built;
        }
        let snapshot = Arc::clone(&live.snapshot());
        let build = move || Arc::new(Built::new(&snapshot, lobby));
        let built = match tokio::task::spawn_blocking(build).await {
            Ok(built) => built,
            // The runtime is going away.
            Err(_) => Arc::new(Built::new(&live.snapshot(), lobby)),
        };
        self.built.store(Some(Arc::clone(&built)));
        built
    }

    fn fresh(&self, live: &Live) -> Option<Arc<Built>> {
        let built = self.built.load_full()?;
        let pause = (Duration::from_micros(built.cost.load(Ordering::Relaxed)) * SHARE).min(OLDEST);
        (built.version == live.snapshot().version() || built.at.elapsed() < pause).then_some(built)
    }
}

impl Built {
    fn new(snapshot: &LiveSnapshot, lobby: Option<LobbyId>) -> Self {
        let began = Instant::now();
        let json = write_list(&whole(lobby), snapshot, usize::MAX);
        let tag = |kind| {
            let tag = format!("\"{:08x}-{}{kind}\"", snapshot.cursor().epoch, snapshot.version());
            HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
        };
        Self {
            version: snapshot.version(),
            at: began,
            cost: AtomicU64::new(began.elapsed().as_micros() as u64),
            json,
            gzip: OnceCell::new(),
            etag: tag(""),
            gzip_etag: tag("-gz"),
        }
    }

    /// The same, compressed.
    pub async fn gzip(&self) -> &Bytes {
        let compress = || async {
            let (began, json) = (Instant::now(), self.json.clone());
            let gzip = tokio::task::spawn_blocking(move || gzip(&json)).await.unwrap_or_default();
            self.cost.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
            gzip
        };
        self.gzip.get_or_init(compress).await
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
    // Writing into memory does not fail.
    let written = encoder.write_all(bytes);
    written.and_then(|()| encoder.finish()).unwrap_or_default().into()
}
