//! The list service: TCP.

use std::time::Duration;

/// How much the list service takes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// How many connections there can be. At least 1; 16,384. (The system's limit of open files can lower it.)
    pub connections: usize,
    /// How many connections an IPv4 address or an IPv6 /64 can have. At least 1; 64.
    pub per_address: usize,
    /// Whether loopback may have as many as it likes. Yes.
    pub loopback_exempt: bool,
    /// How long a client has for its request (L14). 5 s.
    pub request_timeout: Duration,
    /// How long a client has for taking the reply (L14). At least 60 s; 2 minutes.
    pub reply_timeout: Duration,
    /// How many bytes of lists that are no longer the latest may be kept for slow readers. 256 MiB.
    pub held_bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 64,
            loopback_exempt: true,
            request_timeout: Duration::from_secs(5),
            reply_timeout: Duration::from_secs(120),
            held_bytes: 256 << 20,
        }
    }
}

/// What the list service has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListStats {
    /// Connections that are open now.
    pub open: usize,
    /// Connections that were taken.
    pub accepted: u64,
    /// Whole requests.
    pub requests: u64,
    /// Replies that were handed over as a whole.
    pub replies: u64,
    /// Bytes of replies that were handed over.
    pub bytes: u64,
    /// Connections refused because there were too many in all.
    pub refused_total: u64,
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
    /// Replies by how long they took from the request to the last byte handed over: how many took at most so long.
    pub latency: Vec<(Duration, u64)>,
}
