//! What the log says about servers that come and go: in short and with masked addresses for everybody, or in full for
//! whoever looks for a fault.

use crate::Masked;
use rallypoint_lobby_proto::{Event, ListedServer};
use rallypoint_wire::text;
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};
use tracing::Level;

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
        let (what, listing, why) = match event {
            Event::Listed(listing) => ("listed", listing, None),
            Event::Changed(listing) => ("changed", listing, None),
            Event::Unlisted(listing, why) => ("unlisted", listing, Some(why.code())),
            Event::Check(_) => return,
        };
        let is_in_full = tracing::enabled!(Level::DEBUG);
        let is_told = is_in_full || (tracing::enabled!(Level::INFO) && what != "changed");
        if !is_told || !self.has_room(now) {
            return;
        }
        let (id, lobby, name) = (listing.public_id(), listing.lobby_id(), name(listing));
        if is_in_full {
            let address: Vec<_> = listing.block().endpoints().map(|addr| addr.to_string()).collect();
            tracing::debug!(%id, %lobby, address = address.join(" "), name, why, "{what}");
        } else {
            tracing::info!(%id, %lobby, address = %address(listing), name, why, "{what}");
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

fn address(listing: &ListedServer) -> Masked {
    let block = listing.block();
    let v4 = block.v4.map(|v4| IpAddr::from(v4.ip));
    let v6 = block.v6.map(|v6| IpAddr::from(v6.ip));
    Masked(v4.or(v6).unwrap_or(IpAddr::from([0, 0, 0, 0])))
}

fn name(listing: &ListedServer) -> String {
    let name = text::display(listing.block().table.get(b"name").unwrap_or_default());
    name.chars().take(LONGEST_NAME).collect()
}
