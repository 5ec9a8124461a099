//! Numbers for whoever watches the list service.

use super::{exchange::Phase, places::Places};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What the list service has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListStats {
    /// Connections that are open now.
    pub open: usize,
    /// How many there can be.
    pub limit: usize,
    /// Connections that were made.
    pub accepted: u64,
    /// Whole requests.
    pub requests: u64,
    /// Replies that were handed over as a whole.
    pub replies: u64,
    /// Bytes of replies that were handed over.
    pub bytes: u64,
    /// Connections refused because there were too many from the address.
    pub refused_address: u64,
    /// Connections cut to make room for others.
    pub evicted: u64,
    /// Requests for something else than a list.
    pub wrong_protocol: u64,
    /// Connections closed by the client before its request or reply was whole.
    pub broken: u64,
    /// Clients that took too long for their request.
    pub request_timeouts: u64,
    /// Clients that took too long for the reply.
    pub reply_timeouts: u64,
    /// Replies by how long they took from the request to the last byte handed over: so many took at most so long, and
    /// longer than the line before says.
    pub latency: Vec<(Duration, u64)>,
    /// The sum of these times.
    pub latency_sum: Duration,
}

/// The bounds of the histogram, in microseconds.
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

fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Counters {
    pub fn accepted(&self) {
        one(&self.accepted);
    }

    pub fn requested(&self) {
        one(&self.requests);
    }

    pub fn sent(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn replied(&self, after: Duration) {
        one(&self.replies);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        one(&self.latency[BOUNDS.partition_point(|&bound| bound < micros)]);
        self.latency_sum.fetch_add(micros, Relaxed);
    }

    pub fn refused(&self) {
        one(&self.refused_address);
    }

    pub fn wrong_protocol(&self) {
        one(&self.wrong_protocol);
    }

    pub fn broken(&self) {
        one(&self.broken);
    }

    pub fn timed_out(&self, phase: Phase) {
        match phase {
            Phase::Request => one(&self.request_timeouts),
            Phase::Reply => one(&self.reply_timeouts),
            // It has its reply.
            Phase::Drain => {}
        }
    }

    pub fn stats(&self, places: &Places) -> ListStats {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let bounds = BOUNDS.iter().map(|&bound| Duration::from_micros(bound)).chain([Duration::MAX]);
        ListStats {
            open: places.open(),
            limit: places.most(),
            accepted: load(&self.accepted),
            requests: load(&self.requests),
            replies: load(&self.replies),
            bytes: load(&self.bytes),
            refused_address: load(&self.refused_address),
            evicted: places.evicted(),
            wrong_protocol: load(&self.wrong_protocol),
            broken: load(&self.broken),
            request_timeouts: load(&self.request_timeouts),
            reply_timeouts: load(&self.reply_timeouts),
            latency: bounds.zip(self.latency.iter().map(load)).collect(),
            latency_sum: Duration::from_micros(load(&self.latency_sum)),
        }
    }
}
