//! A probe in flight.

use super::{config::MAX_ATTEMPTS, refusal::Refusals};
use crate::{
    Probe, RawReply, RoundTrip, RttMethod,
    protocol::{Progress, Requests},
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
    pub progress: Progress,
    pub raw: RawReply,
}

impl ActiveProbe {
    pub fn new(probe: Probe, serial: u64, now: Instant) -> Self {
        Self {
            probe,
            serial,
            retry_stamp: 0,
            started: now,
            sent_at: [0; MAX_ATTEMPTS],
            attempts: 0,
            is_attempt_due: true,
            pending: Requests::FIRST,
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
        self.partial.get_or_insert_with(|| {
            Box::new(PartialReply { progress: protocol.new_progress(), raw: RawReply::default() })
        })
    }

    /// Begins another attempt: determines what to request, and notes the time.
    pub fn begin_attempt(&mut self, now: Instant) {
        let outstanding = self.outstanding();
        // The number of players may have changed: a request for the players is accompanied by one for their number.
        self.pending = Requests { info: outstanding.info || outstanding.players, ..outstanding };
        let offset = now.saturating_duration_since(self.started).as_micros();
        if let Some(sent_at) = self.sent_at.get_mut(usize::from(self.attempts)) {
            *sent_at = u32::try_from(offset).unwrap_or(u32::MAX);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.is_attempt_due = false;
    }

    /// Time since an attempt.
    pub fn since_attempt(&self, attempt: u8, now: Instant) -> Duration {
        let offset = self.sent_at.get(usize::from(attempt)).copied().unwrap_or(0);
        now.saturating_duration_since(self.started + Duration::from_micros(offset.into()))
    }

    /// Measures the round-trip time when the first datagram arrives that does not identify the query it answers.
    pub fn measure_first_reply(&mut self, now: Instant) {
        let method = if self.attempts > 1 { RttMethod::UpperBound } else { RttMethod::FirstReply };
        let time = now.saturating_duration_since(self.started);
        self.round_trip.get_or_insert(RoundTrip { time, method });
    }

    /// The parts that still have to be requested.
    pub fn outstanding(&self) -> Requests {
        let detail = self.probe.query.detail;
        self.partial.as_ref().map_or(Requests::FIRST, |partial| partial.progress.outstanding(detail))
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
}
