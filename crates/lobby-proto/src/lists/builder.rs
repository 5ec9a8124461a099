//! The lists as the registry edits them.

use super::{Chunk, ListReply, ListSnapshot, PublishedList, PublishedLists};
use crate::{
    ListedServer,
    hash::{KeyedHash, KeyedMap, KeyedSet},
    index::{SlotIndex, index_type},
};
use rallypoint_wire::lobby::ListId;
use std::sync::Arc;

/// Size at which a chunk takes no more servers, in bytes. Large enough that a thousand servers take few system calls, small
/// enough that rebuilding a chunk is a matter of microseconds.
const FULL: usize = 128 * 1024;

/// Size below which a chunk that has shrunk takes servers again.
const OPEN: usize = FULL / 2;

/// Size below which the servers of a chunk move to other chunks, so that a list that was large for a while does not stay in
/// a thousand pieces.
const SMALL: usize = FULL / 4;

/// Cost of copying the snapshot, per list, in bytes of a chunk that take about as long to copy.
const SNAPSHOT_ROW: usize = 100;

index_type! {
    /// A list of a [`ListBuilder`].
    ListIndex
}

index_type! {
    /// A chunk of a list.
    ChunkIndex
}

/// The position of a server in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListPosition {
    list: ListIndex,
    within: ChunkPosition,
}

/// The position of a server in the list of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkPosition {
    chunk: ChunkIndex,
    /// Position among the members of the chunk.
    member: u32,
}

#[derive(Debug)]
pub(crate) struct ListBuilder {
    published: Arc<PublishedLists>,
    by_id: KeyedMap<ListId, ListIndex>,
    lists: Vec<ListChunks>,
    /// Elements of `lists` that are not in use.
    free: Vec<ListIndex>,
    /// Lists that have changed since they were published.
    dirty: KeyedSet<ListId>,
    version: u64,
}

#[derive(Debug)]
struct ListChunks {
    id: ListId,
    chunks: Vec<ChunkBuilder>,
    /// Chunks that take more servers.
    open: Vec<ChunkIndex>,
    /// Chunks without servers.
    empty: Vec<ChunkIndex>,
    /// Number of servers.
    count: usize,
    /// Whether it is one of the changed lists. Most changes find it so, and need not look it up.
    is_dirty: bool,
}

#[derive(Debug, Default)]
struct ChunkBuilder {
    members: Vec<Member>,
    /// In bytes.
    size: usize,
    /// Position in the list of open chunks.
    open_at: Option<usize>,
    /// The chunk as last built; `None` if a member has changed since.
    built: Option<Chunk>,
}

#[derive(Debug)]
struct Member {
    slot: SlotIndex,
    server: Arc<ListedServer>,
}

impl ListBuilder {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            published: Arc::new(PublishedLists::new(keyed)),
            by_id: keyed.map(),
            lists: Vec::new(),
            free: Vec::new(),
            dirty: keyed.set(),
            version: 0,
        }
    }

    pub fn published(&self) -> &Arc<PublishedLists> {
        &self.published
    }

    /// Adds the server of a slot to the list of its list.
    pub fn insert(&mut self, slot: SlotIndex, server: Arc<ListedServer>) -> ListPosition {
        let list = self.list_index(server.list_id);
        let builder = &mut self.lists[list.get()];
        builder.mark_dirty(&mut self.dirty);
        builder.count += 1;
        ListPosition { list, within: builder.insert(Member { slot, server }) }
    }

    /// Replaces the data of a server, which keeps its position. Returns whether they are new.
    pub fn replace(&mut self, position: ListPosition, server: &Arc<ListedServer>) -> bool {
        let ChunkPosition { chunk: index, member } = position.within;
        let builder = &mut self.lists[position.list.get()];
        let chunk = &mut builder.chunks[index.get()];
        let old = &mut chunk.members[member as usize].server;
        if Arc::ptr_eq(old, server) {
            return false;
        }
        chunk.built = None;
        chunk.size = chunk.size - old.block.len() + server.block.len();
        old.clone_from(server);
        builder.mark_dirty(&mut self.dirty);
        builder.reopen(index);
        true
    }

    /// Removes and returns a server. Other servers may change their position: `moved` is called for each.
    pub fn remove(
        &mut self,
        position: ListPosition,
        mut moved: impl FnMut(SlotIndex, ListPosition),
    ) -> Arc<ListedServer> {
        let ListPosition { list, within } = position;
        let builder = &mut self.lists[list.get()];
        builder.mark_dirty(&mut self.dirty);
        builder.count -= 1;
        let old = builder.remove(within, |slot, within| moved(slot, ListPosition { list, within }));
        if builder.count == 0 {
            self.by_id.remove(&builder.id);
            builder.chunks = Vec::new();
            builder.open = Vec::new();
            builder.empty = Vec::new();
            self.free.push(list);
        }
        old
    }

    /// Makes changes visible, in time that depends on what changed. Returns the amount of work in bytes.
    pub fn publish(&mut self) -> usize {
        if self.dirty.is_empty() {
            return 0;
        }
        self.version += 1;
        let mut snapshot = ListSnapshot::clone(&self.published.snapshot());
        let mut work = SNAPSHOT_ROW * snapshot.lists.len();
        for id in self.dirty.drain() {
            match self.by_id.get(&id) {
                Some(list) => {
                    let builder = &mut self.lists[list.get()];
                    builder.is_dirty = false;
                    let list = builder.build(self.version, &mut work);
                    snapshot.lists.insert(id, Arc::new(list));
                }
                None => {
                    snapshot.lists.remove(&id);
                }
            }
        }
        self.published.0.store(Arc::new(snapshot));
        work
    }

    fn list_index(&mut self, id: ListId) -> ListIndex {
        *self.by_id.entry(id).or_insert_with(|| {
            let new =
                ListChunks { id, chunks: Vec::new(), open: Vec::new(), empty: Vec::new(), count: 0, is_dirty: false };
            match self.free.pop() {
                Some(index) => {
                    self.lists[index.get()] = new;
                    index
                }
                None => {
                    self.lists.push(new);
                    ListIndex::new(self.lists.len() - 1)
                }
            }
        })
    }
}

impl ListChunks {
    /// Adds the list to those that have changed.
    fn mark_dirty(&mut self, dirty: &mut KeyedSet<ListId>) {
        if !self.is_dirty {
            self.is_dirty = true;
            dirty.insert(self.id);
        }
    }

    /// Adds a server to a chunk that has room.
    fn insert(&mut self, member: Member) -> ChunkPosition {
        let index = self.open.last().copied().unwrap_or_else(|| {
            let new = self.empty.pop().unwrap_or_else(|| {
                self.chunks.push(ChunkBuilder::default());
                ChunkIndex::new(self.chunks.len() - 1)
            });
            self.open(new);
            new
        });
        let chunk = &mut self.chunks[index.get()];
        chunk.size += member.server.block.len();
        chunk.built = None;
        chunk.members.push(member);
        let member = chunk.members.len() as u32 - 1;
        if chunk.size >= FULL {
            self.close(index);
        }
        ChunkPosition { chunk: index, member }
    }

    fn remove(
        &mut self,
        position: ChunkPosition,
        mut moved: impl FnMut(SlotIndex, ChunkPosition),
    ) -> Arc<ListedServer> {
        let index = position.chunk;
        let chunk = &mut self.chunks[index.get()];
        chunk.built = None;
        let old = chunk.members.swap_remove(position.member as usize).server;
        chunk.size -= old.block.len();
        if let Some(last) = chunk.members.get(position.member as usize) {
            moved(last.slot, position);
        }
        self.reopen(index);
        if self.chunks[index.get()].size < SMALL && self.open.len() > 1 {
            self.close(index);
            self.empty.push(index);
            for member in std::mem::take(&mut self.chunks[index.get()]).members {
                let slot = member.slot;
                moved(slot, self.insert(member));
            }
        }
        old
    }

    fn open(&mut self, chunk: ChunkIndex) {
        self.chunks[chunk.get()].open_at = Some(self.open.len());
        self.open.push(chunk);
    }

    /// Opens a chunk that has shrunk, if it has room again.
    fn reopen(&mut self, chunk: ChunkIndex) {
        let ChunkBuilder { size, open_at, .. } = self.chunks[chunk.get()];
        if size < OPEN && open_at.is_none() {
            self.open(chunk);
        }
    }

    fn close(&mut self, chunk: ChunkIndex) {
        if let Some(at) = self.chunks[chunk.get()].open_at.take() {
            self.open.swap_remove(at);
            if let Some(moved) = self.open.get(at) {
                self.chunks[moved.get()].open_at = Some(at);
            }
        }
    }

    fn build(&mut self, version: u64, work: &mut usize) -> PublishedList {
        let used = self.chunks.iter_mut().filter(|chunk| !chunk.members.is_empty());
        let (chunks, servers) =
            used.map(|chunk| chunk.build(work)).map(|Chunk { bytes, servers }| (bytes, servers)).unzip();
        let reply = ListReply::new(self.count as u32, chunks);
        PublishedList { reply: Arc::new(reply), servers, version }
    }
}

impl ChunkBuilder {
    fn build(&mut self, work: &mut usize) -> Chunk {
        let build = || {
            *work += self.size;
            let mut bytes = Vec::with_capacity(self.size);
            self.members.iter().for_each(|member| bytes.extend_from_slice(&member.server.block));
            let servers = self.members.iter().map(|member| member.server.clone()).collect();
            Chunk { bytes: Arc::new(bytes), servers: Arc::new(servers) }
        };
        self.built.get_or_insert_with(build).clone()
    }
}

#[cfg(any(test, feature = "invariants"))]
impl ListBuilder {
    /// All members with their positions.
    fn members(&self) -> impl Iterator<Item = (SlotIndex, ListPosition, &Arc<ListedServer>)> {
        let lists = self.by_id.values().map(|&list| (list, &self.lists[list.get()]));
        lists.flat_map(|(list, builder)| {
            builder.chunks.iter().enumerate().flat_map(move |(index, chunk)| {
                let chunk_index = ChunkIndex::new(index);
                (0..).zip(&chunk.members).map(move |(member, Member { slot, server })| {
                    (*slot, ListPosition { list, within: ChunkPosition { chunk: chunk_index, member } }, server)
                })
            })
        })
    }

    pub fn check_invariants(&self, is_at: impl Fn(SlotIndex, ListPosition, &Arc<ListedServer>) -> bool) {
        assert!(self.members().all(|(slot, position, server)| is_at(slot, position, server)), "position in the lists");
        assert_eq!(self.by_id.len() + self.free.len(), self.lists.len(), "lists in the lists");
        for (id, list) in &self.by_id {
            let ListChunks { chunks, open, empty, count, .. } = &self.lists[list.get()];
            assert_eq!(self.lists[list.get()].id, *id);
            assert_eq!(chunks.iter().map(|chunk| chunk.members.len()).sum::<usize>(), *count, "count of a list");
            assert!(*count > 0, "an empty list");
            for (index, chunk) in chunks.iter().enumerate() {
                let index = ChunkIndex::new(index);
                let size: usize = chunk.members.iter().map(|member| member.server.block.len()).sum();
                assert_eq!(size, chunk.size, "size of a chunk");
                let is_member = |member: &Member| member.server.list_id == *id;
                assert!(chunk.members.iter().all(is_member), "a server in the list of another list");
                let is_empty = empty.contains(&index);
                assert_eq!(chunk.open_at.map(|at| open[at]), chunk.open_at.map(|_| index), "open chunks");
                assert!(chunk.open_at.is_some() || is_empty || size >= OPEN, "a chunk that is not reused");
                assert!(!is_empty || (size == 0 && chunk.open_at.is_none()), "an empty chunk");
            }
        }
    }
}
