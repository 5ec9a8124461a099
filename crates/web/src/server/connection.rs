//! The state of a connection that its task shares with the limits it counts towards.

use rallypoint_limit::{Activity, Evictable, Phase};
use std::{
    sync::atomic::{
        AtomicBool, AtomicU8, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// A connection: its phase, its last progress, and the means to close it from another task. It is an extension of every
/// request.
#[derive(Debug)]
pub(crate) struct Connection {
    opened: Instant,
    phase: AtomicU8,
    /// Last change of the phase, or last write that the system accepted, in microseconds after `opened`.
    progress: AtomicU64,
    /// Number of times that the system has accepted all bytes.
    flushes: AtomicU64,
    is_evicted: AtomicBool,
    evicted: Notify,
}

impl Connection {
    pub fn new(now: Instant) -> Self {
        Self {
            opened: now,
            phase: AtomicU8::new(Phase::New as u8),
            progress: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }

    /// Records that a request has arrived.
    pub fn start_response(&self) {
        self.set_phase(Phase::Busy);
    }

    /// Records that the response is complete in memory, though not yet passed to the system.
    pub fn end_response(&self) {
        self.change_phase(Phase::Busy, Phase::Ending);
    }

    /// Records that the system has accepted all bytes so far.
    pub fn flushed(&self) {
        self.flushes.fetch_add(1, Relaxed);
        self.change_phase(Phase::Ending, Phase::Idle);
    }

    /// Number of times that the system has accepted all bytes: what was given to the connection before the number changed is no
    /// longer in memory.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// Records that the system has accepted some bytes.
    pub fn record_progress(&self, now: Instant) {
        self.progress.store(now.saturating_duration_since(self.opened).as_micros() as u64, Relaxed);
    }

    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Acquire)
    }

    /// Waits until the connection is evicted.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.record_progress(Instant::now());
    }

    fn change_phase(&self, from: Phase, to: Phase) {
        if self.phase.compare_exchange(from as u8, to as u8, Relaxed, Relaxed).is_ok() {
            self.record_progress(Instant::now());
        }
    }
}

impl Evictable for Connection {
    fn activity(&self) -> Activity {
        let phase = self.phase.load(Relaxed);
        let known = [Phase::New, Phase::Idle, Phase::Ending].into_iter().find(|known| *known as u8 == phase);
        let progress_at = self.opened + Duration::from_micros(self.progress.load(Relaxed));
        Activity { phase: known.unwrap_or(Phase::Busy), progress_at }
    }

    /// Closes the connection: its task ends, and what the client has not received is discarded.
    fn evict(&self) {
        if !self.is_evicted.swap(true, AcqRel) {
            self.evicted.notify_one();
        }
    }
}
