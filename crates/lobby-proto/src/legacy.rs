//! The legacy lobby of old Gang Garrison 2 clients (L16), on top of the registry of today.

use crate::{
    ListedServer, PublicId,
    hash::{Keyed, KeyedMap, KeyedSet},
};
use rallypoint_wire::{
    DecodeError,
    legacy::{Counts, Info, ListEntry, MAX_SERVERS, Registration as LegacyRegistration, emit_list},
    lobby::{EntryError, LobbyId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport},
};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    collections::{BTreeMap, VecDeque},
    hash::Hasher,
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

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
/// can invent more, but those that are there stay, and the others wait until one goes.
const MAX_PROTOCOLS: usize = 1_000;

/// So many bytes of replies are written in one go. What is left is done the next time.
const PER_PUBLISH: usize = 256 << 10;

/// The legacy list replies, one per protocol, written when something in them changed.
#[derive(Debug)]
pub(crate) struct Replies {
    protocols: KeyedMap<ProtocolId, Protocol>,
    /// Protocols without a list, by age.
    waiting: BTreeMap<u64, ProtocolId>,
    /// How many protocols there ever were.
    serial: u64,
    /// Replies to be written, each once.
    dirty: VecDeque<ProtocolId>,
    is_dirty: KeyedSet<ProtocolId>,
}

/// The servers of a protocol by age: if there are too many for one reply, it has those that have been there longest. A flood
/// of new ones does not hide them.
type Age = (Instant, PublicId);

#[derive(Debug)]
struct Protocol {
    /// What the reply has of each.
    servers: BTreeMap<Age, Box<[u8]>>,
    serial: u64,
    /// The last one that the reply had, if it was full: what comes behind it is not shown.
    last: Option<Age>,
}

impl Replies {
    pub fn new(keyed: Keyed) -> Self {
        Self {
            protocols: keyed.map(),
            waiting: BTreeMap::new(),
            serial: 0,
            dirty: VecDeque::new(),
            is_dirty: keyed.set(),
        }
    }

    pub fn insert(&mut self, listing: &ListedServer) {
        let Some(id) = shown_under(listing) else { return };
        let Some(bytes) = entry(listing) else { return };
        let shown = self.protocols.len() - self.waiting.len();
        let protocol = self.protocols.entry(id).or_insert_with(|| {
            self.serial += 1;
            if shown >= MAX_PROTOCOLS {
                self.waiting.insert(self.serial, id);
            }
            Protocol { servers: BTreeMap::new(), serial: self.serial, last: None }
        });
        let age = (listing.since, listing.public_id);
        protocol.servers.insert(age, bytes);
        let is_visible = protocol.is_in_reply(age) && !self.waiting.contains_key(&protocol.serial);
        if is_visible {
            self.touch(id);
        }
    }

    /// A server that is shown says something new.
    pub fn replace(&mut self, old: &ListedServer, new: &ListedServer) {
        if shown_under(old) != shown_under(new) {
            self.remove(old);
        }
        self.insert(new);
    }

    pub fn remove(&mut self, listing: &ListedServer) {
        let Some(id) = shown_under(listing) else { return };
        let Some(protocol) = self.protocols.get_mut(&id) else { return };
        let age = (listing.since, listing.public_id);
        if protocol.servers.remove(&age).is_none() {
            return;
        }
        let (is_empty, is_in_reply) = (protocol.servers.is_empty(), protocol.is_in_reply(age));
        let was_waiting = is_empty && self.waiting.remove(&protocol.serial).is_some();
        if is_empty {
            self.protocols.remove(&id);
        }
        if is_in_reply {
            self.touch(id);
        }
        // The one that has waited longest gets the place.
        if is_empty
            && !was_waiting
            && let Some((_, next)) = self.waiting.pop_first()
        {
            self.touch(next);
        }
    }

    /// Whether everything is published.
    pub fn is_published(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Writes the replies that changed. Says how much work it was, in bytes.
    pub fn publish(&mut self, replies: &mut Arc<KeyedMap<ProtocolId, Arc<[u8]>>>) -> usize {
        if self.dirty.is_empty() {
            return 0;
        }
        let replies = Arc::make_mut(replies);
        let mut work = 0;
        while work < PER_PUBLISH
            && let Some(id) = self.dirty.pop_front()
        {
            self.is_dirty.remove(&id);
            let shown = self.protocols.get_mut(&id).filter(|protocol| !self.waiting.contains_key(&protocol.serial));
            match shown {
                Some(protocol) => {
                    let reply = protocol.reply();
                    work += REPLY + reply.len();
                    replies.insert(id, reply);
                }
                None => {
                    work += REPLY;
                    replies.remove(&id);
                }
            }
        }
        work
    }

    fn touch(&mut self, id: ProtocolId) {
        if self.is_dirty.insert(id) {
            self.dirty.push_back(id);
        }
    }
}

/// What a reply costs besides its bytes, in bytes.
const REPLY: usize = 1_000;

impl Protocol {
    fn is_in_reply(&self, age: Age) -> bool {
        self.last.is_none_or(|last| age <= last)
    }

    fn reply(&mut self) -> Arc<[u8]> {
        let mut reply = vec![self.servers.len().min(MAX_SERVERS) as u8];
        self.servers.values().take(MAX_SERVERS).for_each(|bytes| reply.extend_from_slice(bytes));
        self.last = self.servers.keys().nth(MAX_SERVERS - 1).copied();
        reply.into()
    }
}

/// Only servers of Gang Garrison 2 with an IPv4 endpoint are shown to its old clients, under their protocol.
fn shown_under(listing: &ListedServer) -> Option<ProtocolId> {
    if listing.lobby_id != LobbyId::GANG_GARRISON_2 {
        return None;
    }
    let block = listing.block();
    block.v4?;
    block.table.get(b"protocol_id")?.try_into().ok().map(ProtocolId::from_bytes)
}

/// What a reply has of a server: written once per change, because a table can have hundreds of keys.
fn entry(listing: &ListedServer) -> Option<Box<[u8]>> {
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
    let mut reply = Vec::new();
    emit_list([ListEntry { info, endpoint: block.v4? }], &mut reply);
    // Behind the count.
    Some(reply[1..].into())
}
