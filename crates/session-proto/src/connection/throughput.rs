//! The bytes per second of a connection.

use super::Connection;
use std::time::{Duration, Instant};

/// Minimum time between two samples: over less, single datagrams would show.
const MIN_INTERVAL: Duration = Duration::from_millis(500);

/// The last sample of the counters.
#[derive(Debug)]
pub(super) struct Throughput {
    at: Instant,
    sent: u64,
    received: u64,
}

impl Throughput {
    pub fn new(now: Instant) -> Self {
        Self { at: now, sent: 0, received: 0 }
    }
}

impl Connection {
    /// Determines the bytes per second since the last sample.
    pub(crate) fn sample_throughput(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.throughput.at);
        if elapsed < MIN_INTERVAL {
            return;
        }
        let stats = &mut self.stats;
        let per_second = |bytes: u64| (bytes as f64 / elapsed.as_secs_f64()) as u64;
        stats.bytes_sent_per_second = per_second(stats.bytes_sent - self.throughput.sent);
        stats.bytes_received_per_second = per_second(stats.bytes_received - self.throughput.received);
        self.throughput = Throughput { at: now, sent: stats.bytes_sent, received: stats.bytes_received };
    }
}
