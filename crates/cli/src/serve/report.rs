//! Periodic log messages about a running lobby.

use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::{RegistrationOutcome, RegistryStats};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Interval of the summary.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Logs changes of the statistics. The lobby itself logs events of single servers.
pub struct Reporter {
    last: RegistryStats,
    last_at: Instant,
    /// Number of list requests at the last summary.
    list_requests: u64,
    /// Number of dropped datagrams already reported.
    dropped: u64,
}

impl Reporter {
    pub fn new(service: &LobbyService) -> Self {
        let now = Instant::now();
        Self { last: service.stats(), last_at: now, list_requests: 0, dropped: 0 }
    }

    /// Logs dropped datagrams at once, and a summary every hour.
    pub fn report(&mut self, service: &LobbyService) {
        let dropped = service.socket_stats().iter().map(|socket| socket.dropped).sum();
        if dropped > self.dropped {
            let lost = dropped - std::mem::replace(&mut self.dropped, dropped);
            warn!("{lost} datagrams were dropped because a receive buffer was full: increase net.core.rmem_max");
        }
        if self.last_at.elapsed() < SUMMARY_INTERVAL {
            return;
        }
        let now = service.stats();
        let list_requests = service.list_stats().requests;
        let datagrams = outcomes_since(&self.last, &now);
        let lists = list_requests.saturating_sub(self.list_requests);
        info!(listed = now.listed, lists_open = now.lists, datagrams, lists, "summary of the last hour");
        self.last = now;
        self.last_at = Instant::now();
        self.list_requests = list_requests;
    }
}

/// Number of datagrams by outcome between two points in time: `listed 2, refreshed 1180`.
fn outcomes_since(before: &RegistryStats, now: &RegistryStats) -> String {
    let counts = now.outcomes.iter().zip(&before.outcomes).map(|(now, before)| now.saturating_sub(*before));
    let counts = RegistrationOutcome::CODES.iter().zip(counts).filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(code, count)| format!("{code} {count}")).collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_did_not_occur_are_left_out() {
        let (before, mut now) = (RegistryStats::default(), RegistryStats::default());
        assert_eq!(outcomes_since(&before, &now), "none");
        now.outcomes[RegistrationOutcome::Listed.index()] = 2;
        now.outcomes[RegistrationOutcome::TooLarge.index()] = 1;
        assert_eq!(outcomes_since(&before, &now), "listed 2, too_large 1");
        assert_eq!(outcomes_since(&now, &now), "none");
    }
}
