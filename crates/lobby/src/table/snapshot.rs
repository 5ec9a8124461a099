//! An immutable view of all listed servers at one moment.

use super::{
    ServerRecord, ShardIndex, TableChange,
    shards::{Shards, position},
};
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use rallypoint_wire::lobby::ListId;
use std::{collections::BTreeMap, sync::Arc};

/// All listed servers at one moment. Readers may hold on to it for as long as they need: it never changes.
#[derive(Debug)]
pub struct TableSnapshot {
    pub(super) shards: Shards,
    pub(super) totals: Totals,
    pub(super) lists: Arc<BTreeMap<ListId, Totals>>,
    pub(super) version: u64,
}

/// Sums over a set of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of servers.
    pub servers: usize,
    /// Number of human players.
    pub players: u64,
    /// Number of bots.
    pub bots: u64,
    /// Number of player slots.
    pub slots: u64,
}

impl TableSnapshot {
    /// A snapshot without servers, older than any other.
    #[must_use]
    pub fn empty() -> Self {
        Self { shards: Shards::default(), totals: Totals::default(), lists: Arc::default(), version: 0 }
    }

    /// Number of servers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.totals.servers
    }

    /// Whether no server is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All servers, sorted by ID.
    pub fn records(&self) -> impl Iterator<Item = &Arc<ServerRecord>> {
        self.shards.records()
    }

    /// The servers of one shard. All shards are about equally large.
    pub(crate) fn shard(&self, index: ShardIndex) -> impl Iterator<Item = &Arc<ServerRecord>> {
        self.shards[index].iter()
    }

    /// The server with this ID.
    #[must_use]
    pub fn record(&self, id: PublicId) -> Option<&Arc<ServerRecord>> {
        self.shards.record(id)
    }

    /// Totals over all lists.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Totals of every list that has servers.
    #[must_use]
    pub fn lists(&self) -> &BTreeMap<ListId, Totals> {
        &self.lists
    }

    /// A number that grows with every snapshot, also with those whose changes are too small to be a [`TableChange`].
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The changes between an older snapshot and this one, for a subscriber that missed updates. Shards that are the same
    /// in both cost one comparison. The reason for which a server left is not known any more and reported as
    /// [`UnlistReason::Expired`], the most frequent one.
    #[must_use]
    pub fn changes_since(&self, older: &Self) -> Vec<TableChange> {
        let mut changes = Vec::new();
        for (before, after) in older.shards.iter().zip(self.shards.iter()) {
            if Arc::ptr_eq(before, after) {
                continue;
            }
            let removed = before.iter().filter(|record| position(after, record.id).is_err());
            changes.extend(removed.map(|record| TableChange::Unlisted(Arc::clone(record), UnlistReason::Expired)));
            for record in after.iter() {
                match position(before, record.id) {
                    Ok(index) => changes.extend(TableChange::between(&before[index], record).into_iter().flatten()),
                    Err(_) => changes.push(TableChange::Listed(Arc::clone(record))),
                }
            }
        }
        changes
    }
}

impl Totals {
    pub(super) fn add(&mut self, record: &ServerRecord) {
        self.servers += 1;
        self.players += u64::from(record.players);
        self.bots += u64::from(record.bots);
        self.slots += u64::from(record.slots);
    }

    pub(super) fn subtract(&mut self, record: &ServerRecord) {
        self.servers -= 1;
        self.players -= u64::from(record.players);
        self.bots -= u64::from(record.bots);
        self.slots -= u64::from(record.slots);
    }
}
