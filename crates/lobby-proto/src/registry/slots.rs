//! Where entries live, and how they are found.
//!
//! An entry is two halves under one number, its slot: the hot half is all that a refresh touches.

use super::index::Index;
use crate::{
    checks::Waiter,
    entry::{Addr, Cold, Hot, State},
    hash::{Keyed, KeyedMap},
    wheel::Tick,
};
use rallypoint_wire::lobby::{ServerId, Transport};
use std::hint::black_box;

#[derive(Debug)]
pub(super) struct Slots {
    hot: Vec<Hot>,
    /// `None` where nobody lives.
    cold: Vec<Option<Box<Cold>>>,
    free: Vec<u32>,
    by_id: Index,
    by_endpoint: KeyedMap<(Addr, Transport), u32>,
    keyed: Keyed,
}

impl Slots {
    pub fn new(keyed: Keyed) -> Self {
        Self {
            hot: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
            by_id: Index::default(),
            by_endpoint: keyed.map(),
            keyed,
        }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub fn find(&self, id: ServerId) -> Option<u32> {
        self.find_hashed(self.keyed.id(id), id)
    }

    /// The same, if the hash is known already.
    #[inline]
    pub fn find_hashed(&self, hash: u64, id: ServerId) -> Option<u32> {
        self.by_id.find(hash, |slot| self.hot[slot as usize].id == id)
    }

    #[inline]
    pub fn hash(&self, id: ServerId) -> u64 {
        self.keyed.id(id)
    }

    /// Fetches from memory what [`find_hashed`](Self::find_hashed) will look at. Each of these loops waits only once, because
    /// no turn of it has to know what another one found.
    #[inline]
    pub fn fetch<const N: usize>(&self, hashes: [u64; N]) {
        black_box(hashes.map(|hash| self.by_id.touch(hash)));
        let slots = hashes.map(|hash| self.by_id.find(hash, |_| true).unwrap_or(0));
        black_box(slots.map(|slot| self.hot.get(slot as usize).map(|hot| hot.states)));
    }

    pub fn endpoints(&self) -> usize {
        self.by_endpoint.len()
    }

    /// The server at an endpoint.
    pub fn at_endpoint(&self, key: (Addr, Transport)) -> Option<u32> {
        self.by_endpoint.get(&key).copied()
    }

    /// Notes that an endpoint is this slot's.
    pub fn bind(&mut self, key: (Addr, Transport), slot: u32) {
        self.by_endpoint.insert(key, slot);
    }

    /// Forgets an endpoint, if it is this slot's.
    pub fn unbind(&mut self, key: (Addr, Transport), slot: u32) {
        if self.by_endpoint.get(&key) == Some(&slot) {
            self.by_endpoint.remove(&key);
        }
    }

    #[inline]
    pub fn hot(&self, slot: u32) -> &Hot {
        &self.hot[slot as usize]
    }

    #[inline]
    pub fn hot_mut(&mut self, slot: u32) -> &mut Hot {
        &mut self.hot[slot as usize]
    }

    pub fn cold(&self, slot: u32) -> &Cold {
        self.get(slot).expect("a slot that somebody lives in")
    }

    pub fn cold_mut(&mut self, slot: u32) -> &mut Cold {
        self.cold[slot as usize].as_mut().expect("a slot that somebody lives in")
    }

    /// Who lives there, if anybody does.
    pub fn get(&self, slot: u32) -> Option<&Cold> {
        self.cold.get(slot as usize)?.as_deref()
    }

    /// Whether that very entry still lives there.
    pub fn is(&self, (slot, serial): Waiter) -> bool {
        self.get(slot).is_some_and(|cold| cold.serial == serial)
    }

    /// How many slots there are, in use or not.
    pub fn capacity(&self) -> u32 {
        self.hot.len() as u32
    }

    /// A slot for a new server.
    pub fn insert(&mut self, id: ServerId, cold: Cold) -> u32 {
        let hot = Hot { id, prints: [0; 2], deadlines: [Tick::default(); 2], states: [State::None; 2] };
        let cold = Some(Box::new(cold));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.hot[slot as usize] = hot;
                self.cold[slot as usize] = cold;
                slot
            }
            None => {
                self.hot.push(hot);
                self.cold.push(cold);
                self.hot.len() as u32 - 1
            }
        };
        self.by_id.insert(self.keyed.id(id), slot);
        slot
    }

    /// The server is gone, and its endpoints were before.
    pub fn remove(&mut self, slot: u32) {
        let id = self.hot[slot as usize].id;
        self.by_id.remove(self.keyed.id(id), slot);
        self.cold[slot as usize] = None;
        self.free.push(slot);
    }

    pub fn check_invariants(&self) {
        let live = (0..self.capacity()).filter_map(|slot| Some((slot, self.get(slot)?)));
        let mut endpoints = 0;
        for (slot, cold) in live.clone() {
            assert_eq!(self.find(self.hot(slot).id), Some(slot), "an entry by its ID");
            for endpoint in cold.endpoints.iter().flatten() {
                assert_eq!(
                    self.at_endpoint((endpoint.outside, cold.transport)),
                    Some(slot),
                    "an entry by its endpoint"
                );
                endpoints += 1;
            }
        }
        assert_eq!(self.by_endpoint.len(), endpoints, "endpoints of nobody");
        assert_eq!(live.clone().count(), self.by_id.len(), "IDs of nobody");
        assert_eq!(self.free.len() + self.by_id.len(), self.hot.len(), "lost slots");
    }
}
