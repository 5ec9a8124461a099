//! One server in the registry.
//!
//! An entry consists of two halves under one [`SlotIndex`](crate::index::SlotIndex): a [`HotEntry`], which is all that a
//! refresh touches, and a [`ColdEntry`].

use crate::{
    CheckConfig, Config, ListedServer, ListingOrigin,
    bans::Candidate,
    checks::{CheckKind, CheckTarget},
    lists::ListPosition,
    registry::{DisplacedServer, Evidence},
    wheel::Tick,
};
use rallypoint_limit::is_public;
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
    pub endpoints: Endpoints,
    pub check_attempts: PerFamily<Option<CheckAttempts>>,
    pub server: Arc<ListedServer>,
    /// Position in the list; `None` if the server is not listed.
    pub position: Option<ListPosition>,
    /// The evidence with which it was admitted, or that it has replied since.
    pub evidence: Evidence,
    /// When the entry was created.
    pub admitted: Tick,
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
    /// An entry without endpoints, whose serial number [`Entries::insert`](crate::registry::Entries::insert) sets. A server that
    /// did not register itself has been queried, and is not checked.
    pub fn new(server: ListedServer, evidence: Evidence, admitted: Tick) -> Self {
        let is_registered = server.origin == ListingOrigin::Registered;
        let block = server.block();
        let transport = block.transport;
        let check = CheckMethod::for_server(transport, block.table.get(b"x-query")).filter(|_| is_registered);
        Self {
            evidence: if is_registered { evidence } else { Evidence::Proven },
            admitted,
            displaced: None,
            replaced: None,
            serial: 0,
            transport,
            check,
            endpoints: PerFamily::default(),
            check_attempts: PerFamily::default(),
            server: Arc::new(server),
            position: None,
            replica: ReplicaState::default(),
        }
    }

    /// Whether nothing has proven that the server is real, so that it gives way when a cap is reached.
    pub fn is_on_probation(&self) -> bool {
        self.evidence < Evidence::Proven
    }

    /// The key of its endpoint of one family.
    pub fn endpoint_key(&self, family: Family) -> Option<EndpointKey> {
        self.endpoints[family].map(|endpoint| (endpoint.external, self.transport))
    }

    /// The target of the check of an endpoint, if it is to be checked.
    pub fn check_target(&self, family: Family, config: &CheckConfig) -> Option<CheckTarget> {
        let endpoint = self.endpoints[family]?;
        let method = self.check.filter(|_| config.enabled && !config.exempt.contains(endpoint.internal.ip))?;
        Some(method.target(endpoint.internal))
    }

    /// The server as far as bans are concerned, at its endpoint of one family.
    pub fn ban_candidate(&self, family: Family) -> Option<Candidate<'_>> {
        let name = Some(self.server.block().table.get(b"name").unwrap_or_default());
        let at_endpoint = Candidate::at_endpoint(self.endpoints[family]?, self.transport);
        Some(Candidate { name, id: Some(self.server.public_id), ..at_endpoint })
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

/// An endpoint as entries are found by it.
pub(crate) type EndpointKey = (Addr, Transport);

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

impl Config {
    /// The endpoint of a server that registers this port from this address.
    pub(crate) fn endpoint(&self, source: IpAddr, port: NonZeroU16) -> EndpointEntry {
        let internal = Addr { ip: source, port };
        let external = self.address_map.external(internal.into());
        // `Config::validate` rejects an address map with port 0.
        let external = Addr { ip: external.ip(), port: NonZeroU16::new(external.port()).unwrap_or(port) };
        EndpointEntry { internal, external }
    }

    /// Whether an endpoint is refused because it is not public. What the address map lists is the operator's decision.
    pub(crate) fn refuses_as_private(&self, endpoint: &EndpointEntry) -> bool {
        !self.allow_private && endpoint.internal == endpoint.external && !is_public(endpoint.external.ip)
    }
}

/// The endpoints of a server.
pub(crate) type Endpoints = PerFamily<Option<EndpointEntry>>;

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
