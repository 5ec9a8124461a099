//! One server in the registry.

use crate::{
    checks::{CheckKind, CheckTarget},
    wheel::Tick,
};
use rallypoint_wire::lobby::{ListBlock, LobbyId, Registration, ServerId, Transport};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    fmt,
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use thiserror::Error;

/// What a server is called in public: a keyed hash of its secret ID (L13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicId([u8; 16]);

/// A text is not a [`PublicId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the public ID of a server has 32 hexadecimal digits")]
pub struct ParsePublicIdError;

impl PublicId {
    pub(crate) fn of(id: ServerId, key: &[u8; 16]) -> Self {
        let mut hasher = SipHasher24::new_with_key(key);
        hasher.write(id.expose());
        Self(hasher.finish128().as_bytes())
    }

    /// The ID from its bytes, for whoever has kept them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, for whoever keeps them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicId({self})")
    }
}

impl FromStr for PublicId {
    type Err = ParsePublicIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        number.map(|number| Self(number.to_be_bytes())).ok_or(ParsePublicIdError)
    }
}

/// How a server came into the list. Where two are at the same place, the greater one counts (W38).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListingOrigin {
    /// It registered by itself.
    #[default]
    Registered,
    /// It announced itself in another way, and answered when it was asked (L17).
    Announced,
    /// The operator wants it in the list, and it answers when it is asked.
    Watched,
}

impl ListingOrigin {
    /// All of them, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Registered, Self::Announced, Self::Watched];

    /// The word for it, in the API.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Announced => "announced",
            Self::Watched => "watched",
        }
    }

    /// Whether it counts towards what its address may have: not if nobody there asked for it.
    pub(crate) const fn is_charged(self) -> bool {
        !matches!(self, Self::Watched)
    }
}

/// A server as the public sees it. When what it says about itself changes, there is a new one.
#[derive(Debug)]
pub struct ListedServer {
    pub(crate) public_id: PublicId,
    pub(crate) lobby_id: LobbyId,
    pub(crate) since: Instant,
    pub(crate) origin: ListingOrigin,
    /// In microseconds; [`NOT_MEASURED`] if there is none. It is different with every check, and nobody asks for a list
    /// because of it: so it alone is changed in place.
    latency: AtomicU32,
    /// The block of the list reply, with its length.
    pub(crate) block: Box<[u8]>,
    /// Where its addresses are before the address map; nothing for most, which are listed where they are.
    pub(crate) inside: Option<Box<Inside>>,
}

/// The place of an endpoint before the address map, by family; nothing if the map does not change it.
pub(crate) type Inside = [Option<Addr>; 2];

const NOT_MEASURED: u32 = u32::MAX;

impl ListedServer {
    /// What it is called in public.
    #[must_use]
    pub fn public_id(&self) -> PublicId {
        self.public_id
    }

    /// The lobby it is in.
    #[must_use]
    pub fn lobby_id(&self) -> LobbyId {
        self.lobby_id
    }

    /// When it first registered.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// How it came into the list.
    #[must_use]
    pub fn origin(&self) -> ListingOrigin {
        self.origin
    }

    /// How long the lobby's last successful check took, if there was one (L12).
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        match self.latency.load(Ordering::Relaxed) {
            NOT_MEASURED => None,
            microseconds => Some(Duration::from_micros(u64::from(microseconds))),
        }
    }

    /// Where the lobby itself reaches an address that is listed: there, unless it comes from the address map. The way from the
    /// inside to an outer address and back in is one that many routers do not know.
    #[must_use]
    pub fn internal_addr(&self, listed: SocketAddr) -> SocketAddr {
        let inside = self.inside.as_ref().and_then(|inside| inside[family_of(listed.ip())]);
        inside.map_or(listed, Into::into)
    }

    /// The server as the list has it.
    #[must_use]
    pub fn block(&self) -> ListBlock<'_> {
        ListBlock::parse(&self.block[4..]).expect("a listing is made of a block that was emitted")
    }

    /// A server with its block, which has been emitted.
    pub(crate) fn new(public_id: PublicId, lobby_id: LobbyId, since: Instant, block: &[u8]) -> Self {
        let latency = AtomicU32::new(NOT_MEASURED);
        Self {
            public_id,
            lobby_id,
            since,
            origin: ListingOrigin::Registered,
            latency,
            block: block.into(),
            inside: None,
        }
    }

    /// One that came into the list in this way.
    pub(crate) fn of(self, origin: ListingOrigin) -> Self {
        Self { origin, ..self }
    }

    /// One that is there, before the address map.
    pub(crate) fn at(self, inside: Option<Box<Inside>>) -> Self {
        Self { inside, ..self }
    }

    /// The same server, which says something else.
    pub(crate) fn with(&self, lobby_id: LobbyId, block: &[u8]) -> Self {
        let latency = self.latency.load(Ordering::Relaxed).into();
        Self { lobby_id, latency, block: block.into(), inside: self.inside.clone(), ..*self }
    }

    /// How many bytes an entry takes that shows this: an estimate.
    pub(crate) fn memory(&self) -> usize {
        memory_of(self.block.len())
    }

    /// Notes how long an answer of the server took just now.
    pub fn set_latency(&self, latency: Duration) {
        let microseconds = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.latency.store(microseconds.min(NOT_MEASURED - 1), Ordering::Relaxed);
    }
}

/// What an entry takes besides what it says: its two halves, its rows in the tables, its place in the list. An estimate,
/// on the high side.
const ENTRY: usize = 640;

/// How many bytes an entry takes whose block has this length. The block is there twice: by itself, for whoever wants to know
/// about this server, and in the reply that all clients get.
pub(crate) const fn memory_of(block: usize) -> usize {
    ENTRY + 2 * block
}

/// An address family, as an index: each has its own endpoint and lease (L9).
pub(crate) type Family = usize;
pub(crate) const V4: Family = 0;
pub(crate) const V6: Family = 1;

pub(crate) const fn family_of(ip: IpAddr) -> Family {
    match ip {
        IpAddr::V4(_) => V4,
        IpAddr::V6(_) => V6,
    }
}

/// What the most frequent datagram, a refresh, needs to see of an entry: one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Hot {
    pub id: ServerId,
    /// A keyed hash of the last registration's source address and bytes, per family. Zero is none: the next registration
    /// is looked at in full.
    pub prints: [u64; 2],
    /// When the endpoint's lease ends, per family.
    pub deadlines: [Tick; 2],
    pub states: [State; 2],
}

/// What is known of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no endpoint.
    None,
    /// It is waiting for a check.
    Checking,
    /// It could not be reached.
    Unreachable,
    /// It is shown in the list.
    Listed,
}

/// The rest of an entry.
#[derive(Debug)]
pub(crate) struct Cold {
    /// Counts all entries there ever were, so that a late verdict is not taken for one on a later tenant of the slot.
    pub serial: u64,
    pub transport: Transport,
    pub probe: Option<Probe>,
    pub endpoints: [Option<EndpointEntry>; 2],
    /// When the last registration came that wanted a check, and how often one had come back for it; per family.
    pub asks: [Option<(Tick, u8)>; 2],
    pub listing: Arc<ListedServer>,
    pub place: Option<crate::lists::Place>,
}

/// An address and a port, without what an IPv6 socket address has besides: a million of these are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Addr {
    pub ip: IpAddr,
    pub port: NonZeroU16,
}

impl From<Addr> for SocketAddr {
    fn from(addr: Addr) -> Self {
        Self::new(addr.ip, addr.port.get())
    }
}

/// Where a server is, in one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointEntry {
    /// Who sent the registration, and the port that was registered.
    pub inside: Addr,
    /// What is listed: the same, unless the address map says otherwise.
    pub outside: Addr,
}

/// By what a server says that it can be checked (L12, E1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub kind: CheckKind,
    /// If it is not the registered one.
    pub port: Option<NonZeroU16>,
}

impl Probe {
    pub fn of(registration: &Registration<'_>) -> Option<Self> {
        Self::for_server(registration.transport(), registration.table().get(b"x-query"))
    }

    pub fn for_server(transport: Transport, x_query: Option<&[u8]>) -> Option<Self> {
        match transport {
            Transport::Tcp => Some(Self { kind: CheckKind::Connect, port: None }),
            Transport::Udp => x_query.and_then(Self::from_x_query),
        }
    }

    /// What `x-query` says: the kind, and the port if it is not the registered one (E1). Anything else is not for us.
    fn from_x_query(value: &[u8]) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        let (kind, port) = match value.split_once(':') {
            Some((_, port)) if port.starts_with('+') => return None,
            Some((kind, port)) => (kind, Some(port.parse().ok()?)),
            None => (value, None),
        };
        let kind = match kind {
            "bloodmasters" => CheckKind::Bloodmasters,
            "session" => CheckKind::Session,
            _ => return None,
        };
        Some(Self { kind, port })
    }

    /// What to check for a server at this place.
    pub fn target(self, inside: Addr) -> CheckTarget {
        let addr = Addr { port: self.port.unwrap_or(inside.port), ..inside };
        CheckTarget { addr: addr.into(), kind: self.kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_x_query_names_a_protocol_and_perhaps_a_port() {
        let read = |value: &str| {
            Probe::for_server(Transport::Udp, Some(value.as_bytes()))
                .map(|probe| (probe.kind, probe.port.map(NonZeroU16::get)))
        };
        assert_eq!(read("bloodmasters"), Some((CheckKind::Bloodmasters, None)));
        assert_eq!(read("session:45555"), Some((CheckKind::Session, Some(45555))));
        for other in ["", "session:", "session:0", "session:65536", "session:+1", "gamespy", "session:1:2", "Session"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn public_ids_read_what_they_print_and_nothing_else() {
        let id = PublicId::of(ServerId::from_bytes([7; 16]), &[1; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "7", "+0000000000000000000000000000000", "g0000000000000000000000000000000"] {
            assert_eq!(wrong.parse::<PublicId>(), Err(ParsePublicIdError), "{wrong}");
        }
    }

    #[test]
    fn a_refresh_sees_one_cache_line() {
        assert_eq!(size_of::<Hot>(), 64);
    }
}
