//! One server in the registry.
//!
//! An entry consists of two halves under one [`SlotIndex`](crate::index::SlotIndex): a [`HotEntry`], which is all that a
//! refresh touches, and a [`ColdEntry`].

use crate::{
    ListedServer,
    bans::Candidate,
    checks::{CheckKind, CheckTarget},
    lists::ListPosition,
    registry::{DisplacedServer, Evidence, GroupPositions},
    wheel::Tick,
};
use rallypoint_wire::{
    lobby::{Registration, ServerId, Transport},
    query::XQuery,
};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    ops::{Index, IndexMut},
    sync::Arc,
};

/// An address family. A server has at most one endpoint and one lease of each (L9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    #[inline]
    pub const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// One value for each address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerFamily<T>([T; 2]);

impl<T> PerFamily<T> {
    pub fn from_fn(mut value: impl FnMut(Family) -> T) -> Self {
        Self(Family::ALL.map(&mut value))
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T> Index<Family> for PerFamily<T> {
    type Output = T;

    #[inline]
    fn index(&self, family: Family) -> &T {
        &self.0[family as usize]
    }
}

impl<T> IndexMut<Family> for PerFamily<T> {
    #[inline]
    fn index_mut(&mut self, family: Family) -> &mut T {
        &mut self.0[family as usize]
    }
}

/// The part of an entry that a refresh, the most frequent datagram, reads and writes: one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct HotEntry {
    pub id: ServerId,
    /// Keyed hash of the last registration's source address and bytes. Zero means none: the next registration is processed
    /// in full.
    pub fingerprints: PerFamily<u64>,
    /// When the lease of the endpoint ends.
    pub deadlines: PerFamily<Tick>,
    pub states: PerFamily<EndpointState>,
}

impl HotEntry {
    /// An entry without endpoints.
    pub fn new(id: ServerId) -> Self {
        Self { id, fingerprints: PerFamily::default(), deadlines: PerFamily::default(), states: PerFamily::default() }
    }
}

/// The state of one endpoint of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndpointState {
    /// The server has no endpoint of this family.
    #[default]
    Absent,
    /// Registered, and waiting for a check.
    Checking,
    /// Registered, but the last check failed.
    Unreachable,
    /// Shown in the list.
    Listed,
}

/// The part of an entry that a refresh does not touch.
#[derive(Debug)]
pub(crate) struct ColdEntry {
    /// See [`EntryKey`](crate::index::EntryKey): a late check result is not applied to a later entry in the same slot.
    pub serial: u64,
    pub transport: Transport,
    /// How the server can be checked, if it can.
    pub check: Option<CheckMethod>,
    pub endpoints: PerFamily<Option<EndpointEntry>>,
    pub check_attempts: PerFamily<Option<CheckAttempts>>,
    pub server: Arc<ListedServer>,
    /// Position in the list; `None` if the server is not listed.
    pub position: Option<ListPosition>,
    /// The evidence with which it was admitted, or that it has replied since.
    pub evidence: Evidence,
    /// When the entry was created.
    pub admitted: Tick,
    /// Where it is in its groups while it is on probation.
    pub positions: GroupPositions,
    /// The proven server whose endpoint this one has taken, if there is one.
    pub displaced: Option<Box<DisplacedServer>>,
    /// The server whose endpoint this one took over, if there was one.
    pub replaced: Option<ServerId>,
    /// The contributions of other nodes of a cluster.
    pub replica: ReplicaState,
}

/// The part of an entry that came from other nodes of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplicaState {
    /// Whether the server ID is unknown here and a stand-in takes its place.
    pub has_stand_in_id: bool,
    /// Endpoints that other nodes heard: their leases are kept in the cluster's store.
    pub is_remote: PerFamily<bool>,
}

impl ColdEntry {
    /// An unproven entry without endpoints, whose serial number [`Slots::insert`](crate::registry::Slots::insert) sets.
    pub fn new(transport: Transport, check: Option<CheckMethod>, server: Arc<ListedServer>, admitted: Tick) -> Self {
        Self {
            evidence: Evidence::First,
            admitted,
            positions: GroupPositions::default(),
            displaced: None,
            replaced: None,
            serial: 0,
            transport,
            check,
            endpoints: PerFamily::default(),
            check_attempts: PerFamily::default(),
            server,
            position: None,
            replica: ReplicaState::default(),
        }
    }
}

impl ColdEntry {
    /// The server as far as bans are concerned, at its endpoint of one family.
    pub fn ban_candidate(&self, family: Family) -> Option<Candidate<'_>> {
        let EndpointEntry { internal, external } = self.endpoints[family]?;
        let name = Some(self.server.block().table.get(b"name").unwrap_or_default());
        let endpoint = Some((external.into(), self.transport));
        Some(Candidate { ip: Some(internal.ip), name, id: Some(self.server.public_id), endpoint })
    }
}

/// Registrations of an endpoint that requested a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckAttempts {
    /// When the last one that counted arrived.
    pub last: Tick,
    /// Number of times the endpoint has returned since the first one.
    pub returns: u8,
}

/// An address and a port, without the other parts of an IPv6 socket address: a million of these are kept in memory.
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

/// One endpoint of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointEntry {
    /// The source address of the registration, with the registered port.
    pub internal: Addr,
    /// The listed address: the same, unless the address map changes it.
    pub external: Addr,
}

/// How a server can be checked, according to its registration (L12, E1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckMethod {
    pub kind: CheckKind,
    /// The port, if it differs from the registered one.
    pub port: Option<NonZeroU16>,
}

impl CheckMethod {
    pub fn of(registration: &Registration<'_>) -> Option<Self> {
        Self::for_server(registration.transport(), registration.table().get(b"x-query"))
    }

    pub fn for_server(transport: Transport, x_query: Option<&[u8]>) -> Option<Self> {
        match transport {
            Transport::Tcp => Some(Self { kind: CheckKind::Connect, port: None }),
            Transport::Udp => {
                let XQuery { protocol, port } = XQuery::parse(x_query?)?;
                Some(Self { kind: CheckKind::Query(protocol), port })
            }
        }
    }

    /// The target of a check of a server at this address.
    pub fn target(self, internal: Addr) -> CheckTarget {
        let addr = Addr { port: self.port.unwrap_or(internal.port), ..internal };
        CheckTarget { addr: addr.into(), kind: self.kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_touches_one_cache_line() {
        assert_eq!(size_of::<HotEntry>(), 64);
    }
}
