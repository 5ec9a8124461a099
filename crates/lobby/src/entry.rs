//! One server in the registry.

use crate::checks::{CheckKind, Target};
use rallypoint_wire::lobby::{ListBlock, LobbyId, ServerId, Transport};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    fmt,
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::wheel::Tick;

/// What a server is called in public: a keyed hash of its secret ID (L13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicId([u8; 16]);

impl PublicId {
    pub(crate) fn of(id: ServerId, key: &[u8; 16]) -> Self {
        let mut hasher = SipHasher24::new_with_key(key);
        hasher.write(id.expose());
        Self(hasher.finish128().as_bytes())
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
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes()))
    }
}

/// A server as the public sees it. It never changes: when the server does, there is a new one.
#[derive(Debug)]
pub struct Listing {
    pub(crate) public_id: PublicId,
    pub(crate) lobby_id: LobbyId,
    pub(crate) since: Instant,
    pub(crate) latency: Option<Duration>,
    /// The block of the list reply, with its length.
    pub(crate) block: Box<[u8]>,
}

impl Listing {
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

    /// How long the lobby's last successful check took, if there was one (L12).
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// The server as the list has it.
    #[must_use]
    pub fn block(&self) -> ListBlock<'_> {
        ListBlock::parse(&self.block[4..]).expect("a listing is made of a block that was emitted")
    }
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
    /// A keyed hash of the last registration's source address and bytes, per family.
    pub prints: [u64; 2],
    /// When the endpoint's lease ends, per family.
    pub deadlines: [Tick; 2],
    pub states: [State; 2],
    /// Whether the slot is in use.
    pub live: bool,
    /// Counts the uses of this slot, so that a late answer for a former tenant is not taken for the present one.
    pub generation: u32,
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
    pub transport: Transport,
    pub endpoints: [Option<EndpointEntry>; 2],
    pub listing: Arc<Listing>,
    pub place: Option<crate::lists::Place>,
}

/// An address and a port, without what an IPv6 socket address has besides: a million of these are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Addr {
    pub ip: IpAddr,
    pub port: u16,
}

impl From<Addr> for SocketAddr {
    fn from(addr: Addr) -> Self {
        Self::new(addr.ip, addr.port)
    }
}

/// Where a server is, in one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointEntry {
    /// Who sent the registration.
    pub source: IpAddr,
    /// What is listed: the sender's address and the registered port, unless the address map says otherwise.
    pub outside: Addr,
    /// How it is checked, and at which port; not at all, if this is not set.
    pub check: Option<(CheckKind, u16)>,
}

impl EndpointEntry {
    pub fn target(&self) -> Option<Target> {
        self.check.map(|(kind, port)| Target { addr: SocketAddr::new(self.source, port), kind })
    }
}
