//! Datagrams that arrived together.
//!
//! With many servers, what a refresh costs is waiting for memory: for the row of the index, then for the hot line of the
//! entry. Datagrams of a batch have nothing to do with each other, so the waiting can be done for many of them at once.

use super::Registry;
use rallypoint_wire::lobby::Datagram;
use std::{net::SocketAddr, time::Instant};

/// How many datagrams are looked up together: enough to keep the memory busy.
const TOGETHER: usize = 32;

impl Registry {
    /// The same as [`handle_datagram`](Self::handle_datagram) for each of them in turn, and faster.
    pub fn handle_datagrams<'a, I>(&mut self, now: Instant, datagrams: I)
    where
        I: IntoIterator<Item = (SocketAddr, &'a [u8]), IntoIter: Clone>,
    {
        let mut datagrams = datagrams.into_iter();
        loop {
            let mut hashes = [None; TOGETHER];
            for (hash, (_, bytes)) in hashes.iter_mut().zip(datagrams.clone()) {
                *hash = Datagram::peek_registration(bytes).map(|id| (self.slots.hash(id), id));
            }
            self.slots.fetch(hashes.map(|hash| hash.map_or(0, |(hash, _)| hash)));
            for hash in hashes {
                let Some((from, bytes)) = datagrams.next() else { return };
                let known = hash.and_then(|(hash, id)| self.slots.find_hashed(hash, id));
                self.handle(now, from, bytes, known);
            }
        }
    }
}
