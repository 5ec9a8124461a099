//! The save file, from which the list is restored after a restart.
//!
//! ```text
//! +  0    "RALLYREG", version (u32 = 1)
//! + 12    entries, each: server ID (16), lobby ID (16), age in seconds (u32),
//!                        block length (u32), block as in the list reply,
//!                        endpoints (u8, 1 or 2; plus 4 times the number of the door, 64 if announced, 128 if watched), each:
//!                        source (16, IPv4 mapped) and registered port (u16),
//!                        address and port in the list (16 + 2), rest of the lease in ms (u32)
//! end     CRC-32 of everything before it (u32)
//! ```
//!
//! Server IDs are secrets, so the file must not be readable by others.

use super::{Evidence, Registry, entries::MIN_LEASE};
use crate::{
    ListedServer, ListingOrigin,
    doors::Door,
    entry::{Addr, ColdEntry, EndpointEntry, Family, PerFamily},
    index::SlotIndex,
};
use rallypoint_wire::{
    DecodeError, Reader, Writer,
    lobby::{ListBlock, ListId, MAX_BLOCK, ServerId},
};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU16,
    time::{Duration, Instant},
};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"RALLYREG";
const VERSION: u32 = 1;

/// Position of the origin in the byte that counts the endpoints.
const ORIGIN_SHIFT: u8 = 6;

/// Position of the door in that byte, and its bits.
const DOOR_SHIFT: u8 = 2;
const DOOR_BITS: u8 = 0b1111;

/// Number of bytes after which a step ends: those of some thousand usual servers. Registrations can have 64 kB each.
const MAX_STEP: usize = 1 << 20;

/// Writes the save file of a registry step by step. The registry continues between the steps, so a million servers can be
/// saved without a pause.
///
/// ```
/// # use rallypoint_lobby_proto::{Config, HashKeys, Registry, SaveFileWriter};
/// # let now = std::time::Instant::now();
/// # let registry = Registry::new(Config::default(), HashKeys::default(), now)?;
/// # let mut file = Vec::new();
/// let mut writer = SaveFileWriter::new();
/// while !registry.save_next(now, &mut writer, 1_000) {
///     file.extend(writer.take()); // so that the file is never in memory as a whole
/// }
/// file.extend(writer.finish());
/// # Ok::<(), rallypoint_lobby_proto::RegistryConfigError>(())
/// ```
pub struct SaveFileWriter {
    bytes: Vec<u8>,
    /// CRC of the bytes that were taken.
    crc: crc32fast::Hasher,
    next: SlotIndex,
}

/// Why a save file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The file has another format.
    #[error("it is not a saved list of servers")]
    NotASave,
    /// The file was written by a later version of this program.
    #[error("it was written by a later version of this program (format {0})")]
    TooNew(u32),
    /// The file is incomplete or was changed.
    #[error("it is damaged")]
    Damaged,
}

impl Default for SaveFileWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl SaveFileWriter {
    /// A save file that contains no servers yet.
    #[must_use]
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(MAGIC);
        writer.u32_be(VERSION);
        Self { bytes, crc: crc32fast::Hasher::new(), next: SlotIndex::FIRST }
    }

    /// Takes the bytes written so far, which follow those that were taken before.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        self.crc.update(&self.bytes);
        std::mem::take(&mut self.bytes)
    }

    /// The remaining bytes of a complete file: all of them if none were [taken](Self::take).
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let mut rest = self.take();
        rest.extend_from_slice(&self.crc.finalize().to_be_bytes());
        rest
    }
}

/// The bytes contain secrets (L13).
impl fmt::Debug for SaveFileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveFileWriter").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Registry {
    /// Writes the next servers, at most `count` of them and about 1 MiB. Returns whether all are written.
    pub fn save_next(&self, now: Instant, writer: &mut SaveFileWriter, count: u32) -> bool {
        let before = writer.bytes.len();
        let mut end = writer.next.plus(count).min(self.entries.end());
        for slot in writer.next.until(end) {
            if writer.bytes.len() - before >= MAX_STEP {
                end = slot;
                break;
            }
            // A server of which only other nodes know the ID is loaded from them again.
            let is_saved = |cold: &ColdEntry| cold.position.is_some() && !cold.replica.has_stand_in_id;
            if self.entries.get(slot).is_some_and(is_saved) {
                self.save_entry(now, slot, &mut Writer::new(&mut writer.bytes));
            }
        }
        writer.next = end;
        end == self.entries.end()
    }

    fn save_entry(&self, now: Instant, slot: SlotIndex, writer: &mut Writer<'_>) {
        let hot = self.entries.hot(slot);
        let server = &self.entries.cold(slot).server;
        let age = now.saturating_duration_since(server.since).as_secs();
        writer.bytes(hot.id.expose());
        writer.bytes(server.list_id.as_bytes());
        writer.u32_be(u32::try_from(age).unwrap_or(u32::MAX));
        // A block begins with its own length.
        writer.bytes(&server.block);
        let listed = |family| Some((family, self.entries.listed_endpoint(slot, family)?));
        let endpoints = || Family::ALL.into_iter().filter_map(listed);
        let door = server.door.map_or(0, |door| door.code);
        writer.u8(endpoints().count() as u8 | door << DOOR_SHIFT | (server.origin as u8) << ORIGIN_SHIFT);
        for (family, EndpointEntry { internal, external }) in endpoints() {
            emit_addr(internal, writer);
            emit_addr(external, writer);
            let left = self.clock.instant(hot.deadlines[family]).saturating_duration_since(now);
            writer.u32_be(u32::try_from(left.as_millis()).unwrap_or(u32::MAX));
        }
    }

    /// Restores the servers of a save file: every server is listed for the rest of its lease, but at least 35 s, unless it
    /// is now banned or a cap is reached. Returns the number of listed servers. There are no events for them, because they
    /// were listed before. Intended for an empty registry.
    ///
    /// # Errors
    /// If the file cannot be read; then nothing has changed.
    pub fn restore(&mut self, now: Instant, save: &[u8]) -> Result<usize, RestoreError> {
        let body = verify(save)?;
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            SavedServer::parse(&mut reader).map_err(|_| RestoreError::Damaged)?.ok_or(RestoreError::Damaged)?;
        }
        // The file is parsed twice, so that a million servers need not be in memory besides the registry.
        let mut reader = Reader::new(body);
        let before = self.entries.len();
        self.lists.begin_restore();
        while let Ok(Some(saved)) = SavedServer::parse(&mut reader) {
            self.restore_entry(now, &saved);
        }
        self.lists.end_restore(now);
        self.admission.note_restored(now);
        Ok(self.entries.len() - before)
    }

    fn restore_entry(&mut self, now: Instant, saved: &SavedServer<'_>) {
        let public_id = self.public_id(saved.id);
        let since = now.checked_sub(saved.age).unwrap_or(now);
        let server = ListedServer::new(public_id, saved.list_id, since, &saved.block);
        let entry = ColdEntry::new(server.with_origin(saved.origin, saved.door), Evidence::Known, self.clock.tick(now));
        let endpoints = || saved.endpoints.iter().flatten();
        let is_refused = |endpoint: &EndpointEntry| {
            self.entries.at_endpoint((endpoint.external, entry.transport)).is_some()
                || !self.admission.has_room_at(&self.entries, endpoint, &entry.server, Evidence::Known)
        };
        if self.entries.find(saved.id).is_some() || endpoints().any(|(endpoint, _)| is_refused(endpoint)) {
            return;
        }
        let slot = self.entries.insert(now, None, saved.id, entry);
        self.replication.index(slot, public_id);
        for &(endpoint, left) in endpoints() {
            let deadline = self.clock.deadline(now, left.clamp(MIN_LEASE, self.config.lease.max(MIN_LEASE)));
            self.entries.add_listed(slot, endpoint, false, deadline);
            if let Some(target) = self.entries.check_target(slot, Family::of(endpoint.internal.ip)) {
                self.checks.vouch(now, target);
                // It was listed, so it had replied to a check.
                self.prove(slot);
            }
        }
        self.review_entry(now, slot);
    }
}

/// One entry of a save file.
struct SavedServer<'a> {
    id: ServerId,
    list_id: ListId,
    origin: ListingOrigin,
    door: Option<&'static Door>,
    age: Duration,
    block: ListBlock<'a>,
    /// The endpoints, each with the rest of its lease.
    endpoints: PerFamily<Option<(EndpointEntry, Duration)>>,
}

impl<'a> SavedServer<'a> {
    /// Parses the next entry; `None` if its parts contradict each other.
    fn parse(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        let id = ServerId::from_bytes(*reader.array("server ID")?);
        let list_id = ListId::from_bytes(*reader.array("lobby ID")?);
        let age = Duration::from_secs(u64::from(reader.u32_be("age")?));
        let length = reader.u32_be("block length")? as usize;
        let block = ListBlock::parse(reader.bytes(length, "block")?)?;
        let mut endpoints = PerFamily::<Option<(EndpointEntry, Duration)>>::default();
        let count = reader.u8("endpoints")?;
        let Some(&origin) = ListingOrigin::ALL.get(usize::from(count >> ORIGIN_SHIFT)) else { return Ok(None) };
        let door = Door::of_code(count >> DOOR_SHIFT & DOOR_BITS);
        let count = count & ((1 << DOOR_SHIFT) - 1);
        for _ in 0..count {
            let internal = parse_addr(reader)?;
            let external = parse_addr(reader)?;
            let left = Duration::from_millis(u64::from(reader.u32_be("lease")?));
            let (Some(internal), Some(external)) = (internal, external) else { return Ok(None) };
            let family = Family::of(internal.ip);
            if Family::of(external.ip) != family || endpoints[family].is_some() {
                return Ok(None);
            }
            endpoints[family] = Some((EndpointEntry { internal, external }, left));
        }
        let is_valid = length <= MAX_BLOCK && count > 0;
        Ok(is_valid.then_some(Self { id, list_id, origin, door, age, block, endpoints }))
    }
}

/// Verifies header and CRC, and returns the entries.
fn verify(save: &[u8]) -> Result<&[u8], RestoreError> {
    let body = save.strip_prefix(MAGIC).ok_or(RestoreError::NotASave)?;
    let (version, body) = body.split_first_chunk().ok_or(RestoreError::Damaged)?;
    match u32::from_be_bytes(*version) {
        VERSION => {}
        newer @ 2.. => return Err(RestoreError::TooNew(newer)),
        0 => return Err(RestoreError::Damaged),
    }
    let (body, crc) = body.split_last_chunk().ok_or(RestoreError::Damaged)?;
    let written = &save[..save.len() - crc.len()];
    if crc32fast::hash(written) == u32::from_be_bytes(*crc) { Ok(body) } else { Err(RestoreError::Damaged) }
}

fn emit_addr(addr: Addr, writer: &mut Writer<'_>) {
    let ip = match addr.ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    writer.bytes(&ip.octets());
    writer.u16_be(addr.port.get());
}

fn parse_addr(reader: &mut Reader<'_>) -> Result<Option<Addr>, DecodeError> {
    let ip = IpAddr::V6(Ipv6Addr::from(*reader.array("address")?)).to_canonical();
    Ok(NonZeroU16::new(reader.u16_be("port")?).map(|port| Addr { ip, port }))
}
