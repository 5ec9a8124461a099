//! A server that is being asked.

use super::{collected::Collected, config::MAX_ATTEMPTS, refused::Refusals};
use crate::{Measured, Question, RoundTrip, Target};
use rallypoint_wire::DecodeError;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Probe {
    pub target: Target,
    /// Which one it is; never used again.
    pub serial: u64,
    /// The stamp of its next retry. 0 is none.
    pub armed: u64,
    /// When it was asked first.
    pub began: Instant,
    /// How much later each question was asked, in microseconds.
    asked: [u32; MAX_ATTEMPTS],
    pub attempts: u8,
    /// Whether the time for another attempt has come.
    pub is_due: bool,
    /// What to send when it is its turn.
    pub to_send: ToSend,
    pub malformed: u16,
    pub refusals: Refusals,
    pub last_error: Option<DecodeError>,
    pub round_trip: Option<RoundTrip>,
    /// Only once something has come.
    pub collected: Option<Box<Collected>>,
}

/// What is to be sent to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ToSend {
    pub query: bool,
    pub players: bool,
}

impl ToSend {
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Probe {
    pub fn new(target: Target, serial: u64, now: Instant) -> Self {
        Self {
            target,
            serial,
            armed: 0,
            began: now,
            asked: [0; MAX_ATTEMPTS],
            attempts: 0,
            is_due: true,
            to_send: ToSend { query: true, players: false },
            malformed: 0,
            refusals: Refusals::default(),
            last_error: None,
            round_trip: None,
            collected: None,
        }
    }

    pub fn wants_players(&self) -> bool {
        matches!(self.target.question, Question::Session { players: true })
    }

    /// Another attempt is made now.
    pub fn ask(&mut self, now: Instant) {
        let later = now.saturating_duration_since(self.began).as_micros();
        if let Some(asked) = self.asked.get_mut(usize::from(self.attempts)) {
            *asked = u32::try_from(later).unwrap_or(u32::MAX);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.is_due = false;
    }

    /// How long ago a question was asked.
    pub fn since(&self, attempt: u8, now: Instant) -> Duration {
        let later = self.asked.get(usize::from(attempt)).copied().unwrap_or(0);
        now.saturating_duration_since(self.began + Duration::from_micros(later.into()))
    }

    /// Something came that tells nothing about which question it answers.
    pub fn measure_first(&mut self, now: Instant) {
        let measured = if self.attempts > 1 { Measured::AtMost } else { Measured::FirstAnswer };
        let time = now.saturating_duration_since(self.began);
        self.round_trip.get_or_insert(RoundTrip { time, measured });
    }

    /// What to send in a new attempt.
    pub fn what_to_ask(&self) -> ToSend {
        let lacking = self.what_is_lacking();
        // Players come and go: with the question who plays goes the question how many do.
        ToSend { query: lacking.query || lacking.players, ..lacking }
    }

    /// What has not come.
    pub fn what_is_lacking(&self) -> ToSend {
        let Some(collected) = &self.collected else {
            return ToSend { query: true, players: false };
        };
        ToSend { query: !collected.has_infos(), players: self.wants_players() && collected.lacks_players() }
    }

    pub fn note_malformed(&mut self, error: DecodeError) {
        self.malformed = self.malformed.saturating_add(1);
        self.last_error = Some(error);
    }
}

/// Probes by number. A number is used again when its probe is gone.
#[derive(Debug, Default)]
pub(super) struct Probes {
    slots: Vec<Option<Probe>>,
    free: Vec<u32>,
}

impl Probes {
    pub fn insert(&mut self, probe: Probe) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(probe);
            return slot;
        }
        self.slots.push(Some(probe));
        // There are at most 2^20 at a time.
        (self.slots.len() - 1) as u32
    }

    pub fn remove(&mut self, slot: u32) -> Option<Probe> {
        let probe = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(probe)
    }

    pub fn get(&self, slot: u32) -> Option<&Probe> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Probe> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
