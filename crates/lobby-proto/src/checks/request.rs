//! Targets of reachability checks, and the results.

use rallypoint_wire::query::Protocol;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The target of a reachability check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckTarget {
    /// The address to connect to or to query.
    pub addr: SocketAddr,
    /// How to check it.
    pub kind: CheckKind,
}

/// The way in which a server is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Connecting to its TCP port succeeds.
    Connect,
    /// It replies to a query of this protocol (E1).
    Query(Protocol),
}

/// A check that the caller should make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// The target.
    pub target: CheckTarget,
    /// How long to try.
    pub timeout: Duration,
}

/// The result of a reachability check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The server replied after this time.
    Reachable(Duration),
    /// The server did not reply.
    Unreachable,
    /// The machine of the server refused: nothing listens at that port.
    Refused,
    /// The lobby could not make the check, for lack of a file descriptor or of a network route. Earlier results stay valid.
    Unknown,
}

/// When a server was checked that could not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCheckTimes {
    /// When the check failed.
    pub failed_at: Instant,
    /// From when on a registration causes another check. Until then, the result applies to all registrations.
    pub repeatable_at: Instant,
}

/// Counters of reachability checks, and their current number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStats {
    /// Checks requested of the caller.
    pub started: u64,
    /// Checks that reached the server.
    pub reachable: u64,
    /// Checks that did not reach the server.
    pub unreachable: u64,
    /// Checks that the lobby could not make.
    pub undecided: u64,
    /// Checks that were not made because a bound was reached.
    pub refused: u64,
    /// Number of checks in the queue.
    pub waiting: usize,
    /// Number of checks in flight.
    pub in_flight: usize,
}
