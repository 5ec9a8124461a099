//! The task that turns updates of the lobby's table into events.

use super::{EventBatch, Live, event_history::KEPT_BYTES};
use rallypoint_lobby::{LobbyService, TableSnapshot, TableUpdate};
use std::sync::Arc;

/// Publishes the updates of the lobby's table until the lobby ends.
pub(crate) async fn follow(lobby: LobbyService, live: Arc<Live>) {
    let feed = lobby.servers();
    let _reset = ResetFollowing(&live);
    tokio::select! {
        () = feed.until_current() => {}
        () = lobby.ended() => return,
    }
    let mut updates = feed.subscribe();
    let first = TableUpdate {
        snapshot: Arc::clone(&updates.snapshot),
        changes: updates.snapshot.changes_since(&TableSnapshot::empty()),
    };
    let mut update = Arc::new(first);
    loop {
        if publish(&live, &update).await.is_none() {
            return;
        }
        live.set_following(true);
        // While nothing changes, it would keep records in memory that are no longer listed.
        drop(update);
        update = tokio::select! {
            update = updates.next(feed) => update,
            () = lobby.ended() => return,
        };
    }
}

/// Marks the list as outdated when the task ends, for whatever reason.
struct ResetFollowing<'a>(&'a Live);

impl Drop for ResetFollowing<'_> {
    fn drop(&mut self) {
        self.0.set_following(false);
    }
}

/// Serializes the events of an update, and publishes them with its snapshot. `None` if the runtime shuts down.
async fn publish(live: &Live, update: &Arc<TableUpdate>) -> Option<()> {
    let before = live.snapshot().cursor();
    // Events are serialized on the blocking pool: with many servers that takes a while, and on a machine with one core the
    // runtime has a single thread, which has to serve lists and pages meanwhile.
    let batch = match update.changes.is_empty() {
        true => None,
        false => {
            let update = Arc::clone(update);
            let previous = Arc::clone(live.snapshot().table());
            tokio::task::spawn_blocking(move || EventBatch::new(&update.changes, &previous, before, KEPT_BYTES))
                .await
                .ok()?
        }
    };
    live.publish(Arc::clone(&update.snapshot), batch);
    Some(())
}
