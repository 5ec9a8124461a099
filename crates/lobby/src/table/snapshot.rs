//! An immutable view of all listed servers at one moment.

use super::{ServerRecord, TableChange};
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use rallypoint_wire::lobby::LobbyId;
use std::{collections::BTreeMap, sync::Arc};

/// Number of shards that the records are spread over. A change copies one shard.
pub(super) const SHARDS: usize = 256;

/// Records whose IDs begin with the same byte, sorted by ID. IDs are keyed hashes, so all shards are about equally long.
pub(super) type Shard = Arc<Vec<Arc<ServerRecord>>>;

/// All listed servers at one moment. Readers may hold on to it for as long as they need: it never changes.
#[derive(Debug)]
pub struct TableSnapshot {
    pub(super) shards: Box<[Shard]>,
    pub(super) totals: Totals,
    pub(super) lobbies: Arc<BTreeMap<LobbyId, Totals>>,
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
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, totals: Totals::default(), lobbies: Arc::default(), version: 0 }
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
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// Number of shards. All are about equally large.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The servers of one shard; empty if the number is out of range.
    pub fn shard(&self, number: usize) -> impl Iterator<Item = &Arc<ServerRecord>> {
        self.shards.get(number).into_iter().flat_map(|shard| shard.iter())
    }

    /// The server with this ID.
    #[must_use]
    pub fn record(&self, id: PublicId) -> Option<&Arc<ServerRecord>> {
        find(&self.shards, id)
    }

    /// Totals over all lobbies.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Totals of every lobby that has servers.
    #[must_use]
    pub fn lobbies(&self) -> &BTreeMap<LobbyId, Totals> {
        &self.lobbies
    }

    /// A number that grows with every snapshot, also with those whose changes are too small to be a [`TableChange`].
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What changed between an older snapshot and this one, for a subscriber that missed updates. Shards that are the same
    /// in both cost one comparison. The reason for which a server left is not known any more and reported as
    /// [`UnlistReason::Expired`], the most frequent one.
    #[must_use]
    pub fn changes_since(&self, older: &Self) -> Vec<TableChange> {
        let mut changes = Vec::new();
        for (before, after) in older.shards.iter().zip(&self.shards) {
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

/// The shard that a record belongs to: the first byte of its ID.
pub(super) fn shard_of(id: PublicId) -> usize {
    usize::from(id.as_bytes()[0])
}

/// The record with this ID.
pub(super) fn find(shards: &[Shard], id: PublicId) -> Option<&Arc<ServerRecord>> {
    // There is a shard for every value of a byte.
    let shard = &shards[shard_of(id)];
    position(shard, id).ok().map(|index| &shard[index])
}

/// The index of a record in its shard, or where it has to be inserted.
pub(super) fn position(shard: &[Arc<ServerRecord>], id: PublicId) -> Result<usize, usize> {
    shard.binary_search_by_key(&id, |record| record.id)
}
