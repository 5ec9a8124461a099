//! What the log says about a lobby that runs.

use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::{RegistrationOutcome, RegistryStats};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How often the numbers are told.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Turns numbers into lines of the log. What happens to single servers is told by the lobby itself.
pub struct Reporter {
    last: RegistryStats,
    last_at: Instant,
    /// How often the list was asked for until then.
    asked: u64,
    dropped: u64,
}

impl Reporter {
    pub fn new(service: &LobbyService) -> Self {
        let now = Instant::now();
        Self { last: service.stats(), last_at: now, asked: 0, dropped: 0 }
    }

    /// Looks at the numbers, and tells those that somebody should know.
    pub fn look(&mut self, service: &LobbyService) {
        let dropped = service.socket_stats().iter().map(|socket| socket.dropped).sum();
        if dropped > self.dropped {
            let lost = dropped - std::mem::replace(&mut self.dropped, dropped);
            warn!("the system dropped {lost} datagrams because a receive buffer was full: raise net.core.rmem_max");
        }
        if self.last_at.elapsed() < EVERY {
            return;
        }
        let (now, asked) = (service.stats(), service.list_stats().requests);
        let datagrams = outcomes_since(&self.last, &now);
        let lists = asked.saturating_sub(self.asked);
        info!(listed = now.listed, lobbies = now.lobbies, datagrams, lists, "the last hour");
        (self.last, self.last_at, self.asked) = (now, Instant::now(), asked);
    }
}

/// How many datagrams had which outcome between two moments: `listed 2, refreshed 1180`.
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
    fn only_what_happened_is_told() {
        let (before, mut now) = (RegistryStats::default(), RegistryStats::default());
        assert_eq!(outcomes_since(&before, &now), "none");
        now.outcomes[RegistrationOutcome::Listed.index()] = 2;
        now.outcomes[RegistrationOutcome::TooLarge.index()] = 1;
        assert_eq!(outcomes_since(&before, &now), "listed 2, too_large 1");
        assert_eq!(outcomes_since(&now, &now), "none");
    }
}
