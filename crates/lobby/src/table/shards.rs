//! The records of a table in shards, so that a change copies only one shard.

use super::ServerRecord;
use rallypoint_lobby_proto::PublicId;
use std::{
    ops::{Index, IndexMut},
    slice,
    sync::Arc,
};

/// Records whose IDs begin with the same byte, sorted by ID. IDs are keyed hashes, so all shards are about equally long.
pub(super) type Shard = Arc<Vec<Arc<ServerRecord>>>;

/// Index of a shard: the first byte of the IDs of its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardIndex(u8);

impl ShardIndex {
    /// Number of shards: one for every value of the index.
    pub const COUNT: u32 = 1 << u8::BITS;

    /// The shard of a record.
    pub fn of(id: PublicId) -> Self {
        Self(id.as_bytes()[0])
    }

    /// The next shard; the first one after the last.
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// All shards, in the order of their indices. A clone shares them until one side changes.
#[derive(Clone, Debug)]
pub(super) struct Shards(Box<[Shard]>);

impl Shards {
    pub fn iter(&self) -> slice::Iter<'_, Shard> {
        self.0.iter()
    }

    /// All records, sorted by ID.
    pub fn records(&self) -> impl Iterator<Item = &Arc<ServerRecord>> {
        self.iter().flat_map(|shard| shard.iter())
    }

    /// The record with this ID.
    pub fn record(&self, id: PublicId) -> Option<&Arc<ServerRecord>> {
        let shard = &self[ShardIndex::of(id)];
        position(shard, id).ok().map(|index| &shard[index])
    }
}

impl Default for Shards {
    fn default() -> Self {
        Self((0..ShardIndex::COUNT).map(|_| Shard::default()).collect())
    }
}

// Neither index can be out of range: there is a shard for every value of a byte.
impl Index<ShardIndex> for Shards {
    type Output = Shard;

    fn index(&self, index: ShardIndex) -> &Shard {
        &self.0[usize::from(index.0)]
    }
}

impl IndexMut<ShardIndex> for Shards {
    fn index_mut(&mut self, index: ShardIndex) -> &mut Shard {
        &mut self.0[usize::from(index.0)]
    }
}

/// The position of a record in its shard, or where it has to be inserted.
pub(super) fn position(shard: &[Arc<ServerRecord>], id: PublicId) -> Result<usize, usize> {
    shard.binary_search_by_key(&id, |record| record.id)
}
