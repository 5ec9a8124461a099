//! Who is connected, and who has to go when there are too many.

use super::{ListLimits, exchange::Phase, reply::Reply};
use socket2::Socket;
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr, Shutdown},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// For so long nobody who is being served has to go (L14).
const SERVED_AT_LEAST: Duration = Duration::from_secs(60);

/// The connections that are open.
#[derive(Debug)]
pub(super) struct Places {
    connections: usize,
    per_address: usize,
    loopback_exempt: bool,
    held_bytes: usize,
    evicted: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By phase and age.
    entries: BTreeMap<(Phase, u64), Entry>,
    next: u64,
    per_address: HashMap<IpAddr, usize>,
    /// What slow readers keep in memory: by its address, how many of them keep it, and its length.
    held: HashMap<usize, (usize, usize)>,
    held_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    socket: Arc<Socket>,
    /// Who is charged for it.
    address: IpAddr,
    since: Instant,
    holds: Vec<(usize, usize)>,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many from that address.
    Address,
    /// Too many in all.
    Total,
}

/// The place of one connection. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    phase: Phase,
    number: u64,
}

impl Places {
    pub fn new(limits: &ListLimits) -> Self {
        Self {
            connections: limits.connections.max(1),
            per_address: limits.per_address.max(1),
            loopback_exempt: limits.loopback_exempt,
            held_bytes: limits.held_bytes,
            evicted: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// How many connections there are.
    pub fn open(&self) -> usize {
        self.state().entries.len()
    }

    /// How many had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// A place for a new connection. If all are taken, somebody who can be spared goes.
    pub fn admit(self: &Arc<Self>, socket: &Arc<Socket>, from: IpAddr, now: Instant) -> Result<Place, Refused> {
        let address = charged(from);
        let mut state = self.state();
        let is_exempt = self.loopback_exempt && from.to_canonical().is_loopback();
        let theirs = state.per_address.get(&address).copied().unwrap_or(0);
        if theirs >= self.per_address && !is_exempt {
            return Err(Refused::Address);
        }
        if state.entries.len() >= self.connections && !self.evict(&mut state, now) {
            return Err(Refused::Total);
        }
        *state.per_address.entry(address).or_default() += 1;
        let number = state.next;
        state.next += 1;
        let entry = Entry { socket: socket.clone(), address, since: now, holds: Vec::new() };
        state.entries.insert((Phase::Request, number), entry);
        Ok(Place { places: self.clone(), phase: Phase::Request, number })
    }

    /// Somebody who can be spared goes.
    pub fn make_room(&self, now: Instant) {
        self.evict(&mut self.state(), now);
    }

    /// Cuts all connections that are in one of these phases.
    pub fn close(&self, phases: &[Phase]) {
        let mut state = self.state();
        for &phase in phases {
            while let Some(oldest) = state.oldest(phase) {
                state.remove((phase, oldest), true);
            }
        }
    }

    /// First those who have their reply and only have to close; then those who have asked for nothing yet; then those who
    /// have been reading for a long time. Of each the oldest.
    fn evict(&self, state: &mut State, now: Instant) -> bool {
        let spare = |state: &State, phase| state.oldest(phase).map(|oldest| (phase, oldest));
        let is_old = |state: &State, key: &_| {
            state.entries.get(key).is_some_and(|entry| now.saturating_duration_since(entry.since) > SERVED_AT_LEAST)
        };
        let spared = spare(state, Phase::Drain)
            .or_else(|| spare(state, Phase::Request))
            .or_else(|| spare(state, Phase::Reply).filter(|key| is_old(state, key)));
        let Some(key) = spared else { return false };
        self.evicted.fetch_add(1, Relaxed);
        state.remove(key, true);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn oldest(&self, phase: Phase) -> Option<u64> {
        self.entries.range((phase, 0)..=(phase, u64::MAX)).next().map(|((_, number), _)| *number)
    }

    /// Forgets a connection, and cuts it if it has not ended by itself: whoever serves it will notice.
    fn remove(&mut self, key: (Phase, u64), cut: bool) {
        let Some(entry) = self.entries.remove(&key) else { return };
        self.release(&entry.holds);
        if let Some(count) = self.per_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&entry.address);
            }
        }
        if cut {
            // It may be closed already, by the other side.
            let _ = entry.socket.shutdown(Shutdown::Both);
        }
    }

    fn release(&mut self, pieces: &[(usize, usize)]) {
        for (piece, length) in pieces {
            if let Some((holders, _)) = self.held.get_mut(piece) {
                *holders -= 1;
                if *holders == 0 {
                    self.held.remove(piece);
                    self.held_bytes -= length;
                }
            }
        }
    }
}

impl Place {
    /// The connection is in another phase now.
    pub fn enter(&mut self, phase: Phase, since: Instant) {
        if phase == self.phase {
            return;
        }
        let mut state = self.places.state();
        if let Some(mut entry) = state.entries.remove(&(self.phase, self.number)) {
            state.release(&std::mem::take(&mut entry.holds));
            entry.since = since;
            state.entries.insert((phase, self.number), entry);
        }
        self.phase = phase;
    }

    /// The reader is slow, so this stays in memory for it. If that is too much, the slowest readers have to go.
    pub fn hold(&mut self, reply: &Reply) {
        let mut state = self.places.state();
        let state = &mut *state;
        let Some(entry) = state.entries.get_mut(&(self.phase, self.number)) else { return };
        if !entry.holds.is_empty() {
            return;
        }
        let pieces = reply.pieces();
        for &(piece, length) in &pieces {
            let (holders, _) = state.held.entry(piece).or_insert_with(|| {
                state.held_bytes += length;
                (0, length)
            });
            *holders += 1;
        }
        entry.holds = pieces;
        while state.held_bytes > self.places.held_bytes {
            match state.oldest(Phase::Reply) {
                Some(oldest) if oldest != self.number => {
                    self.places.evicted.fetch_add(1, Relaxed);
                    state.remove((Phase::Reply, oldest), true);
                }
                _ => break,
            }
        }
    }

    /// Whether it is still this connection's place: it is not if it had to go.
    pub fn is_there(&self) -> bool {
        self.places.state().entries.contains_key(&(self.phase, self.number))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.state().remove((self.phase, self.number), false);
    }
}

/// Who is charged for a connection: one customer has an IPv4 address or an IPv6 /64.
fn charged(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests;
