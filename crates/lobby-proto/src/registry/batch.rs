//! Datagrams that arrived together.
//!
//! With many servers, a refresh spends its time waiting for memory: for the row of the index, then for the hot half of the
//! entry. The datagrams of a batch are independent of each other, so their waits can overlap.

use super::Registry;
use crate::doors::LOBBY;
use rallypoint_wire::lobby::Datagram;
use std::{net::SocketAddr, time::Instant};

/// Number of datagrams that are looked up together: enough to keep the memory busy.
const LOOKUPS: usize = 32;

impl Registry {
    /// Does the same as [`handle_datagram`](Self::handle_datagram) for each datagram in order, but faster.
    pub fn handle_datagrams<'a, I>(&mut self, now: Instant, datagrams: I)
    where
        I: IntoIterator<Item = (SocketAddr, &'a [u8]), IntoIter: Clone>,
    {
        let mut datagrams = datagrams.into_iter();
        loop {
            let mut hashes = [None; LOOKUPS];
            for (hash, (_, bytes)) in hashes.iter_mut().zip(datagrams.clone()) {
                *hash = Datagram::peek_registration(bytes).map(|id| (self.entries.slots.hash(id), id));
            }
            self.entries.slots.prefetch(hashes.map(|hash| hash.map_or(0, |(hash, _)| hash)));
            for hash in hashes {
                let Some((from, bytes)) = datagrams.next() else { return };
                let known = hash.and_then(|(hash, id)| self.entries.slots.find_hashed(hash, id));
                self.handle_from(now, &LOBBY, from, bytes, known);
            }
        }
    }
}
