//! Who is connected, and who has to go when there are too many.
//!
//! A place is taken for as long as its client likes, up to a minute or two, and whoever has a network of addresses can take
//! all of them. So there is always a place for one more: somebody else loses it, of the network that has most.

use super::{ListLimits, end_by_reset, exchange::Phase, reply::Reply};
use rallypoint_limit::{Lan, Net};
use socket2::Socket;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    hash::Hash,
    net::{IpAddr, Shutdown},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Most clients ask with their first bytes, a round trip after they have connected. Who has not asked after this goes before
/// anybody who has.
const ASKS_SOON: Duration = Duration::from_secs(1);

/// To find who has to go, all connections are looked at. That is done for so many at once, unless there are few places.
const VICTIMS: usize = 64;

/// For so long it is of use to know who has to go next.
const VICTIMS_KNOWN: Duration = Duration::from_secs(1);

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

/// Where a connection is among the others: its phase, and how many came before it.
type Key = (Phase, u64);

#[derive(Debug, Default)]
struct State {
    /// By phase and age.
    entries: BTreeMap<Key, Entry>,
    next: u64,
    per_address: HashMap<Lan, usize>,
    per_network: HashMap<Net, usize>,
    /// Who has to go next, and when that was found out; the next one last.
    victims: Vec<(Key, Instant)>,
    victims_of: Option<Instant>,
    /// What slow readers keep in memory: by its address, how many of them keep it, and its length.
    held: HashMap<usize, (usize, usize)>,
    held_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    socket: Arc<Socket>,
    /// Who is charged for it.
    address: Lan,
    network: Net,
    /// When it last got on.
    moved: Instant,
    holds: Vec<(usize, usize)>,
}

/// A connection was refused: there are too many from its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

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

    /// How many there can be.
    pub fn most(&self) -> usize {
        self.connections
    }

    /// How many had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// A place for a new connection. If all are taken, somebody who can be spared goes.
    pub fn admit(self: &Arc<Self>, socket: &Arc<Socket>, from: IpAddr, now: Instant) -> Result<Place, Refused> {
        let address = Lan::of(from);
        let network = Net::of(from);
        let mut state = self.state();
        let is_exempt = self.loopback_exempt && from.to_canonical().is_loopback();
        let theirs = state.per_address.get(&address).copied().unwrap_or(0);
        if theirs >= self.per_address && !is_exempt {
            return Err(Refused);
        }
        if state.entries.len() >= self.connections {
            self.evict(&mut state, now);
        }
        *state.per_address.entry(address).or_default() += 1;
        *state.per_network.entry(network).or_default() += 1;
        let number = state.next;
        state.next += 1;
        let entry = Entry { socket: socket.clone(), address, network, moved: now, holds: Vec::new() };
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
                state.remove(oldest, true);
            }
        }
    }

    fn evict(&self, state: &mut State, now: Instant) {
        if state.victims_of.is_none_or(|at| now.saturating_duration_since(at) > VICTIMS_KNOWN) {
            state.victims.clear();
        }
        loop {
            if state.victims.is_empty() {
                state.victims = state.worst((self.connections / VICTIMS).clamp(1, VICTIMS), now, |_| true);
                state.victims_of = Some(now);
            }
            let Some((key, moved)) = state.victims.pop() else { return };
            // It may have got on since.
            if state.entries.get(&key).is_some_and(|entry| entry.moved == moved) {
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
    fn oldest(&self, phase: Phase) -> Option<Key> {
        self.entries.range((phase, 0)..=(phase, u64::MAX)).next().map(|(key, _)| *key)
    }

    /// The connections that can be spared most easily, and when they last got on; the very first of them last.
    ///
    /// First those who have their reply and only have to close; then those who should have asked by now. The others are
    /// needed, but not all by the same network: of the one that has most goes who has asked for nothing, or else who has
    /// taken nothing of its reply for longest.
    fn worst(&self, count: usize, now: Instant, may_go: impl Fn(&Key) -> bool) -> Vec<(Key, Instant)> {
        let rank = |(&(phase, number), entry): (&Key, &Entry)| {
            let is_late = now.saturating_duration_since(entry.moved) > ASKS_SOON;
            let theirs = self.per_network.get(&entry.network).copied().unwrap_or(0);
            let (class, theirs) = match phase {
                Phase::Drain => (0, 0),
                Phase::Request if is_late => (1, 0),
                Phase::Request | Phase::Reply => (2, theirs),
            };
            ((class, Reverse(theirs), phase, entry.moved, number), (phase, number))
        };
        let mut ranked: Vec<_> = self.entries.iter().filter(|(key, _)| may_go(key)).map(rank).collect();
        if count < ranked.len() {
            ranked.select_nth_unstable(count);
            ranked.truncate(count);
        }
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.into_iter().map(|((_, _, _, moved, _), key)| (key, moved)).collect()
    }

    /// Forgets a connection, and cuts it if it has not ended by itself: whoever serves it will notice.
    fn remove(&mut self, key: Key, cut: bool) {
        let Some(entry) = self.entries.remove(&key) else { return };
        self.release(&entry.holds);
        uncount(&mut self.per_address, &entry.address);
        uncount(&mut self.per_network, &entry.network);
        if cut {
            if key.0 == Phase::Reply {
                // Half a reply is of no use. A whole one is delivered by the system.
                end_by_reset(&entry.socket);
            }
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
    pub fn enter(&mut self, phase: Phase, now: Instant) {
        if phase == self.phase {
            return;
        }
        let mut state = self.places.state();
        if let Some(mut entry) = state.entries.remove(&(self.phase, self.number)) {
            state.release(&std::mem::take(&mut entry.holds));
            entry.moved = now;
            state.entries.insert((phase, self.number), entry);
        }
        self.phase = phase;
    }

    /// The reader has taken something, and is slow, so the rest stays in memory for it. If that is too much, other readers
    /// have to go.
    pub fn hold(&mut self, reply: &Reply, now: Instant) {
        let mut state = self.places.state();
        let state = &mut *state;
        let key = (self.phase, self.number);
        let Some(entry) = state.entries.get_mut(&key) else { return };
        entry.moved = now;
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
        if state.held_bytes <= self.places.held_bytes {
            return;
        }
        let mut readers = state.worst(usize::MAX, now, |other| other.0 == Phase::Reply && *other != key);
        while state.held_bytes > self.places.held_bytes
            && let Some((reader, _)) = readers.pop()
        {
            self.places.evicted.fetch_add(1, Relaxed);
            state.remove(reader, true);
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

/// One less of something that is counted; what reaches zero is forgotten.
fn uncount<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
