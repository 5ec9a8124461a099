//! The list replies, built before anybody asks.
//!
//! A lobby's reply is its count and a row of chunks; a chunk is the blocks of some hundreds of servers behind each
//! other. A change spoils one chunk, which is built again when the lists are published; the others are shared with the
//! reply before. Readers take the published directory and hold on to it as long as they like: nobody waits for anybody.

use crate::{Listing, legacy};
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rallypoint_wire::lobby::{LobbyId, ProtocolId};
use std::{collections::HashMap, sync::Arc};

/// A chunk with this many bytes takes no more servers. Large enough that a thousand servers are few system calls, small
/// enough that building one again is a matter of microseconds.
const CHUNK: usize = 128 * 1024;

/// The published lists, for any thread.
#[derive(Debug)]
pub struct Lists(ArcSwap<Directory>);

/// All lists at one moment.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    lobbies: HashMap<LobbyId, Arc<LobbyList>, RandomState>,
    legacy: HashMap<ProtocolId, Arc<[u8]>, RandomState>,
}

/// The list reply of one lobby at one moment.
#[derive(Debug, Default)]
pub struct LobbyList {
    count: [u8; 4],
    chunks: Vec<Arc<Chunk>>,
    version: u64,
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    listings: Vec<Arc<Listing>>,
}

impl Lists {
    /// All lists as they are now.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        self.0.load_full()
    }

    /// The reply of a lobby; of an unknown one, that it has no servers (L14).
    #[must_use]
    pub fn lobby(&self, id: &LobbyId) -> Arc<LobbyList> {
        self.0.load().lobbies.get(id).cloned().unwrap_or_default()
    }

    /// The reply of the legacy lobby to clients of a protocol (L16).
    #[must_use]
    pub fn legacy(&self, protocol: &ProtocolId) -> Arc<[u8]> {
        self.0.load().legacy.get(protocol).cloned().unwrap_or_else(|| Arc::new([0]))
    }
}

impl Directory {
    /// The lobbies that have servers.
    pub fn lobbies(&self) -> impl Iterator<Item = (&LobbyId, &Arc<LobbyList>)> {
        self.lobbies.iter()
    }
}

impl LobbyList {
    /// How many servers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        u32::from_be_bytes(self.count) as usize
    }

    /// The bytes of the reply, in pieces that go behind each other.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.count[..]).chain(self.chunks.iter().map(|chunk| &chunk.bytes[..]))
    }

    /// How many pieces there are.
    #[must_use]
    pub fn piece_count(&self) -> usize {
        1 + self.chunks.len()
    }

    /// How many bytes the reply has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// The servers, in no particular order.
    pub fn listings(&self) -> impl Iterator<Item = &Arc<Listing>> {
        self.chunks.iter().flat_map(|chunk| &chunk.listings)
    }

    /// Grows with every change of this lobby.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// Where an entry stands in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    lobby: u32,
    chunk: u32,
    position: u32,
}

/// The side of the lists that only the registry sees.
#[derive(Debug)]
pub(crate) struct ListBuilder {
    published: Arc<Lists>,
    by_id: HashMap<LobbyId, u32, RandomState>,
    lobbies: Vec<LobbyBuilder>,
    free: Vec<u32>,
    dirty: Vec<u32>,
    legacy: legacy::Replies,
    version: u64,
}

#[derive(Debug)]
struct LobbyBuilder {
    id: LobbyId,
    chunks: Vec<ChunkBuilder>,
    /// Chunks that can take more.
    open: Vec<u32>,
    count: usize,
    dirty: bool,
}

#[derive(Debug, Default)]
struct ChunkBuilder {
    members: Vec<(u32, Arc<Listing>)>,
    size: usize,
    is_open: bool,
    /// `None` once a member has changed.
    built: Option<Arc<Chunk>>,
}

impl ListBuilder {
    pub fn new() -> Self {
        Self {
            published: Arc::new(Lists(ArcSwap::default())),
            by_id: HashMap::default(),
            lobbies: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            legacy: legacy::Replies::default(),
            version: 0,
        }
    }

    pub fn published(&self) -> &Arc<Lists> {
        &self.published
    }

    /// Puts a server into its lobby's list.
    pub fn insert(&mut self, slot: u32, listing: Arc<Listing>) -> Place {
        self.legacy.insert(&listing);
        let lobby = self.lobby(listing.lobby_id);
        self.touch(lobby);
        let builder = &mut self.lobbies[lobby as usize];
        builder.count += 1;
        let chunk = builder.open.last().copied().unwrap_or_else(|| {
            builder.chunks.push(ChunkBuilder { is_open: true, ..ChunkBuilder::default() });
            builder.open.push(builder.chunks.len() as u32 - 1);
            builder.chunks.len() as u32 - 1
        });
        let members = &mut builder.chunks[chunk as usize];
        members.size += listing.block.len();
        members.built = None;
        members.members.push((slot, listing));
        if members.size >= CHUNK {
            members.is_open = false;
            builder.open.retain(|&open| open != chunk);
        }
        Place { lobby, chunk, position: members.members.len() as u32 - 1 }
    }

    /// Whether showing this would change anything.
    pub fn differs(&self, place: Place, new: &Arc<Listing>) -> bool {
        let shown = &self.lobbies[place.lobby as usize].chunks[place.chunk as usize].members[place.position as usize].1;
        !Arc::ptr_eq(shown, new) && (shown.block != new.block || shown.latency != new.latency)
    }

    /// Shows something new of a server that stays where it is.
    pub fn replace(&mut self, place: Place, listing: Arc<Listing>) {
        self.touch(place.lobby);
        let chunk = &mut self.lobbies[place.lobby as usize].chunks[place.chunk as usize];
        chunk.built = None;
        let old = &mut chunk.members[place.position as usize].1;
        chunk.size = chunk.size - old.block.len() + listing.block.len();
        self.legacy.remove(old);
        self.legacy.insert(&listing);
        *old = listing;
    }

    /// Takes a server out. Another one may take its place: then this says which.
    pub fn remove(&mut self, place: Place) -> Option<(u32, Place)> {
        self.touch(place.lobby);
        let builder = &mut self.lobbies[place.lobby as usize];
        builder.count -= 1;
        let chunk = &mut builder.chunks[place.chunk as usize];
        chunk.built = None;
        let (_, old) = chunk.members.swap_remove(place.position as usize);
        chunk.size -= old.block.len();
        if !chunk.is_open && chunk.size < CHUNK / 2 {
            chunk.is_open = true;
            builder.open.push(place.chunk);
        }
        let moved = chunk.members.get(place.position as usize).map(|&(slot, _)| (slot, place));
        self.legacy.remove(&old);
        moved
    }

    /// Makes all changes visible, in time that depends on what changed.
    pub fn publish(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        self.version += 1;
        let mut directory = Directory::clone(&self.published.directory());
        for lobby in std::mem::take(&mut self.dirty) {
            let builder = &mut self.lobbies[lobby as usize];
            builder.dirty = false;
            if builder.count == 0 {
                directory.lobbies.remove(&builder.id);
                self.by_id.remove(&builder.id);
                builder.chunks.clear();
                builder.open.clear();
                self.free.push(lobby);
            } else {
                directory.lobbies.insert(builder.id, Arc::new(builder.build(self.version)));
            }
        }
        self.legacy.publish(&mut directory.legacy);
        self.published.0.store(Arc::new(directory));
    }

    fn lobby(&mut self, id: LobbyId) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            let new = LobbyBuilder { id, chunks: Vec::new(), open: Vec::new(), count: 0, dirty: false };
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

    fn touch(&mut self, lobby: u32) {
        let builder = &mut self.lobbies[lobby as usize];
        if !builder.dirty {
            builder.dirty = true;
            self.dirty.push(lobby);
        }
    }
}

impl LobbyBuilder {
    fn build(&mut self, version: u64) -> LobbyList {
        let chunks =
            self.chunks.iter_mut().filter(|chunk| !chunk.members.is_empty()).map(ChunkBuilder::build).collect();
        LobbyList { count: (self.count as u32).to_be_bytes(), chunks, version }
    }
}

impl ChunkBuilder {
    fn build(&mut self) -> Arc<Chunk> {
        let build = || {
            let mut bytes = Vec::with_capacity(self.size);
            self.members.iter().for_each(|(_, listing)| bytes.extend_from_slice(&listing.block));
            Arc::new(Chunk { bytes, listings: self.members.iter().map(|(_, listing)| listing.clone()).collect() })
        };
        self.built.get_or_insert_with(build).clone()
    }
}
