//! The legacy door of old Gang Garrison 2 versions (L16): their registrations become current ones, and their lists are rendered
//! from the current list.

use super::{DatagramDoor, Datagrams, Door, DoorReply, DoorSockets, RequestDoor, rendered::Rendered};
use crate::{ListedServer, PublishedList, PublishedLists, RegistrationOutcome, Registry};
use rallypoint_wire::{
    DecodeError,
    legacy::{Counts, Info, ListEntry, ListRequest, MAX_SERVERS, PORT, Registration as LegacyRegistration, emit_list},
    lobby::{EntryError, ListId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport},
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

/// Registrations and lists of old Gang Garrison 2 versions.
pub static LEGACY: Door = Door {
    name: "legacy",
    code: 2,
    title: "legacy lobby of old Gang Garrison 2 versions",
    is_default: true,
    sockets: Some(DoorSockets {
        setting: "legacy.listen",
        default: "0.0.0.0:29942, [::]:29942",
        about: "Addresses the legacy lobby for old Gang Garrison 2 versions listens on, UDP and TCP.",
        port: PORT,
        datagrams: Some(Datagrams::Protocol(|_| Box::new(Registrations))),
        requests: Some(|| Box::new(Requests::default())),
    }),
    http: None,
    query: None,
};

/// The name in the current list of a legacy server that names no mod: the texts of the reference lobby, because such a server does
/// not tell its version.
const LEGACY_GAME: &[u8] = b"Legacy Gang Garrison 2 version or mod";
const LEGACY_GAME_SHORT: &[u8] = b"old";

/// Maximum number of protocols that have a legacy list. Every version of the game and of its mods is one, so there are some
/// dozens. Forged registrations can name any number of others; those whose servers were listed last have none.
const MAX_PROTOCOLS: usize = 1_000;

#[derive(Debug)]
struct Registrations;

impl DatagramDoor for Registrations {
    fn handle_datagram(
        &mut self,
        registry: &mut Registry,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
    ) -> RegistrationOutcome {
        let source = from.ip().to_canonical();
        let otherwise = match to_registration(bytes, |port| server_id(registry, source, port)) {
            // A server that uses both protocols has more data in the current one (W29).
            Ok(current) if registry.is_registered_under_another_id(source, &current) => RegistrationOutcome::Refreshed,
            Ok(current) => return registry.handle_registration(now, &LEGACY, from, &current),
            Err(error) => RegistrationOutcome::Malformed(error),
        };
        registry.handle_without_data(now, source, bytes.len(), otherwise)
    }
}

/// Converts a legacy registration to one of the current protocol. Legacy servers have no ID, so they get one.
fn to_registration(bytes: &[u8], id: impl FnOnce(u16) -> ServerId) -> Result<Vec<u8>, DecodeError> {
    let legacy = LegacyRegistration::parse(bytes)?;
    let info = legacy.info;
    let mut table = TableBuf::new();
    // The length of the whole text is one byte in the datagram, so every part of it fits.
    let filled: Result<(), EntryError> = (|| {
        table.push(b"name", info.name)?;
        table.push(b"game", info.modification.unwrap_or(LEGACY_GAME))?;
        table.push(b"game_short", LEGACY_GAME_SHORT)?;
        if let Some(map) = info.map {
            table.push(b"map", map)?;
        }
        table.push(b"protocol_id", legacy.protocol_id.as_bytes())
    })();
    debug_assert_eq!(filled, Ok(()));
    let Counts { players, bots, slots } = info.counts.unwrap_or(Counts { players: 0, bots: 0, slots: 0 });
    let occupancy = Occupancy { slots, players, bots, password: info.private };
    let id = id(legacy.port.get());
    let list = ListId::GANG_GARRISON_2;
    let mut out = Vec::new();
    Registration::new(id, list, Transport::Tcp, legacy.port, occupancy, table.as_table())?.emit(&mut out);
    Ok(out)
}

/// An ID that only this lobby can derive from the address and the port of a server.
fn server_id(registry: &Registry, source: IpAddr, port: u16) -> ServerId {
    let port = port.to_be_bytes();
    match source {
        IpAddr::V4(ip) => registry.derived_id(&[b"legacy server", &ip.octets(), &port]),
        IpAddr::V6(ip) => registry.derived_id(&[b"legacy server", &ip.octets(), &port]),
    }
}

#[derive(Debug, Default)]
struct Requests {
    rendered: Rendered<Replies>,
}

impl RequestDoor for Requests {
    fn reply(&self, now: Instant, lists: &PublishedLists, request: &[u8]) -> Result<DoorReply, DecodeError> {
        let request = ListRequest::parse(request)?;
        let rendered = self.rendered.get(now, &lists.list(&ListId::GANG_GARRISON_2), render);
        let reply = rendered.get(&request.protocol_id).cloned();
        Ok(DoorReply::Bytes(reply.unwrap_or_else(|| Arc::new([0]))))
    }
}

type Replies = BTreeMap<ProtocolId, Arc<[u8]>>;

/// The replies by protocol. A reply that is too small for all servers has those that have been listed longest, so that a flood of
/// new servers does not hide them.
fn render(list: &PublishedList, previous: Option<&Replies>) -> Replies {
    let shown = |server: &Arc<ListedServer>| Some((server.since(), server.public_id(), protocol_of(server)?));
    let mut servers: Vec<_> = list.servers().filter_map(|server| Some((shown(server)?, server))).collect();
    servers.sort_unstable_by_key(|&(key, _)| key);
    let mut replies = BTreeMap::new();
    for ((_, _, protocol), server) in servers {
        let count = replies.len();
        let reply = match replies.entry(protocol) {
            Entry::Vacant(_) if count == MAX_PROTOCOLS => continue,
            entry => entry.or_insert_with(|| vec![0]),
        };
        if usize::from(reply[0]) < MAX_SERVERS && append(server, reply).is_some() {
            reply[0] += 1;
        }
    }
    // Slow readers of a reply that has not changed share its memory.
    let unchanged =
        |protocol: &ProtocolId, reply: &[u8]| previous?.get(protocol).filter(|old| ***old == *reply).cloned();
    let shared = |(protocol, reply): (ProtocolId, Vec<u8>)| {
        (protocol, unchanged(&protocol, &reply).unwrap_or_else(|| reply.into()))
    };
    replies.into_iter().map(shared).collect()
}

/// The protocol under which a server is shown to legacy clients: only servers with an IPv4 endpoint are.
fn protocol_of(server: &ListedServer) -> Option<ProtocolId> {
    let block = server.block();
    block.v4?;
    block.table.get(b"protocol_id")?.try_into().ok().map(ProtocolId::from_bytes)
}

/// Appends the part of a reply for a server.
fn append(server: &ListedServer, reply: &mut Vec<u8>) -> Option<()> {
    let block = server.block();
    let Occupancy { slots, players, bots, password } = block.occupancy;
    let modification = block.table.get(b"game").filter(|game| *game != b"Gang Garrison 2" && *game != LEGACY_GAME);
    let info = Info {
        private: password,
        map: block.table.get(b"map"),
        name: block.table.get(b"name")?,
        counts: Some(Counts { players, bots, slots }),
        modification,
    };
    let mut list = Vec::new();
    emit_list([ListEntry { info, endpoint: block.v4? }], &mut list);
    // The first byte is the count.
    reply.extend_from_slice(&list[1..]);
    Some(())
}
