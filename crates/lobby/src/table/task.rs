//! The task that feeds the [`ServerTable`] with events and publishes its snapshots.

use super::{ServerFeed, ServerTable, TableInput};
use crate::{LobbyEvents, LogThrottle, service::RegistryHandle};
use rallypoint_lobby_proto::Event;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::{broadcast, mpsc};

/// Number of events after which a step takes no further batch, so that a flood of events does not delay snapshots.
const EVENTS_PER_STEP: usize = 1_024;

/// Interval at which the task checks whether the registry has dropped events or the system clock was set.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after which the table no longer waits for a subscriber, which may have been halted.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Runs until the lobby ends.
pub(crate) async fn run(
    table: ServerTable,
    registry: RegistryHandle,
    feed: Arc<ServerFeed>,
    results: mpsc::Receiver<TableInput>,
) {
    let _ = try_run(Box::new(table), registry, &feed, results).await;
}

/// Returns `None` when the lobby has ended.
async fn try_run(
    table: Box<ServerTable>,
    registry: RegistryHandle,
    feed: &ServerFeed,
    mut results: mpsc::Receiver<TableInput>,
) -> Option<()> {
    let mut lost = registry.stats().dropped_events;
    let mut check = tokio::time::interval(CHECK_INTERVAL);
    let (mut table, mut events) = read_list(table, Vec::new(), &registry).await?;
    let _reset = ResetCurrent(feed);
    let mut received = Vec::new();
    let mut misses = LogThrottle::default();
    loop {
        tokio::select! {
            _ = tokio::time::timeout(MAX_WAIT, feed.until_handled()) => {}
            () = registry.ended() => return None,
        }
        if !received.is_empty() || table.poll_timeout() <= Instant::now() {
            let batch = std::mem::take(&mut received);
            let update;
            (table, update) = off_runtime(table, move |table| {
                handle_events(table, &batch);
                table.handle_timeout(Instant::now())
            })
            .await?;
            if let Some(update) = update {
                feed.publish(update);
            }
        }
        feed.set_current(true);
        let mut has_missed = false;
        tokio::select! {
            event = events.recv() => match event {
                Ok(batch) => {
                    take(&batch, &table, &mut received);
                    has_missed = take_more(&mut events, &table, &mut received);
                }
                Err(broadcast::error::RecvError::Lagged(_)) => has_missed = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            },
            Some(input) = results.recv() => match input {
                TableInput::Verification(result) => table.handle_verification(result),
                TableInput::Latencies(latencies) => table.handle_latencies(Instant::now(), latencies),
            },
            () = tokio::time::sleep_until(table.poll_timeout().into()) => {}
            _ = check.tick() => {
                table.handle_wall_clock(Instant::now(), SystemTime::now());
                let now = registry.stats().dropped_events;
                has_missed = std::mem::replace(&mut lost, now) != now;
            }
            () = registry.ended() => return None,
        }
        if has_missed {
            if let Some(times) = misses.record(Instant::now()) {
                tracing::warn!(times, "the server table missed events of the lobby: reading the whole list again");
            }
            (table, events) = read_list(table, std::mem::take(&mut received), &registry).await?;
        }
    }
}

/// Marks the feed as outdated when the task ends, for whatever reason.
struct ResetCurrent<'a>(&'a ServerFeed);

impl Drop for ResetCurrent<'_> {
    fn drop(&mut self) {
        self.0.set_current(false);
    }
}

/// Reads the current list into the table, after the events that were received before, and subscribes to all later events.
async fn read_list(
    table: Box<ServerTable>,
    before: Vec<Event>,
    registry: &RegistryHandle,
) -> Option<(Box<ServerTable>, broadcast::Receiver<LobbyEvents>)> {
    let (list, events) = registry.follow().await?;
    let (table, ()) = off_runtime(table, move |table| {
        handle_events(table, &before);
        table.handle_list(&list);
    })
    .await?;
    Some((table, events))
}

fn handle_events(table: &mut ServerTable, events: &[Event]) {
    events.iter().for_each(|event| table.handle_event(event));
}

/// Works on the table outside of the runtime's threads. With many servers that takes a while, and on a machine with one core
/// the runtime has a single thread, which has to serve lists and pages meanwhile.
async fn off_runtime<T: Send + 'static>(
    mut table: Box<ServerTable>,
    work: impl FnOnce(&mut ServerTable) -> T + Send + 'static,
) -> Option<(Box<ServerTable>, T)> {
    let work = move || {
        let result = work(&mut table);
        (table, result)
    };
    // It fails when the runtime shuts down.
    tokio::task::spawn_blocking(work).await.ok()
}

/// Takes the events of a batch that concern the table.
fn take(batch: &LobbyEvents, table: &ServerTable, received: &mut Vec<Event>) {
    received.extend(batch.iter().filter(|event| table.is_relevant(event)).cloned());
}

/// Takes events that have already arrived. Returns whether some were missed.
fn take_more(events: &mut broadcast::Receiver<LobbyEvents>, table: &ServerTable, received: &mut Vec<Event>) -> bool {
    while received.len() < EVENTS_PER_STEP {
        match events.try_recv() {
            Ok(batch) => take(&batch, table, received),
            Err(broadcast::error::TryRecvError::Lagged(_)) => return true,
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TableScope, WallClock};
    use std::thread;

    #[tokio::test]
    async fn the_table_is_updated_outside_of_the_runtime_threads() {
        let now = Instant::now();
        let clock = WallClock::new(now, SystemTime::now());
        let table = Box::new(ServerTable::new(now, clock, TableScope::All));
        let (_, worker) = off_runtime(table, |_| thread::current().id()).await.unwrap();
        assert_ne!(worker, thread::current().id());
    }
}
