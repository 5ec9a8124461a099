//! The memory of lists that slow readers keep from being freed. What several of them share counts once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Pieces of memory that readers hold.
#[derive(Debug)]
pub(super) struct HeldMemory {
    max_bytes: usize,
    pieces: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    /// Number of readers of each piece, by its address.
    readers: HashMap<usize, usize>,
    /// Sum of the lengths of these pieces.
    bytes: usize,
}

/// The pieces of one reader: address and length. Dropping it releases them.
#[derive(Debug)]
pub(super) struct HeldReply {
    memory: Arc<HeldMemory>,
    pieces: Vec<(usize, usize)>,
}

impl HeldMemory {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, pieces: Mutex::default() }
    }

    pub fn is_over_limit(&self) -> bool {
        self.pieces().bytes > self.max_bytes
    }

    /// Records a reader of pieces, given as address and length.
    pub fn hold(self: &Arc<Self>, pieces: Vec<(usize, usize)>) -> HeldReply {
        let mut held = self.pieces();
        for &(piece, length) in &pieces {
            let readers = held.readers.entry(piece).or_default();
            *readers += 1;
            if *readers == 1 {
                held.bytes += length;
            }
        }
        drop(held);
        HeldReply { memory: Arc::clone(self), pieces }
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldReply {
    fn drop(&mut self) {
        let mut held = self.memory.pieces();
        for (piece, length) in &self.pieces {
            if let Some(readers) = held.readers.get_mut(piece) {
                *readers -= 1;
                if *readers == 0 {
                    held.readers.remove(piece);
                    held.bytes -= length;
                }
            }
        }
    }
}

#[cfg(test)]
impl HeldMemory {
    /// Sum of the lengths of all pieces.
    pub fn bytes(&self) -> usize {
        self.pieces().bytes
    }
}
