//! Reports about servers that one node of a cluster makes, and all nodes show.

use crate::verify::VerificationResult;
use rallypoint_lobby_proto::{FailedCheckTimes, PublicId, RecentOutcome, RegistrationOutcome};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Something that this node found out about a server.
#[derive(Clone, Debug)]
pub enum ProbeReport {
    /// The result of a probe: one node probes a server for all.
    Verification(VerificationResult),
    /// The round-trip time between this node and a server: each node has its own.
    Latency(PublicId, Duration),
}

/// The latency between a node and a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLatency {
    /// Name of the node.
    pub node: Arc<str>,
    /// The round-trip time.
    pub latency: Duration,
}

impl NodeLatency {
    /// The latency as it is displayed: in whole milliseconds, rounded up.
    #[must_use]
    pub fn ms(&self) -> u64 {
        (self.latency.as_micros() as u64).div_ceil(1_000)
    }
}

/// The outcome of recent registrations from an address at one of the nodes, for the owner of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOutcome {
    /// Name of the node; `None` without a cluster.
    pub node: Option<Arc<str>>,
    /// The reason code, one of [`RegistrationOutcome::CODES`].
    pub code: &'static str,
    /// The reason in plain English.
    pub text: String,
    /// The port in the registration, if it could be parsed.
    pub port: Option<u16>,
    /// Whether the server was in the list afterwards.
    pub is_listed: bool,
    /// Whether the node refused what was requested.
    pub is_refusal: bool,
    /// Number of consecutive datagrams with this outcome.
    pub times: u32,
    /// Time since the last of them.
    pub age: Duration,
    /// The failed check because of which the server was refused, if that is the reason.
    pub failed_check: Option<FailedCheckAge>,
}

/// How old the result of a failed check is, which applies to all registrations for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCheckAge {
    /// Time since the check.
    pub age: Duration,
    /// Time until a registration causes another check; zero if the next one does.
    pub repeatable_in: Duration,
}

/// The outcomes of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllOutcomes {
    /// The outcomes, the latest last.
    pub outcomes: Vec<NodeOutcome>,
    /// Names of the nodes that did not answer.
    pub silent: Vec<String>,
}

impl NodeOutcome {
    /// An outcome of this node.
    #[must_use]
    pub fn new(
        node: Option<Arc<str>>,
        past: &RecentOutcome,
        failed_check: Option<FailedCheckTimes>,
        now: Instant,
    ) -> Self {
        Self {
            node,
            code: past.outcome.code(),
            text: past.to_string(),
            port: past.port,
            is_listed: past.outcome.is_listed(),
            is_refusal: past.is_refusal(),
            times: past.times,
            age: now.saturating_duration_since(past.at),
            failed_check: failed_check.map(|times| FailedCheckAge {
                age: now.saturating_duration_since(times.failed_at),
                repeatable_in: times.repeatable_at.saturating_duration_since(now),
            }),
        }
    }

    /// A reason code that another node sent; `None` if this version does not know it.
    #[must_use]
    pub fn known_code(code: &str) -> Option<&'static str> {
        RegistrationOutcome::CODES.into_iter().find(|known| *known == code)
    }
}
