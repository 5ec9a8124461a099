//! A server as a row of a list.

use super::format;
use crate::WebSettings;
use rallypoint_lobby::{ServerRecord, Verification};
use rallypoint_lobby_proto::ListingOrigin;
use std::net::SocketAddr;

/// A server as a row of a list, with every text that templates show.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerRow<'a> {
    pub row: &'a ServerRecord,
    settings: &'a WebSettings,
    /// Current time in seconds since 1970.
    now: u64,
}

/// Shown instead of an empty name (L6).
const NO_NAME: &str = "(no name)";

/// The result of verification as the page shows it.
#[derive(Debug)]
pub(super) struct VerifiedBadge {
    pub class: &'static str,
    pub sign: &'static str,
    pub text: String,
}

impl<'a> ServerRow<'a> {
    pub fn new(row: &'a ServerRecord, settings: &'a WebSettings, now: u64) -> Self {
        Self { row, settings, now }
    }

    pub fn name(&self) -> &'a str {
        if self.row.name.trim().is_empty() { NO_NAME } else { &self.row.name }
    }

    /// The full name of the game, or the short one if there is no other.
    pub fn game(&self) -> &'a str {
        if self.row.game_name.is_empty() { &self.row.game } else { &self.row.game_name }
    }

    pub fn lobby(&self) -> String {
        self.settings.names.short(&self.row.lobby)
    }

    /// Players, bots and slots: "5 + 2 / 16".
    pub fn players(&self) -> String {
        let ServerRecord { players, bots, slots, .. } = self.row;
        let people = if *bots > 0 { format!("{players} + {bots}") } else { players.to_string() };
        // A registration without a number of slots has 0.
        if *slots > 0 { format!("{people} / {slots}") } else { people }
    }

    /// Players, bots and slots in words, for screen readers.
    pub fn players_in_words(&self) -> String {
        let ServerRecord { players, bots, slots, .. } = self.row;
        let bots = if *bots > 0 { format!(" and {}", format::count_of(*bots, "bot")) } else { String::new() };
        format!("{}{bots}, {}", format::count_of(*players, "player"), format::count_of(*slots, "slot"))
    }

    /// Width of the players' part of the bar, in percent.
    pub fn players_width(&self) -> u32 {
        width(self.row.players, self.row.slots)
    }

    /// Width of the bots' part of the bar, in percent.
    pub fn bots_width(&self) -> u32 {
        width(self.row.bots, self.row.slots).min(100 - self.players_width())
    }

    /// The address that players connect to: IPv4 if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.row.addresses().next()
    }

    /// The address families, unless it is IPv4 alone.
    pub fn families(&self) -> &'static str {
        match (self.row.v4, self.row.v6) {
            (Some(_), Some(_)) => "4+6",
            (None, Some(_)) => "6",
            _ => "",
        }
    }

    pub fn latency(&self) -> Option<String> {
        self.row.latency.map(format::milliseconds)
    }

    pub fn age(&self) -> String {
        format::age(self.now.saturating_sub(self.row.since))
    }

    /// The result of verification.
    pub fn verified(&self) -> VerifiedBadge {
        let badge = |class, sign, text: &str| VerifiedBadge { class, sign, text: text.to_owned() };
        match self.row.verification {
            Verification::NotProbed => badge("not_queried", "", ""),
            Verification::Verified if self.row.origin != ListingOrigin::Registered => {
                badge("verified", "✓", "Verified: the lobby queried the server itself")
            }
            Verification::Verified => badge("verified", "✓", "Verified: the server's reply matches its registration"),
            Verification::Differs => {
                let fields: Vec<_> = self.row.differences.names().collect();
                let text = format!("Differs: the server reports different values for {}", fields.join(", "));
                badge("differs", "≠", &text)
            }
            Verification::Unreachable => badge("unreachable", "?", "The server does not reply to queries"),
        }
    }
}

fn width(part: u16, of: u16) -> u32 {
    let part = u32::from(part);
    let percent = part * 100 / u32::from(of.max(1));
    // A single player of many slots is still visible.
    percent.clamp(u32::from(part > 0) * 2, 100)
}
