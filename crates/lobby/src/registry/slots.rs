//! Where entries live, and how they are found.
//!
//! An entry is two halves under one number, its slot: the hot half is all that a refresh touches. A slot that is freed is
//! given to a new server only after the wheel has come past it, so that every live slot is in the wheel exactly once.

use crate::entry::{Addr, Cold, Hot, State};
use crate::wheel::Tick;
use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashTable;
use rallypoint_wire::lobby::{ServerId, Transport};
use std::{collections::HashMap, hash::BuildHasher};

#[derive(Debug)]
pub(super) struct Slots {
    hot: Vec<Hot>,
    cold: Vec<Option<Box<Cold>>>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    hasher: FixedState,
    by_endpoint: HashMap<(Addr, Transport), u32, RandomState>,
}

impl Slots {
    pub fn new(seed: u64) -> Self {
        Self {
            hot: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
            by_id: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            by_endpoint: HashMap::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub fn find(&self, id: ServerId) -> Option<u32> {
        self.by_id.find(self.hasher.hash_one(id), |&slot| self.hot[slot as usize].id == id).copied()
    }

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
        self.cold[slot as usize].as_ref().expect("a live slot")
    }

    pub fn cold_mut(&mut self, slot: u32) -> &mut Cold {
        self.cold[slot as usize].as_mut().expect("a live slot")
    }

    pub fn is_live(&self, slot: u32) -> bool {
        self.hot[slot as usize].live
    }

    /// Whether the slot still has the tenant it had in that generation.
    pub fn is(&self, slot: u32, generation: u32) -> bool {
        self.hot.get(slot as usize).is_some_and(|hot| hot.live && hot.generation == generation)
    }

    pub fn all(&self) -> Vec<u32> {
        (0..self.hot.len() as u32).filter(|&slot| self.is_live(slot)).collect()
    }

    /// How many slots there are, in use or not.
    pub fn capacity(&self) -> u32 {
        self.hot.len() as u32
    }

    /// A slot for a new server.
    pub fn insert(&mut self, id: ServerId, cold: Cold) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.hot.push(Hot {
                id,
                prints: [0; 2],
                deadlines: [Tick::default(); 2],
                states: [State::None; 2],
                live: false,
                generation: 0,
            });
            self.cold.push(None);
            self.hot.len() as u32 - 1
        });
        let hot = &mut self.hot[slot as usize];
        hot.id = id;
        hot.live = true;
        hot.generation = hot.generation.wrapping_add(1);
        self.cold[slot as usize] = Some(Box::new(cold));
        let (all, hasher) = (&self.hot, &self.hasher);
        self.by_id.insert_unique(hasher.hash_one(id), slot, |&slot| hasher.hash_one(all[slot as usize].id));
        slot
    }

    /// The server is gone. The slot stays out of use until [`recycle`](Self::recycle).
    pub fn free(&mut self, slot: u32) {
        let id = self.hot[slot as usize].id;
        if let Ok(found) = self.by_id.find_entry(self.hasher.hash_one(id), |&found| found == slot) {
            found.remove();
        }
        self.hot[slot as usize].live = false;
        self.cold[slot as usize] = None;
    }

    /// The wheel no longer knows the slot: it can be given away.
    pub fn recycle(&mut self, slot: u32) {
        self.free.push(slot);
    }
}
