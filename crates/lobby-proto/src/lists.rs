//! The list replies, built before anybody asks.
//!
//! A lobby's reply is its count and a row of chunks; a chunk is the blocks of some hundreds of servers behind each
//! other. A change spoils one chunk, which is built again when the lists are published; the others are shared with the
//! reply before. Readers take the published directory and hold on to it as long as they like: nobody waits for anybody.

mod builder;

pub(crate) use builder::{ListBuilder, Place};

use crate::{
    ListedServer,
    hash::{Keyed, KeyedMap},
};
use arc_swap::ArcSwap;
use rallypoint_wire::lobby::{LobbyId, ProtocolId};
use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

/// The published lists, for any thread.
#[derive(Debug)]
pub struct PublishedLists(ArcSwap<ListSnapshot>);

/// All lists at one moment.
#[derive(Clone, Debug)]
pub struct ListSnapshot {
    lobbies: KeyedMap<LobbyId, Arc<LobbyList>>,
    legacy: Arc<KeyedMap<ProtocolId, Arc<[u8]>>>,
}

/// The list of one lobby at one moment.
#[derive(Debug, Default)]
pub struct LobbyList {
    reply: Arc<ListReply>,
    listings: Vec<Arc<Vec<Arc<ListedServer>>>>,
    version: u64,
}

/// The bytes that a client gets, and nothing else: a slow client keeps no more than these in memory.
#[derive(Debug, Default)]
pub struct ListReply {
    count: [u8; 4],
    pieces: Vec<Arc<Vec<u8>>>,
    companion: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// A part of a list, as bytes and as servers.
#[derive(Clone, Debug)]
struct Chunk {
    bytes: Arc<Vec<u8>>,
    listings: Arc<Vec<Arc<ListedServer>>>,
}

impl PublishedLists {
    fn new(keyed: Keyed) -> Self {
        Self(ArcSwap::from_pointee(ListSnapshot { lobbies: keyed.map(), legacy: Arc::new(keyed.map()) }))
    }

    /// All lists as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<ListSnapshot> {
        self.0.load_full()
    }

    /// The reply of a lobby; of an unknown one, that it has no servers (L14).
    #[must_use]
    pub fn lobby(&self, id: &LobbyId) -> Arc<LobbyList> {
        self.0.load().lobbies.get(id).cloned().unwrap_or_default()
    }

    /// What a client of a lobby gets.
    #[must_use]
    pub fn reply(&self, id: &LobbyId) -> Arc<ListReply> {
        self.0.load().lobbies.get(id).map_or_else(Arc::default, |list| list.reply.clone())
    }

    /// The reply of the legacy lobby to clients of a protocol (L16).
    #[must_use]
    pub fn legacy_reply(&self, protocol: &ProtocolId) -> Arc<[u8]> {
        self.0.load().legacy.get(protocol).cloned().unwrap_or_else(|| Arc::new([0]))
    }
}

impl ListSnapshot {
    /// The lobbies that have servers.
    pub fn lobbies(&self) -> impl Iterator<Item = (&LobbyId, &Arc<LobbyList>)> {
        self.lobbies.iter()
    }
}

impl LobbyList {
    /// What a client gets.
    #[must_use]
    pub fn reply(&self) -> &Arc<ListReply> {
        &self.reply
    }

    /// How many servers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reply.count()
    }

    /// The bytes of the reply, in pieces that go behind each other.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.reply.pieces()
    }

    /// How many bytes the reply has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.reply.size()
    }

    /// The servers, in the order of the reply, which is no particular one.
    pub fn listings(&self) -> impl Iterator<Item = &Arc<ListedServer>> {
        self.listings.iter().flat_map(|chunk| chunk.iter())
    }

    /// Grows with every change of this lobby.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl ListReply {
    /// How many servers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        u32::from_be_bytes(self.count) as usize
    }

    /// The bytes, in pieces that go behind each other.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.count[..]).chain(self.pieces.iter().map(|piece| &piece[..]))
    }

    /// How many pieces there are.
    #[must_use]
    pub fn piece_count(&self) -> usize {
        1 + self.pieces.len()
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// What a service keeps beside the reply for as long as that is there, say a copy in another form. The first call
    /// decides what it is; `None` if that was something of another type.
    pub fn companion<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.companion.get_or_init(|| Box::new(make())).downcast_ref()
    }
}
