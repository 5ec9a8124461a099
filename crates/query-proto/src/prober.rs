//! Probing many servers at once.

mod active;
mod config;
mod pacer;
mod refusal;
mod stats;
mod timers;

pub use config::{ProberConfig, ProberConfigError};
pub use stats::ProberStats;

use crate::{
    Probe, ProbeOutcome, ProbeResult, Protocol, QueryReply, QueueError, RawReply,
    exchange::{Accepted, Received, Requests},
    probe::Peer,
    protocols,
    secret::{Secrets, TableKey},
};
use active::{ActiveProbe, ProbeIndex, ProbeTable};
use pacer::Pacer;
use rallypoint_machine::{Machine, Transmit};
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    fmt,
    net::SocketAddr,
    time::Instant,
};
use timers::{Stamped, Timers};

/// Queries thousands of servers, and emits the result of each as soon as it is known.
///
/// * In: [`enqueue`](Self::enqueue) adds a probe at any time, [`cancel`](Self::cancel) ends one;
///   [`handle_refused`](Self::handle_refused), and `handle_datagram` and `handle_timeout` of [`Machine`].
/// * Out: `poll_transmit`, then `poll_event` (one [`ProbeResult`] per probe, in order of completion), then `poll_timeout`.
/// * Getters: [`is_idle`](Self::is_idle), [`queued`](Self::queued), [`in_flight`](Self::in_flight), [`stats`](Self::stats).
///
/// # Guarantees
///
/// * Datagrams are sent evenly, at [`ProberConfig::packets_per_second`]; never an empty one (B10).
/// * Only datagrams from the probed address count, and for protocols with a token (the echo of document 002) only with that of
///   a query that was sent (B7). In others (document 003) an attacker who can forge the address of a server can forge its reply.
/// * Every probe has a deadline, counted from its first query; what arrived by then is the result, with a list of the missing
///   parts (S9, S10). A server that answered in part is queried again for the rest.
/// * The cost of a datagram does not depend on the number of probes. Memory is bounded: a queued probe takes 48 bytes, and
///   data from servers is limited in total.
/// * Results that are not taken are kept, but then no further probes are started.
///
/// Probes of the same address with different protocols run at the same time; with the same protocol, one after the other.
///
/// # Example
///
/// ```
/// use rallypoint_machine::Machine;
/// use rallypoint_query_proto::{Probe, ProbeOutcome, Prober, ProberConfig, Protocol};
/// use std::time::{Duration, Instant};
///
/// let config = ProberConfig { deadline: Duration::from_secs(1), retries: 0, ..ProberConfig::default() };
/// let mut prober = Prober::new(config, [7; 32])?;
/// prober.enqueue(Probe::new("192.0.2.1:6969".parse()?, Protocol::Bloodmasters.info()))?;
///
/// let now = Instant::now();
/// let mut datagram = Vec::new();
/// let transmit = prober.poll_transmit(now, &mut datagram).expect("the query");
/// assert_eq!(transmit.to.port(), 6969);
/// // No reply arrives within a second.
/// prober.handle_timeout(now + Duration::from_secs(1));
/// assert_eq!(prober.poll_event().unwrap().outcome, ProbeOutcome::TimedOut);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prober {
    config: ProberConfig,
    secrets: Secrets,
    queue: VecDeque<Probe>,
    /// Probes that wait for another probe of the same address and protocol to end.
    blocked: HashMap<(Peer, Protocol), VecDeque<Probe>, TableKey>,
    blocked_count: usize,
    probes: ProbeTable,
    /// The first probe in flight of each address: the others are linked to it.
    by_peer: HashMap<Peer, ProbeIndex, TableKey>,
    /// Probes with something to send other than their first query.
    ready: VecDeque<Stamped>,
    timers: Timers,
    pacer: Pacer,
    /// Source of serials and stamps: never 0, never repeated.
    last_number: u64,
    events: VecDeque<ProbeResult>,
    /// Bytes received from servers that are stored in probes and in events.
    stored_bytes: usize,
    stats: ProberStats,
}

/// Maximum number of bytes of replies stored until they are complete and taken: ten times what ten thousand well-behaved
/// servers need at a time.
const MAX_STORED_BYTES: usize = 16 << 20;

/// Maximum number of bytes of one reply: more than any server needs.
const MAX_PROBE_BYTES: usize = 1 << 20;

impl Prober {
    /// Length of the longest datagram of interest, in bytes: the size of the receive buffer.
    pub const MAX_DATAGRAM: usize = protocols::MAX_DATAGRAM;

    /// A prober without any probes. The seed must not be guessable.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn new(config: ProberConfig, seed: [u8; 32]) -> Result<Self, ProberConfigError> {
        config.validate()?;
        let secrets = Secrets::new(seed);
        Ok(Self {
            queue: VecDeque::new(),
            blocked: HashMap::with_hasher(secrets.tables),
            blocked_count: 0,
            probes: ProbeTable::default(),
            by_peer: HashMap::with_hasher(secrets.tables),
            ready: VecDeque::new(),
            timers: Timers::new(config.waits().chain([config.deadline])),
            pacer: Pacer::new(config.packets_per_second),
            last_number: 0,
            events: VecDeque::new(),
            stored_bytes: 0,
            stats: ProberStats::default(),
            secrets,
            config,
        })
    }

    /// Queues a probe. It starts as soon as the rate and the number of probes in flight allow.
    ///
    /// # Errors
    /// If no reply can come from the address, or too many probes are queued.
    pub fn enqueue(&mut self, probe: Probe) -> Result<(), QueueError> {
        if !probe.has_usable_address() {
            return Err(QueueError::UnusableAddress(probe.address));
        }
        if self.queued() >= self.config.max_targets {
            return Err(QueueError::QueueFull(self.config.max_targets));
        }
        self.queue.push_back(probe);
        Ok(())
    }

    /// Ends a probe in flight without a result. False if it is not in flight, for example because it is still queued.
    pub fn cancel(&mut self, probe: &Probe) -> bool {
        // A probe in flight at this address with this protocol may be another one, with another tag.
        let is_it = |index: &ProbeIndex| self.probes.get(*index).is_some_and(|active| active.probe == *probe);
        let index = self.probes_at(Peer::of(probe.address)).find(is_it);
        index.and_then(|index| self.remove(index)).is_some()
    }

    /// Whether all probes have ended and all results have been taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queued() == 0 && self.in_flight() == 0 && self.events.is_empty()
    }

    /// Number of probes that have not been started.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len() + self.blocked_count
    }

    /// Number of probes that have been started and have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.probes.len()
    }

    /// Counters since creation.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        self.stats
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ProberConfig {
        &self.config
    }
}

impl Machine for Prober {
    type Event = ProbeResult;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.received += 1;
        let mut rejection = None;
        // Nearly always one probe. Of several, with different protocols, one accepts the datagram.
        let mut next = self.by_peer.get(&Peer::of(from)).copied();
        while let Some(index) = next {
            next = self.probes.get(index).and_then(|probe| probe.next_of_peer);
            match self.receive(now, index, bytes) {
                Ok(()) => return,
                Err(why) => rejection = rejection.max(Some(why)),
            }
        }
        *match rejection {
            Some(Rejection::OverMemory) => &mut self.stats.over_memory,
            Some(Rejection::Redundant) => &mut self.stats.redundant,
            Some(Rejection::WrongToken) => &mut self.stats.wrong_echo,
            Some(Rejection::Malformed) => &mut self.stats.malformed,
            Some(Rejection::Foreign) | None => &mut self.stats.unsolicited,
        } += 1;
    }

    fn handle_timeout(&mut self, now: Instant) {
        for kind in 0..self.timers.kinds() {
            while let Some(Stamped { probe: index, stamp }) = self.timers.pop_expired(kind, now) {
                match self.probes.get(index) {
                    Some(probe) if probe.serial == stamp => self.finish(index),
                    Some(probe) if probe.retry_stamp == stamp => self.retry(index),
                    _ => {}
                }
            }
        }
        self.timers.remove_stale(|probe| is_live(&self.probes, probe));
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if !self.pacer.is_ready(now) {
            return None;
        }
        let index = self.next_ready().or_else(|| self.start_next(now))?;
        let start = out.len();
        let to = self.send(now, index, out)?;
        let len = out.len() - start;
        self.pacer.note_sent(now);
        self.stats.sent += 1;
        self.stats.sent_bytes += len as u64;
        Some(Transmit::one(to, len))
    }

    fn poll_event(&mut self) -> Option<ProbeResult> {
        let result = self.events.pop_front()?;
        self.stored_bytes = self.stored_bytes.saturating_sub(result.reply().map_or(0, |reply| reply.raw.size()));
        Some(result)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let has_datagram = !self.ready.is_empty() || self.can_start();
        // Before the first datagram there is nothing to wait for, and `poll_transmit` is called first: no time to name.
        let send = has_datagram.then(|| self.pacer.wake_at()).flatten();
        [send, self.timers.next_expiry()].into_iter().flatten().min()
    }

    fn max_datagram(&self) -> usize {
        Self::MAX_DATAGRAM
    }
}

/// Sending queries.
impl Prober {
    /// A probe with something to send other than its first query.
    fn next_ready(&mut self) -> Option<ProbeIndex> {
        while let Some(ready) = self.ready.pop_front() {
            if is_live(&self.probes, ready) {
                return Some(ready.probe);
            }
        }
        None
    }

    fn can_start(&self) -> bool {
        !self.queue.is_empty() && self.probes.len() + self.events.len() < self.config.max_in_flight
    }

    /// Starts the next queued probe.
    fn start_next(&mut self, now: Instant) -> Option<ProbeIndex> {
        while self.can_start() {
            let probe = self.queue.pop_front()?;
            let peer = Peer::of(probe.address);
            let protocol = probe.query.protocol;
            let first = self.by_peer.entry(peer);
            let next_of_peer = match &first {
                Entry::Occupied(first) => Some(*first.get()),
                Entry::Vacant(_) => None,
            };
            if self.probes.of_peer(next_of_peer).any(|(_, active)| active.probe.query.protocol == protocol) {
                self.blocked.entry((peer, protocol)).or_default().push_back(probe);
                self.blocked_count += 1;
                continue;
            }
            self.last_number += 1;
            let serial = self.last_number;
            let index = self.probes.insert(ActiveProbe::new(probe, serial, now, next_of_peer));
            first.insert_entry(index);
            let live = self.probes.len();
            let deadline = self.timers.kinds() - 1;
            let stamped = Stamped { probe: index, stamp: serial };
            self.timers.set(deadline, now, stamped, live, |probe| is_live(&self.probes, probe));
            return Some(index);
        }
        None
    }

    /// Appends the next datagram for a server.
    fn send(&mut self, now: Instant, index: ProbeIndex, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let probe = self.probes.get_mut(index)?;
        if probe.is_attempt_due {
            // Determined now rather than when the timer expired: datagrams may have arrived since.
            probe.begin_attempt(now);
        }
        let attempt = probe.attempts.saturating_sub(1);
        self.stats.retries += u64::from(attempt > 0);
        let serial = probe.serial;
        probe.emit(&self.secrets, out);
        let to = probe.probe.address;
        if !probe.pending.is_empty() {
            self.ready.push_front(Stamped { probe: index, stamp: serial });
        }
        // The last timer is the deadline.
        let retry = usize::from(attempt);
        if retry < self.timers.kinds() - 1 {
            self.last_number += 1;
            probe.retry_stamp = self.last_number;
            let stamped = Stamped { probe: index, stamp: self.last_number };
            let live = self.probes.len();
            self.timers.set(retry, now, stamped, live, |probe| is_live(&self.probes, probe));
        }
        Some(to)
    }

    fn retry(&mut self, index: ProbeIndex) {
        let Some(probe) = self.probes.get_mut(index) else { return };
        let was_ready = probe.is_ready();
        probe.is_attempt_due = true;
        if !was_ready {
            self.ready.push_back(Stamped { probe: index, stamp: probe.serial });
        }
    }

    /// Sends requests that follow from what has arrived.
    fn follow_up(&mut self, index: ProbeIndex, requests: Requests) {
        let Some(probe) = self.probes.get_mut(index) else { return };
        let limit = protocols::max_follow_ups(probe.probe.query.protocol);
        if requests.is_empty() || probe.follow_ups >= limit {
            return;
        }
        let was_ready = probe.is_ready();
        probe.follow_ups += 1;
        probe.pending = probe.pending.with(requests);
        if !was_ready {
            self.ready.push_back(Stamped { probe: index, stamp: probe.serial });
        }
    }
}

/// Receiving replies.
impl Prober {
    /// The probes in flight at an address.
    fn probes_at(&self, peer: Peer) -> impl Iterator<Item = ProbeIndex> {
        self.probes.of_peer(self.by_peer.get(&peer).copied()).map(|(index, _)| index)
    }

    /// Passes a datagram to a probe.
    fn receive(&mut self, now: Instant, index: ProbeIndex, bytes: &[u8]) -> Result<(), Rejection> {
        let Some(probe) = self.probes.get_mut(index) else { return Err(Rejection::Foreign) };
        let size = RawReply::size_of(bytes);
        if self.stored_bytes + size > MAX_STORED_BYTES || probe.stored_bytes() + size > MAX_PROBE_BYTES {
            return Err(Rejection::OverMemory);
        }
        let Accepted { attempt, next, is_transient } = match probe.handle(&self.secrets, bytes) {
            Ok(Received::Accepted(accepted)) => accepted,
            Ok(Received::Redundant) => return Err(Rejection::Redundant),
            Ok(Received::WrongToken) => return Err(Rejection::WrongToken),
            Ok(Received::Foreign) => return Err(Rejection::Foreign),
            Err(error) => {
                probe.note_malformed(error);
                return Err(Rejection::Malformed);
            }
        };
        probe.measure_round_trip(now, attempt);
        let detail = probe.probe.query.detail;
        let partial = probe.partial();
        if !is_transient {
            partial.raw.push(bytes);
            self.stored_bytes += size;
        }
        if partial.state.outstanding(detail).is_empty() {
            self.finish(index);
        } else {
            self.follow_up(index, next);
        }
        Ok(())
    }

    /// Ends a probe: its reply is complete, or its time is up.
    fn finish(&mut self, index: ProbeIndex) {
        let Some(probe) = self.remove(index) else { return };
        let result = result(probe);
        let count = match &result.outcome {
            ProbeOutcome::Answered(reply) if reply.is_complete() => &mut self.stats.complete,
            ProbeOutcome::Answered(_) => &mut self.stats.partial,
            ProbeOutcome::Malformed(_) => &mut self.stats.unreadable,
            ProbeOutcome::TimedOut => &mut self.stats.timed_out,
            ProbeOutcome::Refused => &mut self.stats.refused,
        };
        *count += 1;
        self.stored_bytes += result.reply().map_or(0, |reply| reply.raw.size());
        self.events.push_back(result);
    }

    /// Takes a probe that was removed out of the list of its address.
    fn unlink(&mut self, peer: Peer, index: ProbeIndex, next: Option<ProbeIndex>) {
        match (self.by_peer.get_mut(&peer), next) {
            (Some(first), Some(next)) if *first == index => *first = next,
            (Some(first), None) if *first == index => drop(self.by_peer.remove(&peer)),
            (Some(first), next) => {
                let mut at = Some(*first);
                while let Some(probe) = at.and_then(|at| self.probes.get_mut(at)) {
                    if probe.next_of_peer == Some(index) {
                        probe.next_of_peer = next;
                        return;
                    }
                    at = probe.next_of_peer;
                }
            }
            (None, _) => {}
        }
    }

    /// Removes a probe, and queues the next one that was blocked by it.
    fn remove(&mut self, index: ProbeIndex) -> Option<ActiveProbe> {
        let probe = self.probes.remove(index)?;
        let peer = Peer::of(probe.probe.address);
        let protocol = probe.probe.query.protocol;
        self.unlink(peer, index, probe.next_of_peer);
        if let Some(blocked) = self.blocked.get_mut(&(peer, protocol)) {
            self.blocked_count -= blocked.len();
            self.queue.extend(blocked.pop_front());
            self.blocked_count += blocked.len();
            if blocked.is_empty() {
                self.blocked.remove(&(peer, protocol));
            }
        }
        self.stored_bytes = self.stored_bytes.saturating_sub(probe.stored_bytes());
        // Otherwise `poll_timeout` would return times of probes that have ended.
        self.timers.remove_stale(|probe| is_live(&self.probes, probe));
        while self.ready.pop_front_if(|ready| !is_live(&self.probes, *ready)).is_some() {}
        Some(probe)
    }
}

/// Why a datagram is of no use to a probe. Of several probes, the last reason in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rejection {
    Foreign,
    Malformed,
    WrongToken,
    Redundant,
    OverMemory,
}

/// Whether a timer or an entry of the ready queue is still valid: it is of the probe as a whole, or of its next retry.
fn is_live(probes: &ProbeTable, stamped: Stamped) -> bool {
    let stamp = stamped.stamp;
    probes.get(stamped.probe).is_some_and(|probe| probe.serial == stamp || probe.retry_stamp == stamp)
}

fn result(mut probe: ActiveProbe) -> ProbeResult {
    let outcome = match (probe.partial.take(), probe.round_trip, probe.last_error) {
        (Some(partial), Some(round_trip), _) => {
            let (info, missing) = partial.state.finish(probe.probe.query.detail, &partial.raw);
            ProbeOutcome::Answered(Box::new(QueryReply { info, missing, round_trip, raw: partial.raw }))
        }
        (_, _, Some(error)) => ProbeOutcome::Malformed(error),
        _ if probe.refusals.is_any() => ProbeOutcome::Refused,
        _ => ProbeOutcome::TimedOut,
    };
    ProbeResult { probe: probe.probe, outcome, retries: probe.attempts.saturating_sub(1), malformed: probe.malformed }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober")
            .field("queued", &self.queued())
            .field("in_flight", &self.in_flight())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
