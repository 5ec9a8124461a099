//! A probe in flight.

use super::{config::MAX_ATTEMPTS, refusal::Refusals};
use crate::{
    Probe, RawReply, RoundTrip, RttMethod,
    exchange::{Attempt, Context, Received, Requests},
    protocols::{self, State},
    secret::Secrets,
};
use rallypoint_wire::DecodeError;
use slab::Slab;
use std::time::{Duration, Instant};

/// State of a probe from its first query to its result.
#[derive(Debug)]
pub(super) struct ActiveProbe {
    pub probe: Probe,
    /// Unique number of the probe; never reused.
    pub serial: u64,
    /// Stamp of the next retry timer; 0 if none is set.
    pub retry_stamp: u64,
    /// Time of the first query.
    pub started: Instant,
    /// Time of each query after the first, in microseconds since `started`.
    sent_at: [u32; MAX_ATTEMPTS],
    /// Number of attempts made.
    pub attempts: u8,
    /// Whether the next datagram begins a new attempt.
    pub is_attempt_due: bool,
    /// Requests to send.
    pub pending: Requests,
    /// Requests that were sent at once because of what had arrived, in this attempt.
    pub follow_ups: u8,
    /// The next probe in flight of the same address.
    pub next_of_peer: Option<ProbeIndex>,
    /// Number of datagrams that could not be parsed.
    pub malformed: u16,
    pub refusals: Refusals,
    pub last_error: Option<DecodeError>,
    pub round_trip: Option<RoundTrip>,
    /// Allocated when the first datagram arrives.
    pub partial: Option<Box<PartialReply>>,
}

/// The parts of a reply that have been received.
#[derive(Debug)]
pub(super) struct PartialReply {
    pub state: State,
    pub raw: RawReply,
}

impl ActiveProbe {
    pub fn new(probe: Probe, serial: u64, now: Instant, next_of_peer: Option<ProbeIndex>) -> Self {
        Self {
            probe,
            serial,
            retry_stamp: 0,
            started: now,
            sent_at: [0; MAX_ATTEMPTS],
            attempts: 0,
            is_attempt_due: true,
            pending: Requests::NONE,
            follow_ups: 0,
            next_of_peer,
            malformed: 0,
            refusals: Refusals::default(),
            last_error: None,
            round_trip: None,
            partial: None,
        }
    }

    /// The partial reply, allocated if necessary.
    pub fn partial(&mut self) -> &mut PartialReply {
        let protocol = self.probe.query.protocol;
        self.partial
            .get_or_insert_with(|| Box::new(PartialReply { state: State::new(protocol), raw: RawReply::default() }))
    }

    /// Begins another attempt: determines what to request, and notes the time.
    pub fn begin_attempt(&mut self, now: Instant) {
        let query = self.probe.query;
        self.pending = match &self.partial {
            Some(partial) => partial.state.attempt(query.detail),
            None => protocols::first_attempt(query.protocol, query.detail),
        };
        if self.attempts > 0 && !self.has_answered() {
            self.pending = self.pending.with(protocols::fallback(query.protocol));
        }
        self.follow_ups = 0;
        let offset = now.saturating_duration_since(self.started).as_micros();
        if let Some(sent_at) = self.sent_at.get_mut(usize::from(self.attempts)) {
            *sent_at = u32::try_from(offset).unwrap_or(u32::MAX);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.is_attempt_due = false;
    }

    /// Time since an attempt.
    pub fn since_attempt(&self, Attempt(attempt): Attempt, now: Instant) -> Duration {
        let offset = self.sent_at.get(usize::from(attempt)).copied().unwrap_or(0);
        now.saturating_duration_since(self.started + Duration::from_micros(offset.into()))
    }

    /// Measures the round-trip time when a part of the reply arrives: by the first part, or the first that names its attempt.
    pub fn measure_round_trip(&mut self, now: Instant, attempt: Option<Attempt>) {
        let (time, method) = match (attempt, self.round_trip) {
            (_, Some(RoundTrip { method: RttMethod::Echo, .. })) | (None, Some(_)) => return,
            (Some(attempt), _) => (self.since_attempt(attempt, now), RttMethod::Echo),
            (None, None) => {
                let method = if self.attempts > 1 { RttMethod::UpperBound } else { RttMethod::FirstReply };
                (now.saturating_duration_since(self.started), method)
            }
        };
        self.round_trip = Some(RoundTrip { time, method });
    }

    /// Whether the probe is in the queue of probes with something to send.
    pub fn is_ready(&self) -> bool {
        self.is_attempt_due || !self.pending.is_empty()
    }

    /// Appends the datagram for a request.
    pub fn emit(&mut self, secrets: &Secrets, out: &mut Vec<u8>) {
        let request = self.pending.pop();
        let serial = self.serial;
        let attempt = self.attempts.saturating_sub(1);
        let token = || secrets.token(serial, attempt);
        match &mut self.partial {
            Some(partial) => partial.state.emit(request, token, out),
            None => protocols::emit_first(self.probe.query.protocol, request, token, out),
        }
    }

    /// Passes a datagram to the protocol.
    pub fn handle(&mut self, secrets: &Secrets, datagram: &[u8]) -> Result<Received, DecodeError> {
        let context = Context { secrets, serial: self.serial, attempts: self.attempts };
        let detail = self.probe.query.detail;
        self.partial().state.handle(datagram, detail, &context)
    }

    /// Whether the server has sent anything that is part of a reply.
    pub fn has_answered(&self) -> bool {
        self.round_trip.is_some()
    }

    pub fn note_malformed(&mut self, error: DecodeError) {
        self.malformed = self.malformed.saturating_add(1);
        self.last_error = Some(error);
    }

    /// Memory used by datagrams, in bytes.
    pub fn stored_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.raw.size())
    }
}

/// Index of a probe in flight. Reused after the probe is removed; [`ActiveProbe::serial`] is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeIndex(u32);

/// The probes in flight.
#[derive(Debug, Default)]
pub(super) struct ProbeTable(Slab<ActiveProbe>);

impl ProbeTable {
    pub fn insert(&mut self, probe: ActiveProbe) -> ProbeIndex {
        // Fits: there are at most 2^20 probes in flight.
        ProbeIndex(self.0.insert(probe) as u32)
    }

    pub fn remove(&mut self, index: ProbeIndex) -> Option<ActiveProbe> {
        self.0.try_remove(index.0 as usize)
    }

    pub fn get(&self, index: ProbeIndex) -> Option<&ActiveProbe> {
        self.0.get(index.0 as usize)
    }

    pub fn get_mut(&mut self, index: ProbeIndex) -> Option<&mut ActiveProbe> {
        self.0.get_mut(index.0 as usize)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The probes of one address, from the first one on.
    pub fn of_peer(&self, first: Option<ProbeIndex>) -> impl Iterator<Item = (ProbeIndex, &ActiveProbe)> {
        let find = |index: ProbeIndex| Some((index, self.get(index)?));
        std::iter::successors(first.and_then(find), move |(_, probe)| probe.next_of_peer.and_then(find))
    }
}
