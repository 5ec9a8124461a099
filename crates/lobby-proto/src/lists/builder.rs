//! The side of the lists that only the registry sees.

use super::{Chunk, ListReply, ListSnapshot, LobbyList, PublishedLists};
use crate::{
    ListedServer,
    hash::{Keyed, KeyedMap, KeyedSet},
    legacy,
};
use rallypoint_wire::lobby::LobbyId;
use std::sync::Arc;

/// A chunk with this many bytes takes no more servers. Large enough that a thousand servers are few system calls, small
/// enough that building one again is a matter of microseconds.
const FULL: usize = 128 * 1024;

/// A chunk that has shrunk below this takes servers again.
const OPEN: usize = FULL / 2;

/// The servers of a chunk that has shrunk below this move to another one, so that a lobby that was large for a while does
/// not stay in a thousand pieces.
const SMALL: usize = FULL / 4;

/// Where an entry stands in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    lobby: u32,
    chunk: u32,
    position: u32,
}

#[derive(Debug)]
pub(crate) struct ListBuilder {
    published: Arc<PublishedLists>,
    by_id: KeyedMap<LobbyId, u32>,
    lobbies: Vec<LobbyBuilder>,
    /// Places in `lobbies` that are not in use.
    free: Vec<u32>,
    dirty: KeyedSet<LobbyId>,
    legacy: legacy::Replies,
    version: u64,
}

#[derive(Debug)]
struct LobbyBuilder {
    id: LobbyId,
    chunks: Vec<ChunkBuilder>,
    /// Chunks that take more servers.
    open: Vec<u32>,
    /// Chunks that have none.
    empty: Vec<u32>,
    count: usize,
}

#[derive(Debug, Default)]
struct ChunkBuilder {
    members: Vec<(u32, Arc<ListedServer>)>,
    /// In bytes.
    size: usize,
    /// Its place in the list of open chunks.
    open_at: Option<usize>,
    /// `None` once a member has changed.
    built: Option<Chunk>,
}

impl ListBuilder {
    pub fn new(keyed: Keyed) -> Self {
        Self {
            published: Arc::new(PublishedLists::new(keyed)),
            by_id: keyed.map(),
            lobbies: Vec::new(),
            free: Vec::new(),
            dirty: keyed.set(),
            legacy: legacy::Replies::new(keyed),
            version: 0,
        }
    }

    pub fn published(&self) -> &Arc<PublishedLists> {
        &self.published
    }

    /// Puts the server of a slot into its lobby's list.
    pub fn insert(&mut self, slot: u32, listing: Arc<ListedServer>) -> Place {
        self.legacy.insert(&listing);
        self.dirty.insert(listing.lobby_id);
        let lobby = self.lobby(listing.lobby_id);
        let builder = &mut self.lobbies[lobby as usize];
        builder.count += 1;
        let (chunk, position) = builder.insert(slot, listing);
        Place { lobby, chunk, position }
    }

    /// What is shown there.
    pub fn at(&self, place: Place) -> &Arc<ListedServer> {
        &self.member(place).1
    }

    /// Shows something new of a server that stays where it is.
    pub fn replace(&mut self, place: Place, listing: Arc<ListedServer>) {
        self.dirty.insert(listing.lobby_id);
        let builder = &mut self.lobbies[place.lobby as usize];
        let chunk = &mut builder.chunks[place.chunk as usize];
        chunk.built = None;
        let old = &mut chunk.members[place.position as usize].1;
        chunk.size = chunk.size - old.block.len() + listing.block.len();
        self.legacy.replace(old, &listing);
        *old = listing;
        builder.open_again(place.chunk);
    }

    /// Takes a server out and gives back what was shown of it. Other servers may have to move: `moved` says where to.
    pub fn remove(&mut self, place: Place, mut moved: impl FnMut(u32, Place)) -> Arc<ListedServer> {
        let Place { lobby, chunk, position } = place;
        let builder = &mut self.lobbies[lobby as usize];
        self.dirty.insert(builder.id);
        builder.count -= 1;
        let old =
            builder.remove(chunk, position, |slot, chunk, position| moved(slot, Place { lobby, chunk, position }));
        self.legacy.remove(&old);
        if builder.count == 0 {
            self.by_id.remove(&builder.id);
            (builder.chunks, builder.open, builder.empty) = Default::default();
            self.free.push(lobby);
        }
        old
    }

    /// Makes all changes visible, in time that depends on what changed. Says how much work it was, in bytes.
    pub fn publish(&mut self) -> usize {
        if self.dirty.is_empty() && self.legacy.is_published() {
            return 0;
        }
        self.version += 1;
        let mut directory = ListSnapshot::clone(&self.published.snapshot());
        let mut work = DIRECTORY_ROW * directory.lobbies.len();
        for id in self.dirty.drain() {
            match self.by_id.get(&id) {
                Some(&lobby) => {
                    let list = self.lobbies[lobby as usize].build(self.version, &mut work);
                    directory.lobbies.insert(id, Arc::new(list));
                }
                None => {
                    directory.lobbies.remove(&id);
                }
            }
        }
        work += self.legacy.publish(&mut directory.legacy);
        self.published.0.store(Arc::new(directory));
        work
    }

    /// Whether everything is published.
    pub fn is_published(&self) -> bool {
        self.dirty.is_empty() && self.legacy.is_published()
    }

    fn lobby(&mut self, id: LobbyId) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            let new = LobbyBuilder { id, chunks: Vec::new(), open: Vec::new(), empty: Vec::new(), count: 0 };
            match self.free.pop() {
                Some(index) => {
                    self.lobbies[index as usize] = new;
                    index
                }
                None => {
                    self.lobbies.push(new);
                    self.lobbies.len() as u32 - 1
                }
            }
        })
    }

    fn member(&self, place: Place) -> &(u32, Arc<ListedServer>) {
        &self.lobbies[place.lobby as usize].chunks[place.chunk as usize].members[place.position as usize]
    }
}

/// Copying the directory costs about as much as so many bytes of a chunk, for each lobby in it.
const DIRECTORY_ROW: usize = 100;

impl LobbyBuilder {
    /// Puts a server into a chunk that has room. Says where.
    fn insert(&mut self, slot: u32, listing: Arc<ListedServer>) -> (u32, u32) {
        let chunk = self.open.last().copied().unwrap_or_else(|| {
            let new = self.empty.pop().unwrap_or_else(|| {
                self.chunks.push(ChunkBuilder::default());
                self.chunks.len() as u32 - 1
            });
            self.open(new);
            new
        });
        let members = &mut self.chunks[chunk as usize];
        members.size += listing.block.len();
        members.built = None;
        members.members.push((slot, listing));
        let position = members.members.len() as u32 - 1;
        if members.size >= FULL {
            self.close(chunk);
        }
        (chunk, position)
    }

    fn remove(&mut self, chunk: u32, position: u32, mut moved: impl FnMut(u32, u32, u32)) -> Arc<ListedServer> {
        let members = &mut self.chunks[chunk as usize];
        members.built = None;
        let (_, old) = members.members.swap_remove(position as usize);
        members.size -= old.block.len();
        if let Some(&(slot, _)) = members.members.get(position as usize) {
            moved(slot, chunk, position);
        }
        self.open_again(chunk);
        if self.chunks[chunk as usize].size < SMALL && self.open.len() > 1 {
            self.close(chunk);
            self.empty.push(chunk);
            let members = std::mem::take(&mut self.chunks[chunk as usize]).members;
            for (slot, listing) in members {
                let (chunk, position) = self.insert(slot, listing);
                moved(slot, chunk, position);
            }
        }
        old
    }

    fn open(&mut self, chunk: u32) {
        self.chunks[chunk as usize].open_at = Some(self.open.len());
        self.open.push(chunk);
    }

    /// A chunk that has shrunk may have room again.
    fn open_again(&mut self, chunk: u32) {
        let ChunkBuilder { size, open_at, .. } = self.chunks[chunk as usize];
        if size < OPEN && open_at.is_none() {
            self.open(chunk);
        }
    }

    fn close(&mut self, chunk: u32) {
        if let Some(at) = self.chunks[chunk as usize].open_at.take() {
            self.open.swap_remove(at);
            if let Some(&moved) = self.open.get(at) {
                self.chunks[moved as usize].open_at = Some(at);
            }
        }
    }

    fn build(&mut self, version: u64, work: &mut usize) -> LobbyList {
        let used = self.chunks.iter_mut().filter(|chunk| !chunk.members.is_empty());
        let (pieces, listings) =
            used.map(|chunk| chunk.build(work)).map(|Chunk { bytes, listings }| (bytes, listings)).unzip();
        let reply = ListReply { count: (self.count as u32).to_be_bytes(), pieces, ..ListReply::default() };
        LobbyList { reply: Arc::new(reply), listings, version }
    }
}

impl ChunkBuilder {
    fn build(&mut self, work: &mut usize) -> Chunk {
        let build = || {
            *work += self.size;
            let mut bytes = Vec::with_capacity(self.size);
            self.members.iter().for_each(|(_, listing)| bytes.extend_from_slice(&listing.block));
            let listings = self.members.iter().map(|(_, listing)| listing.clone()).collect();
            Chunk { bytes: Arc::new(bytes), listings: Arc::new(listings) }
        };
        self.built.get_or_insert_with(build).clone()
    }
}

impl ListBuilder {
    /// Every member with its place.
    fn members(&self) -> impl Iterator<Item = (u32, Place, &Arc<ListedServer>)> {
        let lobbies = self.by_id.values().map(|&lobby| (lobby, &self.lobbies[lobby as usize]));
        lobbies.flat_map(|(lobby, builder)| {
            (0..).zip(&builder.chunks).flat_map(move |(chunk, members)| {
                (0..)
                    .zip(&members.members)
                    .map(move |(position, (slot, listing))| (*slot, Place { lobby, chunk, position }, listing))
            })
        })
    }

    pub fn check_invariants(&self, is_at: impl Fn(u32, Place, &Arc<ListedServer>) -> bool) {
        assert!(self.members().all(|(slot, place, listing)| is_at(slot, place, listing)), "a place in the lists");
        assert_eq!(self.by_id.len() + self.free.len(), self.lobbies.len(), "lobbies in the lists");
        for (id, &lobby) in &self.by_id {
            let LobbyBuilder { chunks, open, empty, count, .. } = &self.lobbies[lobby as usize];
            assert_eq!(self.lobbies[lobby as usize].id, *id);
            assert_eq!(chunks.iter().map(|chunk| chunk.members.len()).sum::<usize>(), *count, "count of a lobby");
            assert!(*count > 0, "an empty lobby");
            for (at, chunk) in chunks.iter().enumerate() {
                let size: usize = chunk.members.iter().map(|(_, listing)| listing.block.len()).sum();
                assert_eq!(size, chunk.size, "size of a chunk");
                assert!(chunk.members.iter().all(|(_, listing)| listing.lobby_id == *id), "in another lobby's list");
                let is_empty = empty.contains(&(at as u32));
                assert_eq!(chunk.open_at.map(|place| open[place]), chunk.open_at.map(|_| at as u32), "open chunks");
                assert!(chunk.open_at.is_some() || is_empty || size >= OPEN, "a chunk that is lost");
                assert!(!is_empty || (size == 0 && chunk.open_at.is_none()), "an empty chunk");
            }
        }
    }
}
