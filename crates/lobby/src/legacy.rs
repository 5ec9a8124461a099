//! The legacy lobby of old Gang Garrison 2 clients (L16), on top of the registry of today.

use crate::{
    Listing, PublicId,
    hash::{Keyed, KeyedMap, KeyedSet},
};
use rallypoint_wire::{
    DecodeError,
    legacy::{Counts, Info, ListEntry, MAX_SERVERS, Registration as LegacyRegistration, emit_list},
    lobby::{EntryError, LobbyId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport},
};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{collections::BTreeMap, hash::Hasher, net::IpAddr, sync::Arc, time::Instant};

/// What a legacy registration would be in the protocol of today.
///
/// Servers of that time have no ID, so they get one that only this lobby can make from their address and port.
pub(crate) fn to_registration(bytes: &[u8], source: IpAddr, key: &[u8; 16]) -> Result<Vec<u8>, DecodeError> {
    let legacy = LegacyRegistration::parse(bytes)?;
    let info = legacy.info;
    let mut table = TableBuf::new();
    // One byte counts the length of the whole text, so every part of it fits.
    let filled: Result<(), EntryError> = (|| {
        table.push(b"name", info.name)?;
        table.push(b"game", info.modification.unwrap_or(b"Gang Garrison 2"))?;
        if let Some(map) = info.map {
            table.push(b"map", map)?;
        }
        table.push(b"protocol_id", legacy.protocol_id.as_bytes())
    })();
    debug_assert_eq!(filled, Ok(()));
    let Counts { players, bots, slots } = info.counts.unwrap_or(Counts { players: 0, bots: 0, slots: 0 });
    let occupancy = Occupancy { slots, players, bots, password: info.private };
    let id = server_id(source, legacy.port.get(), key);
    let (lobby, transport, table) = (LobbyId::GANG_GARRISON_2, Transport::Tcp, table.as_table());
    let mut out = Vec::new();
    Registration::new(id, lobby, transport, legacy.port, occupancy, table)?.emit(&mut out);
    Ok(out)
}

fn server_id(source: IpAddr, port: u16, key: &[u8; 16]) -> ServerId {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(b"legacy server");
    match source {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.write(&port.to_be_bytes());
    ServerId::from_bytes(hasher.finish128().as_bytes())
}

/// How many protocols have a legacy list. Every version of the game and of its mods is one: there are some dozens. Anybody
/// can invent more, but those that are there stay.
const MAX_PROTOCOLS: usize = 1_000;

/// The legacy list replies, one per protocol, built when something in them changed.
#[derive(Debug)]
pub(crate) struct Replies {
    /// By age: if there are too many for one reply, it has those that have been there longest. A flood of new ones does not
    /// hide them.
    members: KeyedMap<ProtocolId, BTreeMap<(Instant, PublicId), Arc<Listing>>>,
    dirty: KeyedSet<ProtocolId>,
}

impl Replies {
    pub fn new(keyed: Keyed) -> Self {
        Self { members: keyed.map(), dirty: keyed.set() }
    }

    pub fn insert(&mut self, listing: &Arc<Listing>) {
        let Some(protocol) = shown_under(listing) else { return };
        if self.members.len() < MAX_PROTOCOLS || self.members.contains_key(&protocol) {
            let members = self.members.entry(protocol).or_default();
            members.insert((listing.since, listing.public_id), listing.clone());
            self.dirty.insert(protocol);
        }
    }

    /// A server that is shown says something new.
    pub fn replace(&mut self, old: &Listing, new: &Arc<Listing>) {
        if shown_under(old) != shown_under(new) {
            self.remove(old);
        }
        self.insert(new);
    }

    pub fn remove(&mut self, listing: &Listing) {
        let Some(protocol) = shown_under(listing) else { return };
        let Some(members) = self.members.get_mut(&protocol) else { return };
        if members.remove(&(listing.since, listing.public_id)).is_some() {
            self.dirty.insert(protocol);
        }
        if members.is_empty() {
            self.members.remove(&protocol);
        }
    }

    pub fn publish(&mut self, replies: &mut Arc<KeyedMap<ProtocolId, Arc<[u8]>>>) {
        if self.dirty.is_empty() {
            return;
        }
        let replies = Arc::make_mut(replies);
        for protocol in self.dirty.drain() {
            match self.members.get(&protocol) {
                Some(members) => {
                    let mut reply = Vec::new();
                    let entries = members.values().filter_map(|listing| entry(listing));
                    emit_list(entries.take(MAX_SERVERS), &mut reply);
                    replies.insert(protocol, reply.into());
                }
                None => {
                    replies.remove(&protocol);
                }
            }
        }
    }
}

/// Only servers of Gang Garrison 2 with an IPv4 endpoint are shown to its old clients, under their protocol.
fn shown_under(listing: &Listing) -> Option<ProtocolId> {
    if listing.lobby_id != LobbyId::GANG_GARRISON_2 {
        return None;
    }
    let block = listing.block();
    block.v4?;
    block.table.get(b"protocol_id")?.try_into().ok().map(ProtocolId::from_bytes)
}

fn entry(listing: &Listing) -> Option<ListEntry<'_>> {
    let block = listing.block();
    let Occupancy { slots, players, bots, password } = block.occupancy;
    let modification = block.table.get(b"game").filter(|game| *game != b"Gang Garrison 2");
    let info = Info {
        private: password,
        map: block.table.get(b"map"),
        name: block.table.get(b"name")?,
        counts: Some(Counts { players, bots, slots }),
        modification,
    };
    Some(ListEntry { info, endpoint: block.v4? })
}
