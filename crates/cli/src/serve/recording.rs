//! Records the listed servers into the history.

use crate::{config::HistorySettings, history::FILE};
use rallypoint_history::{
    History, HistoryOptions, HistoryReader, ListChange, ListChangeKind, Observation, SubjectLimits,
};
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::{Event, ListedServer};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::broadcast::error::RecvError, task::JoinHandle, time};

/// Maximum number of changes kept between two observations. Without its change, a server leaves without a recorded reason.
const MAX_CHANGES: usize = 20_000;

/// The history and the task that samples the lists once a minute.
pub struct Recording {
    history: Arc<History>,
    task: JoinHandle<()>,
}

impl Recording {
    /// Starts recording, unless it is disabled. If that fails, the lobby runs without a history.
    pub fn start(service: &LobbyService, settings: &HistorySettings, data_dir: &Path) -> Option<Self> {
        if !settings.enabled {
            return None;
        }
        let options = HistoryOptions {
            retention: settings.retention,
            limits: SubjectLimits { servers: settings.max_servers, ..SubjectLimits::default() },
            max_bytes: settings.max_size,
            ..HistoryOptions::new(data_dir.join(FILE))
        };
        match History::start(options) {
            Ok(history) => {
                let history = Arc::new(history);
                let task = tokio::spawn(sample(service.clone(), history.clone()));
                Some(Self { history, task })
            }
            Err(error) => {
                tracing::error!("no history is recorded: its thread could not be started: {error}");
                None
            }
        }
    }

    /// A reader of the history.
    pub fn reader(&self) -> HistoryReader {
        self.history.reader()
    }

    /// Stops sampling and writes what is pending.
    pub async fn finish(self) {
        self.task.abort();
        let _ = self.task.await;
        let history = self.history;
        let _ = tokio::task::spawn_blocking(move || drop(history)).await;
    }
}

/// How long a node of a cluster waits for the servers of the others before it samples its list.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Samples the lists at once and then every full minute. The history's own thread reads the snapshot.
async fn sample(service: LobbyService, history: Arc<History>) {
    let _ = time::timeout(JOIN_TIMEOUT, joined(&service)).await;
    let Some((mut listed, mut events)) = service.follow().await else { return };
    let mut changes = Vec::new();
    loop {
        let now = since_1970();
        history.record(Observation { time: seconds(now), servers: listed, changes: std::mem::take(&mut changes) });
        let next = time::sleep(Duration::from_secs(60) - Duration::from_millis((now.as_millis() % 60_000) as u64));
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => break,
                event = events.recv() => match event {
                    Ok(batch) => {
                        let room = MAX_CHANGES - changes.len();
                        changes.extend(batch.iter().filter_map(list_change).take(room));
                    }
                    Err(RecvError::Lagged(_)) => {}
                    // The lobby has ended.
                    Err(RecvError::Closed) => return,
                },
            }
        }
        listed = service.lists().snapshot();
    }
}

/// Waits until a node of a cluster has loaded the list. Before that it lists nothing, which would be recorded as if all servers
/// had left.
async fn joined(service: &LobbyService) {
    const INTERVAL: Duration = Duration::from_millis(100);
    if service.cluster().is_some() {
        while service.cluster_status().is_none_or(|status| status.last_contact.is_none()) {
            time::sleep(INTERVAL).await;
        }
    }
}

fn list_change(event: &Event) -> Option<ListChange> {
    let moved =
        |listing: &ListedServer, kind| ListChange { id: listing.public_id(), time: seconds(since_1970()), kind };
    match event {
        Event::Listed(listing) => Some(moved(listing, ListChangeKind::Listed(listing.list_id()))),
        Event::Unlisted(listing, why) => Some(moved(listing, ListChangeKind::Unlisted(*why))),
        Event::Changed(_) | Event::Check(_) => None,
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
