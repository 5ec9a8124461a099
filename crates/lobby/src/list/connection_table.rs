//! The open connections, their limits, and the choice of connections to close when there are too many.
//!
//! A client can keep a connection open for a minute or two, and an attacker with a network of addresses can open as many as
//! the limit allows. So a full table never refuses a new connection for lack of room: it evicts another one, preferably of the
//! network with the most connections.

use super::{ListLimits, exchange::Phase, reply::Reply, reset_on_close};
use foldhash::quality::RandomState;
use rallypoint_limit::{Lan, Net, Site};
use slab::Slab;
use socket2::Socket;
use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Shutdown},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Age at which a connection without a complete request is evicted before any that has sent one. Most clients send their
/// request with their first bytes, a round trip after they have connected.
const REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of eviction candidates that are computed at once. Finding them takes a pass over all connections, so one pass
/// finds several; a small table needs fewer.
const MAX_CANDIDATES: usize = 64;

/// How long computed eviction candidates stay valid.
const CANDIDATES_TTL: Duration = Duration::from_secs(1);

/// The open connections.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limit: usize,
    per_address: usize,
    loopback_exempt: bool,
    held_bytes: usize,
    evicted: AtomicU64,
    state: Mutex<State>,
}

/// Key of a connection. Keys sort by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionKey {
    /// Number of connections admitted before this one.
    number: u64,
    /// Its index in the slab, where a later connection may have taken its place.
    index: usize,
}

/// Number of connections by prefix. The addresses are chosen by strangers, so the hash has a random key.
type Counts<K> = HashMap<K, usize, RandomState>;

#[derive(Debug, Default)]
struct State {
    entries: Slab<Entry>,
    /// Number of the next connection.
    next: u64,
    per_address: Counts<Lan>,
    per_network: Counts<Net>,
    per_site: Counts<Site>,
    /// Eviction candidates and their last progress when they were chosen; the next one to evict comes last.
    candidates: Vec<(ConnectionKey, Instant)>,
    /// When the candidates were chosen.
    candidates_at: Option<Instant>,
    /// Pieces of memory that slow readers keep from being freed: number of connections that hold each, by its address.
    held: HashMap<usize, usize>,
    /// Sum of the lengths of these pieces.
    held_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    phase: Phase,
    socket: Arc<Socket>,
    /// Prefix whose connections are limited.
    address: Lan,
    /// Prefixes whose connections are counted for the eviction order. One customer can have a whole site.
    network: Net,
    site: Site,
    /// Last change of the phase, or last time that the client took a part of its reply.
    progress_at: Instant,
    /// Address and length of each piece of memory that this connection keeps from being freed.
    holds: Vec<(usize, usize)>,
}

/// The address of a new connection already has as many as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyConnections;

/// The entry of one connection in the table. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    table: Arc<ConnectionTable>,
    key: ConnectionKey,
    phase: Phase,
}

impl ConnectionTable {
    pub fn new(limits: &ListLimits) -> Self {
        Self {
            limit: limits.connections.max(1),
            per_address: limits.per_address.max(1),
            loopback_exempt: limits.loopback_exempt,
            held_bytes: limits.held_bytes,
            evicted: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.state().entries.len()
    }

    /// Maximum number of open connections.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Number of connections that were evicted.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Adds a new connection. If the table is full, another connection is evicted.
    pub fn admit(
        self: &Arc<Self>,
        socket: &Arc<Socket>,
        from: IpAddr,
        now: Instant,
    ) -> Result<ConnectionGuard, TooManyConnections> {
        let address = Lan::of(from);
        let (network, site) = (Net::of(from), Site::of(from));
        let mut state = self.state();
        let is_exempt = self.loopback_exempt && from.to_canonical().is_loopback();
        let open = state.per_address.get(&address).copied().unwrap_or(0);
        if open >= self.per_address && !is_exempt {
            return Err(TooManyConnections);
        }
        if state.entries.len() >= self.limit {
            self.evict(&mut state, now);
        }
        *state.per_address.entry(address).or_default() += 1;
        *state.per_network.entry(network).or_default() += 1;
        *state.per_site.entry(site).or_default() += 1;
        let number = state.next;
        state.next += 1;
        let index = state.entries.insert(Entry {
            number,
            phase: Phase::Request,
            socket: socket.clone(),
            address,
            network,
            site,
            progress_at: now,
            holds: Vec::new(),
        });
        Ok(ConnectionGuard { table: self.clone(), key: ConnectionKey { number, index }, phase: Phase::Request })
    }

    /// Evicts one connection, if there is any.
    pub fn evict_one(&self, now: Instant) {
        self.evict(&mut self.state(), now);
    }

    /// Closes all connections that are in one of these phases.
    pub fn close(&self, phases: &[Phase]) {
        let mut state = self.state();
        let is_chosen = |(_, entry): &(usize, &Entry)| phases.contains(&entry.phase);
        let chosen: Vec<_> = state.entries.iter().filter(is_chosen).map(key_of).collect();
        chosen.into_iter().for_each(|key| state.remove(key, true));
    }

    fn evict(&self, state: &mut State, now: Instant) {
        if state.candidates_at.is_none_or(|at| now.saturating_duration_since(at) > CANDIDATES_TTL) {
            state.candidates.clear();
        }
        loop {
            if state.candidates.is_empty() {
                state.candidates =
                    state.eviction_order((self.limit / MAX_CANDIDATES).clamp(1, MAX_CANDIDATES), now, |_, _| true);
                state.candidates_at = Some(now);
            }
            let Some((key, progress_at)) = state.candidates.pop() else { return };
            // It may have made progress since it was chosen.
            if state.entry(key).is_some_and(|entry| entry.progress_at == progress_at) {
                self.evicted.fetch_add(1, Relaxed);
                return state.remove(key, true);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The entry of a connection that is open.
    fn entry(&mut self, key: ConnectionKey) -> Option<&mut Entry> {
        self.entries.get_mut(key.index).filter(|entry| entry.number == key.number)
    }

    /// Up to `count` connections in the reverse of the order in which they are to be evicted, with their last progress.
    ///
    /// Connections whose reply is sent come first, then those whose request is overdue. The others are in use, but one network
    /// should not have all of them: of the site with the most connections, and there of the network with the most, one without
    /// a request is evicted first, then the one that has read nothing of its reply for the longest time.
    fn eviction_order(
        &self,
        count: usize,
        now: Instant,
        is_eligible: impl Fn(ConnectionKey, Phase) -> bool,
    ) -> Vec<(ConnectionKey, Instant)> {
        let rank = |(index, entry): (usize, &Entry)| {
            let key = key_of((index, entry));
            let is_overdue = now.saturating_duration_since(entry.progress_at) > REQUEST_GRACE;
            let of_site = self.per_site.get(&entry.site).copied().unwrap_or(0);
            let open = (of_site, self.per_network.get(&entry.network).copied().unwrap_or(0));
            let (class, open) = match entry.phase {
                Phase::Drain => (0, (0, 0)),
                Phase::Request if is_overdue => (1, (0, 0)),
                Phase::Request | Phase::Reply => (2, open),
            };
            ((class, Reverse(open), entry.phase, entry.progress_at), key)
        };
        let mut ranked: Vec<_> =
            self.entries.iter().filter(|&each| is_eligible(key_of(each), each.1.phase)).map(rank).collect();
        if count < ranked.len() {
            ranked.select_nth_unstable(count);
            ranked.truncate(count);
        }
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.into_iter().map(|((_, _, _, progress_at), key)| (key, progress_at)).collect()
    }

    /// Removes a connection. With `shutdown` its socket is shut down as well, which ends the task that serves it.
    fn remove(&mut self, key: ConnectionKey, shutdown: bool) {
        if self.entry(key).is_none() {
            return;
        }
        let entry = self.entries.remove(key.index);
        self.release(&entry.holds);
        decrement(&mut self.per_address, &entry.address);
        decrement(&mut self.per_network, &entry.network);
        decrement(&mut self.per_site, &entry.site);
        if shutdown {
            if entry.phase == Phase::Reply {
                // An incomplete reply is useless to the client. A complete one is still delivered by the system.
                reset_on_close(&entry.socket);
            }
            // It fails if the peer has closed the connection already.
            let _ = entry.socket.shutdown(Shutdown::Both);
        }
    }

    fn release(&mut self, pieces: &[(usize, usize)]) {
        for (piece, length) in pieces {
            if let Some(holders) = self.held.get_mut(piece) {
                *holders -= 1;
                if *holders == 0 {
                    self.held.remove(piece);
                    self.held_bytes -= length;
                }
            }
        }
    }
}

impl ConnectionGuard {
    /// Records that the connection is in this phase now.
    pub fn set_phase(&mut self, phase: Phase, now: Instant) {
        if phase == self.phase {
            return;
        }
        self.phase = phase;
        let mut state = self.table.state();
        if let Some(entry) = state.entry(self.key) {
            entry.phase = phase;
            entry.progress_at = now;
            let holds = std::mem::take(&mut entry.holds);
            state.release(&holds);
        }
    }

    /// Records that the client has taken a part of its reply, and that the rest stays in memory until it takes more. If slow
    /// readers hold too much memory, other readers are evicted.
    pub fn hold(&mut self, reply: &Reply, now: Instant) {
        let mut state = self.table.state();
        let state = &mut *state;
        let key = self.key;
        let Some(entry) = state.entry(key) else { return };
        entry.progress_at = now;
        if !entry.holds.is_empty() {
            return;
        }
        let pieces = reply.pieces();
        for &(piece, length) in &pieces {
            let holders = state.held.entry(piece).or_insert_with(|| {
                state.held_bytes += length;
                0
            });
            *holders += 1;
        }
        if let Some(entry) = state.entry(key) {
            entry.holds = pieces;
        }
        if state.held_bytes <= self.table.held_bytes {
            return;
        }
        let mut readers = state.eviction_order(usize::MAX, now, |other, phase| phase == Phase::Reply && other != key);
        while state.held_bytes > self.table.held_bytes
            && let Some((reader, _)) = readers.pop()
        {
            self.table.evicted.fetch_add(1, Relaxed);
            state.remove(reader, true);
        }
    }

    /// Whether the connection is still in the table, that is, not evicted.
    pub fn is_open(&self) -> bool {
        self.table.state().entry(self.key).is_some()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.table.state().remove(self.key, false);
    }
}

fn key_of((index, entry): (usize, &Entry)) -> ConnectionKey {
    ConnectionKey { number: entry.number, index }
}

/// Decrements a count, and removes it when it reaches zero.
fn decrement<K: Eq + Hash>(counts: &mut Counts<K>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
