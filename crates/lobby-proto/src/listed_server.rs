//! Servers as the list shows them.

use crate::{
    PublicId,
    doors::Door,
    entry::{Addr, Family, PerFamily},
};
use rallypoint_wire::lobby::{ListBlock, ListId};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// How a server came into the list. If two servers claim the same endpoint, the greater origin wins (W38).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListingOrigin {
    /// It registered itself.
    #[default]
    Registered,
    /// It announced itself to the Bloodmasters master list and replied to a query (L17).
    Announced,
    /// The operator configured it as a watched server, and it replies to queries.
    Watched,
}

impl ListingOrigin {
    /// All origins, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Registered, Self::Announced, Self::Watched];

    /// The code of the origin in the API.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Announced => "announced",
            Self::Watched => "watched",
        }
    }

    /// Whether a server counts towards the caps of its address. Watched servers do not: they did not ask to be listed.
    pub(crate) const fn is_charged(self) -> bool {
        !matches!(self, Self::Watched)
    }
}

/// A server as the list shows it. It does not change, apart from the latency: an update of the server makes a new one.
#[derive(Debug)]
pub struct ListedServer {
    pub(crate) public_id: PublicId,
    pub(crate) list_id: ListId,
    pub(crate) since: Instant,
    pub(crate) origin: ListingOrigin,
    pub(crate) door: Option<&'static Door>,
    /// In microseconds, or [`NOT_MEASURED`]. It differs with every check and is no reason to publish a new list, so it is
    /// the only field that is changed in place.
    latency: AtomicU32,
    /// Whether the server states how to query it (E1).
    pub(crate) has_query: bool,
    /// The server's block of the list reply, including the length.
    pub(crate) block: Box<[u8]>,
    /// Estimated memory use of the entry, in bytes; it follows from the block.
    memory: u32,
    /// The addresses before the address map; `None` for most servers, whose addresses the map does not change.
    pub(crate) internal: Option<Box<InternalAddrs>>,
}

/// The address of an endpoint before the address map, by family; `None` if the map does not change it.
pub(crate) type InternalAddrs = PerFamily<Option<Addr>>;

const NOT_MEASURED: u32 = u32::MAX;

impl ListedServer {
    /// The public ID.
    #[must_use]
    pub fn public_id(&self) -> PublicId {
        self.public_id
    }

    /// The list in which the server is listed.
    #[must_use]
    pub fn list_id(&self) -> ListId {
        self.list_id
    }

    /// When the server first registered.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// How the server came into the list.
    #[must_use]
    pub fn origin(&self) -> ListingOrigin {
        self.origin
    }

    /// The door through which the server came; `None` for servers that the operator watches.
    #[must_use]
    pub fn door(&self) -> Option<&'static Door> {
        self.door
    }

    /// Round-trip time of the last successful check or query by the lobby, if there was one (L12).
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        match self.latency.load(Ordering::Relaxed) {
            NOT_MEASURED => None,
            microseconds => Some(Duration::from_micros(u64::from(microseconds))),
        }
    }

    /// Whether the server states how to query it (E1).
    #[must_use]
    pub fn has_query(&self) -> bool {
        self.has_query
    }

    /// The address at which the lobby itself reaches a listed address: the same, unless the address map has changed it.
    /// Many routers do not pass packets from the inside to their own external address.
    #[must_use]
    pub fn internal_addr(&self, listed: SocketAddr) -> SocketAddr {
        let internal = self.internal.as_ref().and_then(|internal| internal[Family::of(listed.ip())]);
        internal.map_or(listed, Into::into)
    }

    /// The server's block of the list reply.
    #[must_use]
    pub fn block(&self) -> ListBlock<'_> {
        ListBlock::parse(&self.block[4..]).expect("every block in a `ListedServer` was written by `ListBlock::emit`")
    }

    /// A registered server, which is not listed yet: the endpoints of the block are ignored.
    pub(crate) fn new(public_id: PublicId, list_id: ListId, since: Instant, block: &ListBlock<'_>) -> Self {
        let mut bytes = Vec::with_capacity(BLOCK_HEADER + block.table.as_bytes().len());
        ListBlock { v4: None, v6: None, ..*block }.emit(&mut bytes);
        Self {
            public_id,
            list_id,
            since,
            origin: ListingOrigin::Registered,
            door: None,
            latency: AtomicU32::new(NOT_MEASURED),
            has_query: false,
            memory: BlockSize::of(&bytes).memory() as u32,
            block: bytes.into(),
            internal: None,
        }
        .with_parsed_fields()
    }

    /// Replaces the origin and the door.
    pub(crate) fn with_origin(self, origin: ListingOrigin, door: Option<&'static Door>) -> Self {
        Self { origin, door, ..self }
    }

    /// Replaces the time of the first registration.
    pub(crate) fn with_since(self, since: Instant) -> Self {
        Self { since, ..self }
    }

    /// Replaces the addresses before the address map.
    pub(crate) fn with_internal(self, internal: Option<Box<InternalAddrs>>) -> Self {
        Self { internal, ..self }
    }

    /// A copy in a list with a block, either of which may be new.
    pub(crate) fn updated(&self, list_id: ListId, block: &[u8]) -> Self {
        let latency = self.latency.load(Ordering::Relaxed).into();
        let memory = BlockSize::of(block).memory() as u32;
        let updated = Self { list_id, latency, block: block.into(), memory, internal: self.internal.clone(), ..*self };
        updated.with_parsed_fields()
    }

    /// A copy with a revised block: endpoints, keys and `protocol_id` are unchanged.
    pub(crate) fn revised(&self, block: Box<[u8]>) -> Self {
        let latency = self.latency.load(Ordering::Relaxed).into();
        let memory = BlockSize::of(&block).memory() as u32;
        Self { latency, block, memory, internal: self.internal.clone(), ..*self }
    }

    /// Fills in the fields that are read from the block.
    fn with_parsed_fields(self) -> Self {
        Self { has_query: self.block().table.get(b"x-query").is_some(), ..self }
    }

    /// Estimated memory use of the entry, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory as usize
    }

    /// Records the round-trip time of a reply by the server.
    pub fn set_latency(&self, latency: Duration) {
        let microseconds = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.latency.store(microseconds.min(NOT_MEASURED - 1), Ordering::Relaxed);
    }
}

/// Maximum size of a block in the list besides the table, in bytes: its length, two endpoints, occupancy and so on.
pub(crate) const BLOCK_HEADER: usize = 64;

/// Memory use of a server besides its data, in bytes: both halves of its entry, its rows in the tables, its position in the
/// list, its record for the web server. An estimate.
const ENTRY: usize = 1_200;

/// Bytes of a block whose texts are also kept for pages: a page shows only the beginning of five texts (W42).
const MAX_SHOWN: usize = 5 * 256;

/// Size of a block, and of its texts as they are shown, up to which further copies are part of [`ENTRY`], in bytes. Those of real
/// servers have 200 to 500.
const USUAL: usize = 512;

/// Number of further copies of what exceeds that size, of the block and of its texts. While servers change faster than pages are
/// rendered, earlier versions of them are held by the events that announce the changes, by the snapshots that are read, and by
/// the replies and pages that are replaced; and the allocator cannot use all the room that they leave.
const FURTHER_BLOCKS: usize = 4;
const FURTHER_TEXTS: usize = 8;

/// The size of a block, from which the memory use of a server is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSize {
    pub bytes: usize,
    /// Maximum number of bytes of the block's texts as they are shown: a byte that is not printable ASCII can take three.
    pub shown: usize,
}

impl BlockSize {
    /// The size of a block, or of a table that becomes a part of one.
    pub fn of(bytes: &[u8]) -> Self {
        // Counted in bytes, of which a processor adds many at once.
        let count = |part: &[u8]| part.iter().map(|byte| u8::from(!matches!(byte, b' '..=b'~'))).sum::<u8>();
        let longer: usize = bytes.chunks(usize::from(u8::MAX)).map(|part| usize::from(count(part))).sum();
        Self { bytes: bytes.len(), shown: (bytes.len() + 2 * longer).min(MAX_SHOWN) }
    }

    /// Estimated memory use of a server with this block, in bytes. The block is stored twice: in the [`ListedServer`] and in the
    /// reply that all clients get. Its texts are stored twice more for the web server, as they are shown and in lower case. What is
    /// beyond a usual length counts more.
    pub const fn memory(self) -> usize {
        let longer =
            FURTHER_BLOCKS * self.bytes.saturating_sub(USUAL) + FURTHER_TEXTS * self.shown.saturating_sub(USUAL);
        ENTRY + 2 * (self.bytes + self.shown) + longer
    }
}
