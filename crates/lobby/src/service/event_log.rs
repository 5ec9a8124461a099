//! Log messages about servers that are listed and unlisted: short and with masked addresses at level info, in full at level
//! debug.

use crate::MaskedAddr;
use rallypoint_lobby_proto::{Event, ListedServer, UnlistReason};
use rallypoint_wire::text;
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};
use tracing::Level;

/// Maximum number of messages per second. Further ones are only counted.
const LINES_PER_SECOND: u32 = 50;

/// Minimum interval between two warnings about contested endpoints.
const CONTESTED_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum length of a name in characters: names can have thousands of bytes, but a log needs only enough to tell servers apart.
const MAX_NAME: usize = 80;

/// Logs events, at most [`LINES_PER_SECOND`].
#[derive(Debug)]
pub(super) struct EventLog {
    second: Instant,
    lines: u32,
    omitted: u64,
    /// When a warning about contested endpoints was last logged.
    warned: Option<Instant>,
}

impl EventLog {
    pub fn new(now: Instant) -> Self {
        Self { second: now, lines: 0, omitted: 0, warned: None }
    }

    pub fn event(&mut self, now: Instant, event: &Event) {
        let (what, listing, reason) = match event {
            Event::Listed(listing) => ("listed", listing, None),
            Event::Changed(listing) => ("changed", listing, None),
            Event::Unlisted(listing, reason) => ("unlisted", listing, Some(*reason)),
            Event::Check(_) => return,
        };
        if reason == Some(UnlistReason::Contested) {
            self.contested(now, listing);
        }
        let is_full = tracing::enabled!(Level::DEBUG);
        let is_logged = is_full || (tracing::enabled!(Level::INFO) && what != "changed");
        if !is_logged || !self.has_room(now) {
            return;
        }
        let id = listing.public_id();
        let lobby = listing.list_id();
        let name = name(listing);
        let reason = reason.map(UnlistReason::code);
        if is_full {
            let address: Vec<_> = listing.block().endpoints().map(|addr| addr.to_string()).collect();
            tracing::debug!(%id, %lobby, address = address.join(" "), name, reason, "{what}");
        } else {
            tracing::info!(%id, %lobby, address = %address(listing), name, reason, "{what}");
        }
    }

    /// Warns about two servers that replace each other, every 30 seconds: at most once a minute, for any of them.
    fn contested(&mut self, now: Instant, listing: &ListedServer) {
        if self.warned.is_some_and(|at| now.saturating_duration_since(at) < CONTESTED_INTERVAL) {
            return;
        }
        self.warned = Some(now);
        let port = listing.block().endpoints().next().map(|addr| addr.port());
        tracing::warn!(
            address = %address(listing),
            port,
            name = name(listing),
            "two servers register at the same address and port and replace each other: give one of them another port"
        );
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            if self.omitted > 0 {
                tracing::info!(servers = self.omitted, "more servers were listed or unlisted");
            }
            *self = Self { warned: self.warned, ..Self::new(now) };
        }
        self.lines += 1;
        self.omitted += u64::from(self.lines > LINES_PER_SECOND);
        self.lines <= LINES_PER_SECOND
    }
}

fn address(listing: &ListedServer) -> MaskedAddr {
    let block = listing.block();
    let v4 = block.v4.map(|v4| IpAddr::from(v4.ip));
    let v6 = block.v6.map(|v6| IpAddr::from(v6.ip));
    MaskedAddr(v4.or(v6).unwrap_or(IpAddr::from([0, 0, 0, 0])))
}

fn name(listing: &ListedServer) -> String {
    let name = text::display(listing.block().table.get(b"name").unwrap_or_default());
    name.chars().take(MAX_NAME).collect()
}
