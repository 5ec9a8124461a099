//! The legacy lobby of old Gang Garrison 2 clients (L16), on top of the current registry.

use crate::{
    ListedServer, PublicId,
    hash::{KeyedHash, KeyedMap, KeyedSet},
};
use rallypoint_wire::{
    DecodeError,
    legacy::{Counts, Info, ListEntry, MAX_SERVERS, Registration as LegacyRegistration, emit_list},
    lobby::{EntryError, ListBlock, LobbyId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport},
};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{
    collections::{BTreeMap, VecDeque},
    hash::Hasher,
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

/// The name in the current list of a legacy server that names no mod: the texts of the reference lobby, because such a server does
/// not tell its version.
const LEGACY_GAME: &[u8] = b"Legacy Gang Garrison 2 version or mod";
const LEGACY_GAME_SHORT: &[u8] = b"old";

/// Converts a legacy registration to one of the current protocol.
///
/// Legacy servers have no ID, so they get one that only this lobby can derive from their address and port.
pub(crate) fn to_registration(bytes: &[u8], source: IpAddr, key: &[u8; 16]) -> Result<Vec<u8>, DecodeError> {
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
    let id = server_id(source, legacy.port.get(), key);
    let lobby = LobbyId::GANG_GARRISON_2;
    let mut out = Vec::new();
    Registration::new(id, lobby, Transport::Tcp, legacy.port, occupancy, table.as_table())?.emit(&mut out);
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

/// Maximum number of protocols that have a legacy list. Every version of the game and of its mods is one, so there are some
/// dozens. Forged registrations can name any number of others; those beyond the maximum wait until one is removed.
const MAX_PROTOCOLS: usize = 1_000;

/// Bytes of replies after which publishing stops. The rest is published the next time.
const MAX_PER_PUBLISH: usize = 256 << 10;

/// Cost of writing a reply besides its bytes, in bytes that take about as long.
const REPLY_OVERHEAD: usize = 1_000;

/// The legacy list replies, one per protocol, rewritten when they change.
#[derive(Debug)]
pub(crate) struct LegacyReplies {
    protocols: KeyedMap<ProtocolId, Protocol>,
    /// Protocols beyond [`MAX_PROTOCOLS`], which have no list, by serial number.
    waiting: BTreeMap<u64, ProtocolId>,
    /// Number of protocols that were ever added.
    serial: u64,
    /// Protocols whose reply has to be rewritten, each once.
    dirty: VecDeque<ProtocolId>,
    is_dirty: KeyedSet<ProtocolId>,
}

/// Key by which the servers of a protocol are ordered. A reply that is too small for all of them has those that have been
/// listed longest, so that a flood of new servers does not hide them.
type Age = (Instant, PublicId);

#[derive(Debug)]
struct Protocol {
    servers: BTreeMap<Age, LegacyServer>,
    serial: u64,
    /// The last server in the reply, if the reply was full: those after it are not shown.
    last_shown: Option<Age>,
    /// Whether the reply has to be rewritten. Most changes find it so, and need not look it up.
    is_dirty: bool,
}

#[derive(Debug)]
struct LegacyServer {
    server: Arc<ListedServer>,
    /// Its part of the reply, once it was needed: a table can have hundreds of keys, so it is not written again for the changes
    /// of other servers.
    reply: Option<Option<Box<[u8]>>>,
}

impl LegacyReplies {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            protocols: keyed.map(),
            waiting: BTreeMap::new(),
            serial: 0,
            dirty: VecDeque::new(),
            is_dirty: keyed.set(),
        }
    }

    pub fn insert(&mut self, server: &Arc<ListedServer>) {
        let Some(id) = server.legacy_protocol else { return };
        let shown = self.protocols.len() - self.waiting.len();
        let protocol = self.protocols.entry(id).or_insert_with(|| {
            self.serial += 1;
            if shown >= MAX_PROTOCOLS {
                self.waiting.insert(self.serial, id);
            }
            Protocol { servers: BTreeMap::new(), serial: self.serial, last_shown: None, is_dirty: false }
        });
        let age = (server.since, server.public_id);
        protocol.servers.insert(age, LegacyServer { server: server.clone(), reply: None });
        let is_visible =
            !protocol.is_dirty && protocol.is_in_reply(age) && !self.waiting.contains_key(&protocol.serial);
        if is_visible {
            self.mark_dirty(id);
        }
    }

    /// Replaces the data of a listed server.
    pub fn replace(&mut self, old: &ListedServer, new: &Arc<ListedServer>) {
        if old.legacy_protocol != new.legacy_protocol {
            self.remove(old);
        }
        self.insert(new);
    }

    pub fn remove(&mut self, server: &ListedServer) {
        let Some(id) = server.legacy_protocol else { return };
        let Some(protocol) = self.protocols.get_mut(&id) else { return };
        let age = (server.since, server.public_id);
        if protocol.servers.remove(&age).is_none() {
            return;
        }
        let is_empty = protocol.servers.is_empty();
        let is_in_reply = protocol.is_in_reply(age);
        let was_waiting = is_empty && self.waiting.remove(&protocol.serial).is_some();
        if is_empty {
            self.protocols.remove(&id);
        }
        if is_in_reply {
            self.mark_dirty(id);
        }
        // The protocol that has waited longest gets a list instead.
        if is_empty
            && !was_waiting
            && let Some((_, next)) = self.waiting.pop_first()
        {
            self.mark_dirty(next);
        }
    }

    /// Whether all changes are published.
    pub fn is_published(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Writes replies that have changed, up to [`MAX_PER_PUBLISH`] bytes. Returns the amount of work in bytes.
    pub fn publish(&mut self, replies: &mut Arc<KeyedMap<ProtocolId, Arc<[u8]>>>) -> usize {
        if self.dirty.is_empty() {
            return 0;
        }
        let replies = Arc::make_mut(replies);
        let mut work = 0;
        while work < MAX_PER_PUBLISH
            && let Some(id) = self.dirty.pop_front()
        {
            self.is_dirty.remove(&id);
            let mut protocol = self.protocols.get_mut(&id);
            if let Some(protocol) = &mut protocol {
                protocol.is_dirty = false;
            }
            match protocol.filter(|protocol| !self.waiting.contains_key(&protocol.serial)) {
                Some(protocol) => {
                    let reply = protocol.reply();
                    work += REPLY_OVERHEAD + reply.len();
                    replies.insert(id, reply);
                }
                None => {
                    work += REPLY_OVERHEAD;
                    replies.remove(&id);
                }
            }
        }
        work
    }

    fn mark_dirty(&mut self, id: ProtocolId) {
        if self.is_dirty.insert(id) {
            self.dirty.push_back(id);
        }
        if let Some(protocol) = self.protocols.get_mut(&id) {
            protocol.is_dirty = true;
        }
    }
}

impl Protocol {
    fn is_in_reply(&self, age: Age) -> bool {
        self.last_shown.is_none_or(|last| age <= last)
    }

    fn reply(&mut self) -> Arc<[u8]> {
        let mut reply = vec![0];
        for LegacyServer { server, reply: part } in self.servers.values_mut().take(MAX_SERVERS) {
            if let Some(part) = part.get_or_insert_with(|| reply_entry(server)) {
                reply[0] += 1;
                reply.extend_from_slice(part);
            }
        }
        self.last_shown = self.servers.keys().nth(MAX_SERVERS - 1).copied();
        reply.into()
    }
}

/// The protocol under which a server is shown to legacy clients: only servers of Gang Garrison 2 with an IPv4 endpoint are.
pub(crate) fn protocol_of(lobby: LobbyId, block: &ListBlock<'_>) -> Option<ProtocolId> {
    if lobby != LobbyId::GANG_GARRISON_2 {
        return None;
    }
    block.v4?;
    block.table.get(b"protocol_id")?.try_into().ok().map(ProtocolId::from_bytes)
}

/// The part of a reply for a server. It is written once per change, because a table can have hundreds of keys.
fn reply_entry(server: &ListedServer) -> Option<Box<[u8]>> {
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
    let mut reply = Vec::new();
    emit_list([ListEntry { info, endpoint: block.v4? }], &mut reply);
    // The first byte is the count.
    Some(reply[1..].into())
}
