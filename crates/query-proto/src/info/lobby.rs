//! Documents 000 and 001, and the legacy lobby protocol (L16), mapped to the common view.

use super::ServerInfo;
use rallypoint_wire::{
    legacy,
    lobby::{ListBlock, Occupancy, ProtocolId, Registration, Table, Transport},
    text,
};
use std::net::SocketAddr;

/// Fields of a server that only a lobby has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyInfo {
    /// Transport that players connect with.
    pub transport: Transport,
    /// Addresses of the server, IPv6 first.
    pub endpoints: Vec<SocketAddr>,
    /// Identifier that clients compare to find out whether they can join.
    pub protocol_id: Option<ProtocolId>,
    /// All keys and values as bytes, in the order of the list; each key once.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl LobbyInfo {
    /// The value of a key.
    #[must_use]
    pub fn entry(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.iter().find(|entry| entry.0 == key).map(|entry| &*entry.1)
    }
}

impl ServerInfo {
    /// The common view of an entry in a lobby's list.
    #[must_use]
    pub fn from_list(block: &ListBlock<'_>) -> Self {
        Self::from_table(block.transport, block.endpoints().collect(), block.occupancy, &block.table)
    }

    /// The common view of a registration that a lobby received from this address. The secret server ID is left out (L13).
    #[must_use]
    pub fn from_registration(registration: &Registration<'_>, from: SocketAddr) -> Self {
        let endpoint = SocketAddr::new(from.ip(), registration.port().get());
        Self::from_table(registration.transport(), vec![endpoint], registration.occupancy(), &registration.table())
    }

    fn from_table(transport: Transport, endpoints: Vec<SocketAddr>, occupancy: Occupancy, table: &Table<'_>) -> Self {
        let show = |key: &[u8]| table.get(key).map(|value| text::display(value).into_owned());
        let protocol_id = table.get(b"protocol_id").and_then(|bytes| bytes.try_into().ok()).map(ProtocolId::from_bytes);
        Self {
            name: show(b"name"),
            game: show(b"game_short"),
            game_name: show(b"game"),
            map: show(b"map"),
            version: show(b"game_ver"),
            website: show(b"game_url"),
            password: Some(occupancy.password),
            players: Some(occupancy.players),
            max_players: Some(occupancy.slots),
            bots: Some(occupancy.bots),
            lobby: Some(LobbyInfo {
                transport,
                endpoints,
                protocol_id,
                entries: table.iter().map(|entry| (entry.key.into(), entry.value.into())).collect(),
            }),
            ..Self::default()
        }
    }

    /// The common view of an entry in the list of a legacy lobby (L16).
    #[must_use]
    pub fn from_legacy(info: &legacy::Info<'_>) -> Self {
        let show = |bytes| text::display(bytes).into_owned();
        let counts = info.counts;
        Self {
            name: Some(show(info.name)),
            game_name: info.modification.map(show),
            map: info.map.map(show),
            password: Some(info.private),
            players: counts.map(|counts| counts.players),
            max_players: counts.map(|counts| counts.slots),
            bots: counts.map(|counts| counts.bots),
            ..Self::default()
        }
    }
}
