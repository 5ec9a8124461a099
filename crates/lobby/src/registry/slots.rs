//! Where entries live, and how they are found.
//!
//! An entry is two halves under one number, its slot: the hot half is all that a refresh touches.

use crate::{
    entry::{Addr, Cold, Hot, State},
    hash::{Keyed, KeyedMap},
    wheel::Tick,
};
use hashbrown::HashTable;
use rallypoint_wire::lobby::{ServerId, Transport};

#[derive(Debug)]
pub(super) struct Slots {
    hot: Vec<Hot>,
    /// `None` where nobody lives.
    cold: Vec<Option<Box<Cold>>>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    by_endpoint: KeyedMap<(Addr, Transport), u32>,
    keyed: Keyed,
}

impl Slots {
    pub fn new(keyed: Keyed) -> Self {
        Self {
            hot: Vec::new(),
            cold: Vec::new(),
            free: Vec::new(),
            by_id: HashTable::new(),
            by_endpoint: keyed.map(),
            keyed,
        }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub fn find(&self, id: ServerId) -> Option<u32> {
        self.by_id.find(self.keyed.id(id), |&slot| self.hot[slot as usize].id == id).copied()
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
        self.get(slot).expect("a slot that somebody lives in")
    }

    pub fn cold_mut(&mut self, slot: u32) -> &mut Cold {
        self.cold[slot as usize].as_mut().expect("a slot that somebody lives in")
    }

    /// Who lives there, if anybody does.
    pub fn get(&self, slot: u32) -> Option<&Cold> {
        self.cold.get(slot as usize)?.as_deref()
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
        let (all, keyed) = (&self.hot, self.keyed);
        self.by_id.insert_unique(keyed.id(id), slot, |&slot| keyed.id(all[slot as usize].id));
        slot
    }

    /// The server is gone, and its endpoints were before.
    pub fn remove(&mut self, slot: u32) {
        let id = self.hot[slot as usize].id;
        if let Ok(found) = self.by_id.find_entry(self.keyed.id(id), |&found| found == slot) {
            found.remove();
        }
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
