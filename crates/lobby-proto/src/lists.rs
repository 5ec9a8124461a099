//! List replies, built before clients ask for them.
//!
//! The reply of a list is its count and a sequence of chunks; a chunk is the concatenated blocks of some hundreds of servers.
//! A change invalidates one chunk, which is rebuilt when the lists are published; the other chunks are shared with the
//! previous reply. Readers take the published snapshot and keep it as long as they like; neither readers nor the publisher
//! ever wait for each other.

mod builder;

pub(crate) use builder::{ListBuilder, ListPosition};

use crate::{
    ListedServer,
    hash::{KeyedHash, KeyedMap},
};
use arc_swap::ArcSwap;
use rallypoint_wire::lobby::ListId;
use std::sync::Arc;

/// The lists as last published, readable by any thread without waiting.
///
/// ```
/// use rallypoint_lobby_proto::{Config, HashKeys, Registry};
/// use rallypoint_wire::lobby::ListId;
/// use std::time::Instant;
///
/// let registry = Registry::new(Config::default(), HashKeys::default(), Instant::now())?;
/// let lists = registry.lists();
/// // The reply to a TCP client: four bytes of count, then the servers.
/// let reply = lists.reply(&ListId::GANG_GARRISON_2);
/// assert_eq!(reply.pieces().collect::<Vec<_>>().concat(), [0, 0, 0, 0]);
/// # Ok::<(), rallypoint_lobby_proto::RegistryConfigError>(())
/// ```
#[derive(Debug)]
pub struct PublishedLists(ArcSwap<ListSnapshot>);

/// The lists of all lists at one moment.
#[derive(Clone, Debug)]
pub struct ListSnapshot {
    lists: KeyedMap<ListId, Arc<PublishedList>>,
}

/// The list of one list at one moment.
#[derive(Debug, Default)]
pub struct PublishedList {
    reply: Arc<ListReply>,
    servers: Vec<Arc<Vec<Arc<ListedServer>>>>,
    version: u64,
}

/// The bytes of a list reply and nothing else: a slow client keeps no more than these in memory.
#[derive(Debug)]
pub struct ListReply {
    count: [u8; 4],
    chunks: Vec<Arc<Vec<u8>>>,
    size: usize,
}

/// A part of a list, as bytes and as servers.
#[derive(Clone, Debug)]
struct Chunk {
    bytes: Arc<Vec<u8>>,
    servers: Arc<Vec<Arc<ListedServer>>>,
}

impl PublishedLists {
    fn new(keyed: KeyedHash) -> Self {
        Self(ArcSwap::from_pointee(ListSnapshot { lists: keyed.map() }))
    }

    /// The lists of all lists as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<ListSnapshot> {
        self.0.load_full()
    }

    /// The list of a list; empty if the list is unknown (L14).
    #[must_use]
    pub fn list(&self, id: &ListId) -> Arc<PublishedList> {
        self.0.load().lists.get(id).cloned().unwrap_or_default()
    }

    /// The reply to a client of a list.
    #[must_use]
    pub fn reply(&self, id: &ListId) -> Arc<ListReply> {
        self.0.load().lists.get(id).map_or_else(Arc::default, |list| list.reply.clone())
    }
}

/// A list without servers whose reply has this size.
#[cfg(test)]
pub(crate) fn test_list(version: u64, size: usize) -> PublishedList {
    PublishedList { reply: Arc::new(ListReply { size, ..ListReply::default() }), servers: Vec::new(), version }
}

impl ListSnapshot {
    /// The lists that have listed servers.
    pub fn lists(&self) -> impl Iterator<Item = (&ListId, &Arc<PublishedList>)> {
        self.lists.iter()
    }
}

impl PublishedList {
    /// The reply to a client.
    #[must_use]
    pub fn reply(&self) -> &Arc<ListReply> {
        &self.reply
    }

    /// Number of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reply.count()
    }

    /// The bytes of the reply, in consecutive pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.reply.pieces()
    }

    /// Size of the reply in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.reply.size()
    }

    /// The servers in the order of the reply, which is unspecified.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ListedServer>> {
        self.servers.iter().flat_map(|chunk| chunk.iter())
    }

    /// A number that increases with every change of this list.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl Default for ListReply {
    /// The reply without servers.
    fn default() -> Self {
        Self::new(0, Vec::new())
    }
}

impl ListReply {
    fn new(count: u32, chunks: Vec<Arc<Vec<u8>>>) -> Self {
        let count = count.to_be_bytes();
        let size = count.len() + chunks.iter().map(|chunk| chunk.len()).sum::<usize>();
        Self { count, chunks, size }
    }

    /// Number of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        u32::from_be_bytes(self.count) as usize
    }

    /// The bytes, in consecutive pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.count[..]).chain(self.chunks.iter().map(|chunk| &chunk[..]))
    }

    /// Number of pieces.
    #[must_use]
    pub fn piece_count(&self) -> usize {
        1 + self.chunks.len()
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}
