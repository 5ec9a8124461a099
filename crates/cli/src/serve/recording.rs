//! Records the listed servers into the history.

use crate::{config::HistorySettings, history::FILE};
use rallypoint_history::{CameOrWent, Handle, History, Limits, Move, Options, Sweep};
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::{Event, ListedServer};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::broadcast::error::RecvError, task::JoinHandle, time};

/// Maximum number of moves kept between two sweeps. Without its move, a server leaves without a recorded reason.
const MOVES: usize = 20_000;

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
        let options = Options {
            retention: settings.retention,
            limits: Limits { servers: settings.max_servers, ..Limits::default() },
            max_bytes: settings.max_size,
            ..Options::new(data_dir.join(FILE))
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

    /// A handle for reading.
    pub fn handle(&self) -> Handle {
        self.history.handle()
    }

    /// Stops sampling and writes what is pending.
    pub async fn finish(self) {
        self.task.abort();
        let _ = self.task.await;
        let history = self.history;
        let _ = tokio::task::spawn_blocking(move || drop(history)).await;
    }
}

/// Samples the lists at once and then every full minute. The history's own thread reads the snapshot.
async fn sample(service: LobbyService, history: Arc<History>) {
    let mut events = service.subscribe();
    let mut moves = Vec::new();
    loop {
        let now = since_1970();
        let listed = service.lists().snapshot();
        history.record(Sweep { time: seconds(now), listed, moves: std::mem::take(&mut moves) });
        let next = time::sleep(Duration::from_secs(60) - Duration::from_millis((now.as_millis() % 60_000) as u64));
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => break,
                event = events.recv() => match event {
                    Ok(event) => moves.extend(as_move(&event).filter(|_| moves.len() < MOVES)),
                    Err(RecvError::Lagged(_)) => {}
                    // The lobby has ended.
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

fn as_move(event: &Event) -> Option<Move> {
    let moved = |listing: &ListedServer, what| Move { id: listing.public_id(), time: seconds(since_1970()), what };
    match event {
        Event::Listed(listing) => Some(moved(listing, CameOrWent::Came(listing.lobby_id()))),
        Event::Unlisted(listing, why) => Some(moved(listing, CameOrWent::Went(*why))),
        Event::Changed(_) | Event::Check(_) => None,
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
