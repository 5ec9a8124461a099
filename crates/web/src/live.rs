//! The servers as the web server displays them: the latest snapshot of the lobby's table, and the events since.

mod cursor;
mod event_batch;
mod event_history;
mod follow;
mod id_filter;

pub(crate) use cursor::Cursor;
use event_batch::EventBatch;
pub(crate) use event_history::{EventHistory, EventScope, EventSubscription};
pub(crate) use follow::follow;
pub(crate) use id_filter::IdFilter;

use arc_swap::{ArcSwap, Guard};
use rallypoint_lobby::{ServerFeed, TableSnapshot};
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The latest snapshot and the events since.
#[derive(Debug)]
pub(crate) struct Live {
    feed: Arc<ServerFeed>,
    snapshot: ArcSwap<LiveSnapshot>,
    events: Arc<EventHistory>,
    is_following: AtomicBool,
}

/// A snapshot of the lobby's table, and the last event whose change it contains.
#[derive(Debug)]
pub(crate) struct LiveSnapshot {
    table: Arc<TableSnapshot>,
    cursor: Cursor,
    listed: u64,
}

impl LiveSnapshot {
    pub fn new(table: Arc<TableSnapshot>, cursor: Cursor, listed: u64) -> Self {
        Self { table, cursor, listed }
    }

    pub fn table(&self) -> &Arc<TableSnapshot> {
        &self.table
    }

    /// Number of servers that were listed since this process started. A client compares it with an earlier one to know whether
    /// there are new servers.
    pub fn listed(&self) -> u64 {
        self.listed
    }

    /// The last event whose change is part of this snapshot.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }
}

impl Deref for LiveSnapshot {
    type Target = TableSnapshot;

    fn deref(&self) -> &TableSnapshot {
        &self.table
    }
}

impl Live {
    /// An empty list. The epoch distinguishes the events of this process from those of an earlier one: it should be random.
    pub fn new(feed: Arc<ServerFeed>, epoch: u32) -> Self {
        let before = Cursor { epoch, number: 0 };
        let snapshot = LiveSnapshot::new(Arc::new(TableSnapshot::empty()), before, 0);
        Self {
            feed,
            snapshot: ArcSwap::from_pointee(snapshot),
            events: Arc::new(EventHistory::new(before)),
            is_following: false.into(),
        }
    }

    /// The latest snapshot of all servers.
    pub fn snapshot(&self) -> Guard<Arc<LiveSnapshot>> {
        self.snapshot.load()
    }

    /// Number of open event streams.
    pub fn listeners(&self) -> usize {
        self.events.subscriptions()
    }

    /// Whether the snapshot follows the table of the lobby: from its first update until the lobby ends.
    pub fn is_current(&self) -> bool {
        self.is_following.load(Relaxed) && self.feed.is_current()
    }

    fn set_following(&self, is_following: bool) {
        self.is_following.store(is_following, Relaxed);
    }

    /// Publishes a snapshot and the events that lead to it.
    fn publish(&self, table: Arc<TableSnapshot>, batch: Option<EventBatch>) {
        let listed = self.snapshot().listed() + batch.as_ref().map_or(0, EventBatch::listed);
        self.events.publish(batch, |cursor| self.snapshot.store(Arc::new(LiveSnapshot::new(table, cursor, listed))));
    }

    /// The events that lead to the latest snapshot.
    pub fn events(&self) -> &Arc<EventHistory> {
        &self.events
    }
}
