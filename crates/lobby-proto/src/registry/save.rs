//! The list on disk, so that a restart does not empty it.
//!
//! ```text
//! +  0    "RALLYREG", version (u32 = 1)
//! + 12    entries, each: server ID (16), lobby ID (16), age in seconds (u32),
//!                        block length (u32), block as in the list reply,
//!                        endpoints (u8, 1 or 2; plus 64 if announced, 128 if watched), each: source (16, IPv4 mapped) and registered port (u16),
//!                        address and port in the list (16 + 2), what is left of the lease in ms (u32)
//! end     CRC-32 of everything before it (u32)
//! ```
//!
//! Server IDs are secrets: the file is for the lobby's eyes only.

use super::{Registry, register::Newcomer};
use crate::{
    ListedServer, ListingOrigin,
    entry::{Addr, Cold, EndpointEntry, Family, Probe, State, V4, V6, family_of},
};
use rallypoint_limit::Lan;
use rallypoint_wire::{
    DecodeError, Reader, Writer,
    lobby::{ListBlock, LobbyId, MAX_BLOCK, ServerId},
};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"RALLYREG";
const VERSION: u32 = 1;

/// Where the origin stands in the byte that counts the endpoints.
const ORIGIN_SHIFT: u8 = 6;

/// However little is left of a lease when the lobby comes back, every server has the chance to refresh: they do so every
/// 30 seconds.
const AT_LEAST: Duration = Duration::from_secs(35);

/// A save in progress. The registry goes on between the steps, so a million servers can be saved without a pause.
///
/// ```
/// # use rallypoint_lobby_proto::{Config, Registry, SaveFileWriter, HashKeys};
/// # let now = std::time::Instant::now();
/// # let registry = Registry::new(Config::default(), HashKeys::default(), now)?;
/// # let mut file = Vec::new();
/// let mut saver = SaveFileWriter::new();
/// while !registry.save_next(now, &mut saver, 1_000) {
///     file.extend(saver.take()); // so that it is never in memory as a whole
/// }
/// file.extend(saver.finish());
/// # Ok::<(), rallypoint_lobby_proto::ConfigError>(())
/// ```
pub struct SaveFileWriter {
    bytes: Vec<u8>,
    /// Of what was taken.
    crc: crc32fast::Hasher,
    next: u32,
}

/// Why a save cannot be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// It is something else.
    #[error("it is not a saved list of servers")]
    NotASave,
    /// It comes from a later version of this program.
    #[error("it was written by a later version of this program (format {0})")]
    TooNew(u32),
    /// It is not what was written.
    #[error("it is damaged")]
    Damaged,
}

impl Default for SaveFileWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl SaveFileWriter {
    /// A save that is about to begin.
    #[must_use]
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(MAGIC);
        writer.u32_be(VERSION);
        Self { bytes, crc: crc32fast::Hasher::new(), next: 0 }
    }

    /// Takes the bytes that are there so far, to be written behind those that were taken before.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        self.crc.update(&self.bytes);
        std::mem::take(&mut self.bytes)
    }

    /// The rest of the bytes of a save that is done: all of them, if none were [taken](Self::take).
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let mut rest = self.take();
        rest.extend_from_slice(&self.crc.finalize().to_be_bytes());
        rest
    }
}

/// The bytes have secrets in them (L13).
impl fmt::Debug for SaveFileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveFileWriter").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Registry {
    /// Saves the next `count` servers at most. Says whether all are saved.
    pub fn save_next(&self, now: Instant, saver: &mut SaveFileWriter, count: u32) -> bool {
        let end = saver.next.saturating_add(count).min(self.slots.capacity());
        for slot in saver.next..end {
            if self.slots.get(slot).is_some_and(|cold| cold.place.is_some()) {
                self.save_entry(now, slot, &mut Writer::new(&mut saver.bytes));
            }
        }
        saver.next = end;
        end == self.slots.capacity()
    }

    fn save_entry(&self, now: Instant, slot: u32, writer: &mut Writer<'_>) {
        let (hot, cold) = (self.slots.hot(slot), self.slots.cold(slot));
        let age = now.saturating_duration_since(cold.listing.since).as_secs();
        writer.bytes(hot.id.expose());
        writer.bytes(cold.listing.lobby_id.as_bytes());
        writer.u32_be(u32::try_from(age).unwrap_or(u32::MAX));
        // A block begins with its own length.
        writer.bytes(&cold.listing.block);
        let listed = |family: Family| cold.endpoints[family].filter(|_| hot.states[family] == State::Listed);
        let count = [V4, V6].into_iter().filter_map(listed).count() as u8;
        writer.u8(count | (cold.listing.origin as u8) << ORIGIN_SHIFT);
        for (family, EndpointEntry { inside, outside }) in [V4, V6].into_iter().filter_map(|at| Some((at, listed(at)?)))
        {
            emit_addr(inside, writer);
            emit_addr(outside, writer);
            let left = self.wheel.instant(hot.deadlines[family]).saturating_duration_since(now);
            writer.u32_be(u32::try_from(left.as_millis()).unwrap_or(u32::MAX));
        }
    }

    /// Reads a save back: every server is listed for what is left of its lease, and for 35 s at least, unless it has become
    /// unwelcome or there is no room for it. Says how many are listed; there is no event for each, because it was there
    /// before. Meant for a registry that is still empty.
    ///
    /// # Errors
    /// If it is not what was saved; then nothing has changed.
    pub fn restore(&mut self, now: Instant, save: &[u8]) -> Result<usize, RestoreError> {
        let body = check(save)?;
        let mut reader = Reader::new(body);
        while !reader.is_empty() {
            Saved::parse(&mut reader).map_err(|_| RestoreError::Damaged)?.ok_or(RestoreError::Damaged)?;
        }
        // Twice, so that a million of them need not be in memory beside the registry.
        let mut reader = Reader::new(body);
        let before = self.slots.len();
        // They are nothing new, so they are no events.
        let (events, lost) = (std::mem::take(&mut self.events), self.stats.dropped_events);
        while let Ok(Some(saved)) = Saved::parse(&mut reader) {
            self.restore_entry(now, &saved);
        }
        (self.events, self.stats.dropped_events) = (events, lost);
        self.publish(now);
        Ok(self.slots.len() - before)
    }

    fn restore_entry(&mut self, now: Instant, saved: &Saved<'_>) {
        let endpoints = || saved.endpoints.iter().flatten();
        let transport = saved.block.transport;
        let is_taken = |(e, _): &(EndpointEntry, Duration)| self.slots.at_endpoint((e.outside, transport)).is_some();
        self.scratch.clear();
        saved.block.emit(&mut self.scratch);
        let is_full = |(e, _): &(EndpointEntry, Duration)| {
            let home = saved.origin.is_charged().then(|| Lan::of(e.inside.ip));
            let new = Newcomer { home, lobby: saved.lobby_id, opener: None, size: self.scratch.len() };
            self.at_cap(&new, None, None).is_some()
        };
        if self.slots.find(saved.id).is_some() || endpoints().any(is_taken) || endpoints().any(is_full) {
            return;
        }
        let public_id = self.public_id(saved.id);
        let since = now.checked_sub(saved.age).unwrap_or(now);
        let listing = ListedServer::new(public_id, saved.lobby_id, since, &self.scratch);
        let listing = Arc::new(listing.of(saved.origin));
        self.memory += listing.memory();
        let probe = Probe::for_server(transport, saved.block.table.get(b"x-query"));
        let probe = probe.filter(|_| saved.origin == ListingOrigin::Registered);
        let serial = self.next_serial();
        let cold = Cold { serial, transport, probe, endpoints: [None; 2], asks: [None; 2], listing, place: None };
        let slot = self.slots.insert(saved.id, cold);
        self.lobbies.join(saved.lobby_id, self.config.named_lobbies.contains(&saved.lobby_id), None);
        for &(endpoint, left) in endpoints() {
            let family = family_of(endpoint.inside.ip);
            let deadline = self.wheel.deadline(now, left.clamp(AT_LEAST, self.config.lease.max(AT_LEAST)));
            self.slots.bind((endpoint.outside, transport), slot);
            self.count_home(slot, endpoint.inside.ip);
            self.slots.cold_mut(slot).endpoints[family] = Some(endpoint);
            let hot = self.slots.hot_mut(slot);
            hot.states[family] = State::Listed;
            hot.deadlines[family] = deadline;
            self.wheel.schedule(slot, deadline);
            if let Some(target) = self.target(slot, family) {
                self.checks.vouch(now, &self.wheel, target);
            }
        }
        self.review_entry(now, slot);
    }
}

struct Saved<'a> {
    id: ServerId,
    lobby_id: LobbyId,
    origin: ListingOrigin,
    age: Duration,
    block: ListBlock<'a>,
    /// By family.
    endpoints: [Option<(EndpointEntry, Duration)>; 2],
}

impl<'a> Saved<'a> {
    /// The next entry; nothing, if its parts do not go together.
    fn parse(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        let id = ServerId::from_bytes(*reader.array("server ID")?);
        let lobby_id = LobbyId::from_bytes(*reader.array("lobby ID")?);
        let age = Duration::from_secs(u64::from(reader.u32_be("age")?));
        let length = reader.u32_be("block length")? as usize;
        let block = ListBlock::parse(reader.bytes(length, "block")?)?;
        let mut endpoints = [None; 2];
        let count = reader.u8("endpoints")?;
        let Some(&origin) = ListingOrigin::ALL.get(usize::from(count >> ORIGIN_SHIFT)) else { return Ok(None) };
        let count = count & ((1 << ORIGIN_SHIFT) - 1);
        for _ in 0..count {
            let (inside, outside) = (parse_addr(reader)?, parse_addr(reader)?);
            let left = Duration::from_millis(u64::from(reader.u32_be("lease")?));
            let (Some(inside), Some(outside)) = (inside, outside) else { return Ok(None) };
            let family = family_of(inside.ip);
            if family_of(outside.ip) != family || endpoints[family].is_some() {
                return Ok(None);
            }
            endpoints[family] = Some((EndpointEntry { inside, outside }, left));
        }
        let is_whole = length <= MAX_BLOCK && count > 0;
        Ok(is_whole.then_some(Self { id, lobby_id, origin, age, block, endpoints }))
    }
}

/// Whether these are the bytes that were written, and what is between head and tail.
fn check(save: &[u8]) -> Result<&[u8], RestoreError> {
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
