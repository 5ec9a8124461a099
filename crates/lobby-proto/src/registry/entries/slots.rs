//! The table of entries, and the indices by which they are found.

use super::id_index::IdIndex;
use crate::{
    entry::{ColdEntry, EndpointKey, HotEntry},
    hash::{KeyedHash, KeyedMap},
    index::{EntryKey, SlotIndex},
};
use rallypoint_wire::lobby::ServerId;
use std::hint::black_box;

/// All entries, by slot, by ID and by listed endpoint.
#[derive(Debug)]
pub(crate) struct Slots {
    hot: Vec<HotEntry>,
    /// `None` for slots that are not in use.
    cold: Vec<Option<Box<ColdEntry>>>,
    free: Vec<SlotIndex>,
    by_id: IdIndex,
    by_endpoint: KeyedMap<EndpointKey, SlotIndex>,
    keyed: KeyedHash,
    /// Number of entries that were ever inserted.
    serial: u64,
}

/// Why [`Slots::cold`] does not fail: the registry takes slots from its indices only, which have no slot of a removed entry.
const IN_USE: &str = "the indices contain only slots that are in use";

impl Slots {
    pub fn new(keyed: KeyedHash) -> Self {
        Self {
            hot: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
            by_id: IdIndex::default(),
            by_endpoint: keyed.map(),
            keyed,
            serial: 0,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub fn find(&self, id: ServerId) -> Option<SlotIndex> {
        self.find_hashed(self.keyed.server_id(id), id)
    }

    /// Like [`find`](Self::find), with the [`hash`](Self::hash) of the ID.
    #[inline]
    pub fn find_hashed(&self, hash: u64, id: ServerId) -> Option<SlotIndex> {
        self.by_id.find(hash, |slot| self.hot[slot.get()].id == id)
    }

    #[inline]
    pub fn hash(&self, id: ServerId) -> u64 {
        self.keyed.server_id(id)
    }

    /// Loads the memory that [`find_hashed`](Self::find_hashed) and a refresh will read into the cache. The lookups of each
    /// step do not depend on each other, so each step waits for memory only once.
    #[inline]
    pub fn prefetch<const N: usize>(&self, hashes: [u64; N]) {
        black_box(hashes.map(|hash| self.by_id.touch(hash)));
        let slots = hashes.map(|hash| self.by_id.find(hash, |_| true).unwrap_or(SlotIndex::FIRST));
        black_box(slots.map(|slot| self.hot.get(slot.get()).map(|hot| hot.states)));
    }

    /// Number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.by_endpoint.len()
    }

    /// The entry that has an endpoint.
    pub fn at_endpoint(&self, key: EndpointKey) -> Option<SlotIndex> {
        self.by_endpoint.get(&key).copied()
    }

    /// Assigns an endpoint to an entry.
    pub fn bind(&mut self, key: EndpointKey, slot: SlotIndex) {
        self.by_endpoint.insert(key, slot);
    }

    /// Releases an endpoint, if it is assigned to this entry.
    pub fn unbind(&mut self, key: EndpointKey, slot: SlotIndex) {
        if self.by_endpoint.get(&key) == Some(&slot) {
            self.by_endpoint.remove(&key);
        }
    }

    #[inline]
    pub fn hot(&self, slot: SlotIndex) -> &HotEntry {
        &self.hot[slot.get()]
    }

    #[inline]
    pub fn hot_mut(&mut self, slot: SlotIndex) -> &mut HotEntry {
        &mut self.hot[slot.get()]
    }

    pub fn cold(&self, slot: SlotIndex) -> &ColdEntry {
        self.get(slot).expect(IN_USE)
    }

    pub fn cold_mut(&mut self, slot: SlotIndex) -> &mut ColdEntry {
        self.cold[slot.get()].as_mut().expect(IN_USE)
    }

    /// The entry in a slot, if the slot is in use.
    pub fn get(&self, slot: SlotIndex) -> Option<&ColdEntry> {
        self.cold.get(slot.get())?.as_deref()
    }

    /// The key of the entry in a slot.
    pub fn key(&self, slot: SlotIndex) -> EntryKey {
        EntryKey { slot, serial: self.cold(slot).serial }
    }

    /// Whether an entry has not been removed.
    pub fn contains(&self, key: EntryKey) -> bool {
        self.get(key.slot).is_some_and(|cold| cold.serial == key.serial)
    }

    /// The end of the range of slots, in use or not.
    pub fn end(&self) -> SlotIndex {
        SlotIndex::new(self.hot.len())
    }

    /// All slots in use, with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (SlotIndex, &ColdEntry)> {
        SlotIndex::FIRST.until(self.end()).filter_map(|slot| Some((slot, self.get(slot)?)))
    }

    /// Adds an entry, which gets a serial number.
    pub fn insert(&mut self, id: ServerId, cold: ColdEntry) -> SlotIndex {
        self.serial += 1;
        let hot = HotEntry::new(id);
        let cold = Some(Box::new(ColdEntry { serial: self.serial, ..cold }));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.hot[slot.get()] = hot;
                self.cold[slot.get()] = cold;
                slot
            }
            None => {
                self.hot.push(hot);
                self.cold.push(cold);
                SlotIndex::new(self.hot.len() - 1)
            }
        };
        self.by_id.insert(self.keyed.server_id(id), slot);
        slot
    }

    /// Changes the ID of an entry.
    pub fn set_id(&mut self, slot: SlotIndex, id: ServerId) {
        let old = std::mem::replace(&mut self.hot[slot.get()].id, id);
        self.by_id.remove(self.keyed.server_id(old), slot);
        self.by_id.insert(self.keyed.server_id(id), slot);
    }

    /// Removes an entry, whose endpoints were released before.
    pub fn remove(&mut self, slot: SlotIndex) {
        let id = self.hot[slot.get()].id;
        self.by_id.remove(self.keyed.server_id(id), slot);
        self.cold[slot.get()] = None;
        self.free.push(slot);
    }

    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self) {
        let mut entries = 0;
        let mut endpoints = 0;
        for (slot, cold) in self.iter() {
            assert_eq!(self.find(self.hot(slot).id), Some(slot), "an entry by its ID");
            for endpoint in cold.endpoints.iter().flatten() {
                let key = (endpoint.external, cold.transport);
                assert_eq!(self.at_endpoint(key), Some(slot), "an entry by its endpoint");
                endpoints += 1;
            }
            entries += 1;
        }
        assert_eq!(self.by_endpoint.len(), endpoints, "endpoints of removed entries");
        assert_eq!(self.by_id.len(), entries, "IDs of removed entries");
        assert_eq!(self.free.len() + self.by_id.len(), self.hot.len(), "lost slots");
    }
}
