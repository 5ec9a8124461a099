//! The list on disk, so that a restart does not empty it.
//!
//! ```text
//! +  0    "RALLYREG", version (u32 = 1)
//! + 12    entries, each: server ID (16), lobby ID (16), age in seconds (u32),
//!                        block length (u32), block as in the list reply,
//!                        endpoints (u8), each: source (16, IPv4 mapped), outside (16) and its port (u16),
//!                        what is left of the lease in ms (u32), check kind (u8) and port (u16)
//! end     CRC-32 of everything before it (u32)
//! ```
//!
//! Server IDs are secrets: the file is for the lobby's eyes only.

use super::Registry;
use crate::{
    CheckKind, Listing, PublicId,
    entry::{Addr, Cold, EndpointEntry, State, V4, V6, family_of},
};
use rallypoint_wire::{
    DecodeError, Reader, Writer,
    lobby::{ListBlock, LobbyId, MAX_BLOCK, ServerId},
};
use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"RALLYREG";
const VERSION: u32 = 1;

/// However little is left of a lease when the lobby comes back, every server has the chance to refresh: they do so every
/// 30 seconds.
const AT_LEAST: Duration = Duration::from_secs(35);

/// A save in progress. The registry goes on between the steps, so a million servers can be saved without a pause.
#[derive(Debug)]
pub struct Saver {
    bytes: Vec<u8>,
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

impl Default for Saver {
    fn default() -> Self {
        Self::new()
    }
}

impl Saver {
    /// A save that is about to begin.
    #[must_use]
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(MAGIC);
        writer.u32_be(VERSION);
        Self { bytes, next: 0 }
    }

    /// The bytes of a save that is done.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let crc = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&crc.to_be_bytes());
        self.bytes
    }
}

impl Registry {
    /// Saves the next `count` servers at most. Says whether all are saved.
    pub fn save_some(&self, now: Instant, saver: &mut Saver, count: u32) -> bool {
        let end = saver.next.saturating_add(count).min(self.slots.capacity());
        for slot in saver.next..end {
            if self.slots.is_live(slot) && self.slots.cold(slot).place.is_some() {
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
        let listed = |&family: &usize| hot.states[family] == State::Listed;
        writer.u8([V4, V6].iter().filter(|family| listed(family)).count() as u8);
        for family in [V4, V6].into_iter().filter(listed) {
            let Some(endpoint) = cold.endpoints[family] else { continue };
            let left = self.wheel.instant(hot.deadlines[family]).saturating_duration_since(now);
            writer.bytes(&mapped(endpoint.source));
            writer.bytes(&mapped(endpoint.outside.ip));
            writer.u16_be(endpoint.outside.port);
            writer.u32_be(u32::try_from(left.as_millis()).unwrap_or(u32::MAX));
            let (kind, port) = endpoint.check.map_or((0, 0), |(kind, port)| (1 + kind as u8, port));
            writer.u8(kind);
            writer.u16_be(port);
        }
    }

    /// Reads a save back: every server is listed for what is left of its lease, and for 35 s at least. Says how many there
    /// were. Meant for a registry that is still empty.
    pub fn restore(&mut self, now: Instant, save: &[u8]) -> Result<usize, RestoreError> {
        let body = check(save)?;
        let mut reader = Reader::new(body);
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(Saved::parse(&mut reader).map_err(|_| RestoreError::Damaged)?);
        }
        let mut count = 0;
        for entry in &entries {
            count += usize::from(self.restore_entry(now, entry));
        }
        self.publish(now);
        Ok(count)
    }

    fn restore_entry(&mut self, now: Instant, saved: &Saved<'_>) -> bool {
        let endpoints = saved.endpoints.into_iter().flatten();
        let transport = saved.block.transport;
        let is_taken = |e: (EndpointEntry, Duration)| self.slots.at_endpoint((e.0.outside, transport)).is_some();
        if self.slots.find(saved.id).is_some() || endpoints.clone().any(is_taken) {
            return false;
        }
        let mut block = Vec::new();
        saved.block.emit(&mut block);
        let listing = Listing {
            public_id: PublicId::of(saved.id, &self.seed.public_ids),
            lobby_id: saved.lobby_id,
            since: now.checked_sub(saved.age).unwrap_or(now),
            latency: None,
            block: block.into(),
        };
        let cold = Cold { transport, endpoints: [None; 2], listing: Arc::new(listing), place: None };
        let slot = self.slots.insert(saved.id, cold);
        *self.per_lobby.entry(saved.lobby_id).or_default() += 1;
        let mut first = None;
        for (endpoint, left) in endpoints {
            let family = family_of(endpoint.source);
            let deadline = self.wheel.deadline(now, left.clamp(AT_LEAST, self.config.lease.max(AT_LEAST)));
            self.slots.bind((endpoint.outside, transport), slot);
            *self.per_address.entry(endpoint.source).or_default() += 1;
            self.slots.cold_mut(slot).endpoints[family] = Some(endpoint);
            let hot = self.slots.hot_mut(slot);
            hot.states[family] = State::Listed;
            hot.deadlines[family] = deadline;
            first = Some(first.unwrap_or(deadline).min(deadline));
        }
        self.wheel.insert(slot, first.unwrap_or_default());
        self.relist(now, slot, crate::Gone::Expired);
        true
    }
}

struct Saved<'a> {
    id: ServerId,
    lobby_id: LobbyId,
    age: Duration,
    block: ListBlock<'a>,
    endpoints: [Option<(EndpointEntry, Duration)>; 2],
}

impl<'a> Saved<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let id = ServerId::from_bytes(*reader.array("server ID")?);
        let lobby_id = LobbyId::from_bytes(*reader.array("lobby ID")?);
        let age = Duration::from_secs(u64::from(reader.u32_be("age")?));
        let length = (reader.u32_be("block length")? as usize).min(MAX_BLOCK);
        let block = ListBlock::parse(reader.bytes(length, "block")?)?;
        let mut endpoints = [None; 2];
        for endpoint in endpoints.iter_mut().take(usize::from(reader.u8("endpoints")?)) {
            let source = unmapped(*reader.array("source")?);
            let ip = unmapped(*reader.array("outside")?);
            let outside = Addr { ip, port: reader.u16_be("outside port")? };
            let left = Duration::from_millis(u64::from(reader.u32_be("lease")?));
            let kind = reader.u8("check kind")?;
            let port = reader.u16_be("check port")?;
            let kind = match kind {
                1 => Some(CheckKind::Connect),
                2 => Some(CheckKind::Bloodmasters),
                3 => Some(CheckKind::Session),
                _ => None,
            };
            *endpoint = Some((EndpointEntry { source, outside, check: kind.map(|kind| (kind, port)) }, left));
        }
        Ok(Self { id, lobby_id, age, block, endpoints })
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

fn mapped(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn unmapped(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}
