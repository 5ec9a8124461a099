//! What the log says about a lobby that runs.

use crate::{config::Settings, log::masked};
use rallypoint_lobby::{Event, Listing, Outcome, Stats};
use rallypoint_net::LobbyService;
use rallypoint_wire::text;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tracing::{Level, debug, info, warn};

/// How often the numbers are told.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// How many servers that come and go are told one by one in a [`WINDOW`]: whoever registers thousands should not fill
/// the disk.
const PER_WINDOW: u32 = 60;
const WINDOW: Duration = Duration::from_secs(60);

/// Turns what happens into lines of the log.
pub struct Reporter {
    window: Instant,
    told: u32,
    untold: u64,
    last: Stats,
    last_at: Instant,
    dropped: u64,
}

impl Reporter {
    pub fn new(service: &LobbyService) -> Self {
        let now = Instant::now();
        Self { window: now, told: 0, untold: 0, last: service.stats(), last_at: now, dropped: 0 }
    }

    /// Something happened in the list.
    pub fn handle_event(&mut self, event: Result<Event, RecvError>, settings: &Settings) {
        match event {
            Ok(Event::Listed(server)) => self.tell("listed", &server, None, settings),
            Ok(Event::Unlisted(server, why)) => self.tell("gone", &server, Some(why.code()), settings),
            Ok(Event::Changed(server)) if tracing::enabled!(Level::DEBUG) => {
                let (name, lobby, address) = shown(&server, settings, true);
                debug!(%name, %lobby, %address, "changed");
            }
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => self.untold += missed,
            // The lobby has ended, and this is not asked again.
            Err(RecvError::Closed) => {}
        }
    }

    fn tell(&mut self, what: &'static str, server: &Listing, why: Option<&str>, settings: &Settings) {
        if tracing::enabled!(Level::DEBUG) {
            let (name, lobby, address) = shown(server, settings, true);
            debug!(%name, %lobby, %address, why, "{what}");
            return;
        }
        if self.window.elapsed() >= WINDOW {
            (self.window, self.told) = (Instant::now(), 0);
        }
        self.told += 1;
        if self.told > PER_WINDOW {
            self.untold += 1;
            return;
        }
        let (name, lobby, address) = shown(server, settings, false);
        info!(%name, %lobby, %address, why, "{what}");
    }

    /// Looks at the numbers, and tells those that somebody should know.
    pub fn look(&mut self, service: &LobbyService) {
        if self.untold > 0 {
            info!("{} more servers came or went", std::mem::take(&mut self.untold));
        }
        let dropped = service.socket_stats().iter().map(|socket| socket.dropped).sum();
        if dropped > self.dropped {
            let lost = dropped - std::mem::replace(&mut self.dropped, dropped);
            warn!("the system dropped {lost} datagrams because a receive buffer was full: raise net.core.rmem_max");
        }
        if self.last_at.elapsed() < EVERY {
            return;
        }
        let (now, before) = (service.stats(), std::mem::replace(&mut self.last, service.stats()));
        self.last_at = Instant::now();
        let datagrams = outcomes_since(&before, &now);
        info!(listed = now.listed, lobbies = now.lobbies, datagrams, "the last hour");
    }
}

/// A server as a line of the log has it: what is written by strangers is made harmless, and the ID is secret (L13).
fn shown(server: &Listing, settings: &Settings, in_full: bool) -> (String, String, String) {
    let block = server.block();
    let name = text::display(block.table.get(b"name").unwrap_or_default());
    let show = |addr| if in_full { format!("{addr}") } else { masked(addr) };
    let addresses: Vec<_> = block.endpoints().map(show).collect();
    (format!("{name:?}"), format!("{:?}", settings.lobby_name(&server.lobby_id())), addresses.join(" "))
}

/// How many datagrams had which outcome between two moments: `listed 2, refreshed 1180`.
fn outcomes_since(before: &Stats, now: &Stats) -> String {
    let counts = now.outcomes.iter().zip(&before.outcomes).map(|(now, before)| now.saturating_sub(*before));
    let counts = Outcome::CODES.iter().zip(counts).filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(code, count)| format!("{code} {count}")).collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_told() {
        let (before, mut now) = (Stats::default(), Stats::default());
        assert_eq!(outcomes_since(&before, &now), "none");
        now.outcomes[Outcome::Listed.index()] = 2;
        now.outcomes[Outcome::TooLarge.index()] = 1;
        assert_eq!(outcomes_since(&before, &now), "listed 2, too_large 1");
        assert_eq!(outcomes_since(&now, &now), "none");
    }
}
