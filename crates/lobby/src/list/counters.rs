//! Counters of the list service.

use super::{exchange::Phase, open_connection::OpenConnections};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Counters of the list service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListStats {
    /// Number of open connections.
    pub open: usize,
    /// Maximum number of open connections.
    pub limit: usize,
    /// Connections accepted.
    pub accepted: u64,
    /// Complete requests received.
    pub requests: u64,
    /// Replies sent completely.
    pub replies: u64,
    /// Bytes of replies sent.
    pub bytes: u64,
    /// Connections refused because their address had too many.
    pub refused_address: u64,
    /// Connections closed to make room for others.
    pub evicted: u64,
    /// Requests that are not list requests.
    pub wrong_protocol: u64,
    /// Connections closed by the client before its request or its reply was complete.
    pub broken: u64,
    /// Connections closed because the request took too long.
    pub request_timeouts: u64,
    /// Connections closed because the client took too long to read the reply.
    pub reply_timeouts: u64,
    /// Histogram of the time from a request until the last byte of its reply is passed to the system: upper bound of each
    /// bucket, and number of replies in it. The buckets are not cumulative.
    pub latency: Vec<(Duration, u64)>,
    /// Sum of these times.
    pub latency_sum: Duration,
}

/// Upper bounds of the histogram's buckets, in microseconds. A last bucket has no bound.
const BOUNDS: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000, 10_000_000, 60_000_000];

#[derive(Debug, Default)]
pub(super) struct Counters {
    accepted: AtomicU64,
    requests: AtomicU64,
    replies: AtomicU64,
    bytes: AtomicU64,
    refused_address: AtomicU64,
    wrong_protocol: AtomicU64,
    broken: AtomicU64,
    request_timeouts: AtomicU64,
    reply_timeouts: AtomicU64,
    latency: [AtomicU64; BOUNDS.len() + 1],
    latency_sum: AtomicU64,
}

fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Counters {
    pub fn accepted(&self) {
        increment(&self.accepted);
    }

    pub fn requested(&self) {
        increment(&self.requests);
    }

    pub fn sent(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn replied(&self, after: Duration) {
        increment(&self.replies);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        increment(&self.latency[BOUNDS.partition_point(|&bound| bound < micros)]);
        self.latency_sum.fetch_add(micros, Relaxed);
    }

    pub fn refused(&self) {
        increment(&self.refused_address);
    }

    pub fn wrong_protocol(&self) {
        increment(&self.wrong_protocol);
    }

    pub fn broken(&self) {
        increment(&self.broken);
    }

    pub fn timed_out(&self, phase: Phase) {
        match phase {
            Phase::Request => increment(&self.request_timeouts),
            Phase::Reply => increment(&self.reply_timeouts),
            // The client has its reply, so nothing failed.
            Phase::Drain => {}
        }
    }

    pub fn stats(&self, connections: &OpenConnections) -> ListStats {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let bounds = BOUNDS.iter().map(|&bound| Duration::from_micros(bound)).chain([Duration::MAX]);
        ListStats {
            open: connections.len(),
            limit: connections.limit(),
            accepted: load(&self.accepted),
            requests: load(&self.requests),
            replies: load(&self.replies),
            bytes: load(&self.bytes),
            refused_address: load(&self.refused_address),
            evicted: connections.evicted(),
            wrong_protocol: load(&self.wrong_protocol),
            broken: load(&self.broken),
            request_timeouts: load(&self.request_timeouts),
            reply_timeouts: load(&self.reply_timeouts),
            latency: bounds.zip(self.latency.iter().map(load)).collect(),
            latency_sum: Duration::from_micros(load(&self.latency_sum)),
        }
    }
}
