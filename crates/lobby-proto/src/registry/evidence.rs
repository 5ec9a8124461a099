//! The evidence that a server is real and not forged. It decides which servers give way when a cap is reached (W45).

use std::time::Duration;

/// Evidence for a registration, or for the server of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// One registration, whose source can be forged.
    First,
    /// It has registered again, or was refused some time ago and has returned.
    Returned,
    /// A server was listed at its endpoint shortly before it registered. This counts for ten minutes.
    Known,
    /// It has returned, and was admitted more than ten minutes ago.
    Established,
    /// It has replied to a check or a query.
    Proven,
}

/// How long it protects an entry that a server was listed at its endpoint before.
pub(super) const KNOWN_FOR: Duration = Duration::from_secs(10 * 60);

/// Minimum interval between registrations that count as a return: a server registers every 30 seconds.
pub(super) const RETURN_AFTER: Duration = Duration::from_secs(10);
