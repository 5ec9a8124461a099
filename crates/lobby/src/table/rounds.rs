//! Visiting every server again and again: those that are new at once, and all of them in turn.

use super::{ServerFeed, ServerRecord, ShardIndex, Subscription, TableChange};
use std::{sync::Arc, time::Duration};
use tokio::time::{self, MissedTickBehavior};

/// Calls `visit` for every change that `is_urgent` and, spread over each interval, for every server, until the lobby ends.
pub(crate) async fn visit_servers(
    feed: &ServerFeed,
    mut updates: Subscription,
    interval: Duration,
    is_urgent: impl Fn(&TableChange) -> bool,
    mut visit: impl FnMut(&Arc<ServerRecord>),
) {
    let mut ticks = time::interval(interval / ShardIndex::COUNT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shard = ShardIndex::default();
    loop {
        tokio::select! {
            update = updates.next(feed) => {
                update.changes.iter().filter(|change| is_urgent(change)).for_each(|change| visit(change.record()));
            }
            _ = ticks.tick() => {
                feed.snapshot().shard(shard).for_each(&mut visit);
                shard = shard.next();
            }
        }
    }
}
