//! Statistics of connections and endpoints.

use std::time::Duration;

/// Current round-trip time, loss and throughput of a connection, and its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Round-trip time, if it was measured: the median of the last measurements.
    pub rtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Minimal round-trip time of the last seconds.
    pub rtt_min: Duration,
    /// Share of recent datagrams with messages that were lost, copies and resends included, from 0 to 1.
    pub loss: f64,
    /// Estimated capacity of the path in bytes per second.
    pub rate: u64,
    /// Maximum number of bytes in flight.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Number of messages that are not acknowledged, unsent ones included.
    pub unacked: usize,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of all datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of all datagrams received.
    pub bytes_received: u64,
    /// Bytes of all datagrams sent per second, over the last second before
    /// [`sample_throughput`](crate::SessionMachine::sample_throughput) was called, as `rallypoint-session` does.
    pub bytes_sent_per_second: u64,
    /// Bytes of all datagrams received per second, as [`bytes_sent_per_second`](Self::bytes_sent_per_second).
    pub bytes_received_per_second: u64,
    /// Messages sent again because they were lost, or appeared to be.
    pub resends: u64,
    /// Messages sent twice because the network is lossy.
    pub copies: u64,
    /// Resends without bytes, because the message was late or replaced by a newer one.
    pub discarded: u64,
    /// Resends that turned out to be unnecessary.
    pub spurious_resends: u64,
    /// Messages received more than once.
    pub duplicates: u64,
    /// Messages dropped because they could not be opened, or did not fit into the window.
    pub dropped: u64,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams received.
    pub datagrams: u64,
    /// Received datagrams that do not follow the protocol.
    pub malformed: u64,
    /// Received datagrams that belong to no session.
    pub strays: u64,
    /// Bytes sent to unvalidated addresses (S11).
    pub unvalidated_bytes: u64,
    /// Queries that exceeded the budget and were not answered.
    pub queries_refused: u64,
    /// Logins answered with success, repeated ones included.
    pub logins_granted: u64,
    /// Logins answered with a refusal.
    pub logins_refused: u64,
    /// Encrypted logins that came in a flood of them and were answered with a cookie (W83).
    pub logins_deferred: u64,
    /// Half-open logins that were evicted by newer ones.
    pub logins_evicted: u64,
    /// Sessions with channels that ended because the player's version or table of channels is another one, or because its hello
    /// was missing (W110).
    pub tables_refused: u64,
    /// Sessions with channels that ended because the player's connect token was missing or not valid (W113).
    pub tokens_refused: u64,
    /// Sessions with channels that ended because of anything else that no correct player sends (W112), or because of the memory
    /// that it took (W116).
    pub channel_faults: u64,
    /// Current number of half-open logins: answered, and waiting for the first message.
    pub half_open: usize,
    /// Current number of players.
    pub players: usize,
    /// Bytes of messages that are kept.
    pub memory: usize,
}
