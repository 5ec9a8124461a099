//! What the log says about servers that come and go.

use crate::Masked;
use rallypoint_lobby::{Event, Listing};
use rallypoint_wire::text;
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// So many lines are written per second; a flood is a number.
const LINES: u32 = 50;

/// A name can have thousands of bytes; the log needs only as many characters as tell servers apart.
const LONGEST_NAME: usize = 80;

#[derive(Debug)]
pub(super) struct EventLog {
    second: Instant,
    lines: u32,
    left_out: u64,
}

impl EventLog {
    pub fn new(now: Instant) -> Self {
        Self { second: now, lines: 0, left_out: 0 }
    }

    pub fn event(&mut self, now: Instant, event: &Event) {
        if !tracing::enabled!(tracing::Level::INFO) || !self.has_room(now) {
            return;
        }
        match event {
            Event::Listed(listing) => tracing::info!(
                id = %listing.public_id(),
                lobby = %listing.lobby_id(),
                address = %address(listing),
                name = &*name(listing),
                "listed"
            ),
            Event::Unlisted(listing, why) => tracing::info!(
                id = %listing.public_id(),
                lobby = %listing.lobby_id(),
                address = %address(listing),
                name = &*name(listing),
                why = why.code(),
                "unlisted"
            ),
            Event::Changed(_) | Event::Check(_) => {}
        }
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            if self.left_out > 0 {
                tracing::info!(servers = self.left_out, "more servers came and went");
            }
            *self = Self::new(now);
        }
        self.lines += 1;
        self.left_out += u64::from(self.lines > LINES);
        self.lines <= LINES
    }
}

fn address(listing: &Listing) -> Masked {
    let block = listing.block();
    let v4 = block.v4.map(|v4| IpAddr::from(v4.ip));
    let v6 = block.v6.map(|v6| IpAddr::from(v6.ip));
    Masked(v4.or(v6).unwrap_or(IpAddr::from([0, 0, 0, 0])))
}

fn name(listing: &Listing) -> String {
    let name = text::display(listing.block().table.get(b"name").unwrap_or_default());
    name.chars().take(LONGEST_NAME).collect()
}
