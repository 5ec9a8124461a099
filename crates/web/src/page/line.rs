//! A server as a line of a list.

use super::shown;
use crate::{
    WebSettings,
    book::{Row, Verified},
};
use rallypoint_lobby_proto::ListingOrigin;
use std::net::SocketAddr;

/// A server as a line of a list, with everything that a template asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub row: &'a Row,
    settings: &'a WebSettings,
    now: u64,
}

/// What stands where a server has no name (L6).
const NAMELESS: &str = "(no name)";

impl<'a> Line<'a> {
    pub fn new(row: &'a Row, settings: &'a WebSettings, now: u64) -> Self {
        Self { row, settings, now }
    }

    pub fn name(&self) -> &'a str {
        if self.row.name.trim().is_empty() { NAMELESS } else { &self.row.name }
    }

    /// The full name of the game, or the short one if there is no other.
    pub fn game(&self) -> &'a str {
        if self.row.game_name.is_empty() { &self.row.game } else { &self.row.game_name }
    }

    pub fn lobby(&self) -> String {
        self.settings.names.short(&self.row.lobby)
    }

    /// "5 + 2 / 16": people, bots, places.
    pub fn players(&self) -> String {
        let Row { players, bots, slots, .. } = self.row;
        if *bots > 0 { format!("{players} + {bots} / {slots}") } else { format!("{players} / {slots}") }
    }

    /// The same in words, for those who listen to the page.
    pub fn players_spoken(&self) -> String {
        let Row { players, bots, slots, .. } = self.row;
        let bots = if *bots > 0 { format!(" and {}", shown::many(*bots, "bot")) } else { String::new() };
        format!("{}{bots}, {}", shown::many(*players, "player"), shown::many(*slots, "slot"))
    }

    /// How much of the bar people take up, in percent.
    pub fn people_width(&self) -> u32 {
        width(self.row.players, self.row.slots)
    }

    /// How much of it bots take up.
    pub fn bots_width(&self) -> u32 {
        width(self.row.bots, self.row.slots).min(100 - self.people_width())
    }

    /// What a player types: IPv4 if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.row.addresses().next()
    }

    /// Which families there are, if it is not IPv4 alone.
    pub fn families(&self) -> &'static str {
        match (self.row.v4, self.row.v6) {
            (Some(_), Some(_)) => "4+6",
            (None, Some(_)) => "6",
            _ => "",
        }
    }

    pub fn latency(&self) -> Option<String> {
        self.row.latency.map(shown::milliseconds)
    }

    pub fn age(&self) -> String {
        shown::span(self.now.saturating_sub(self.row.since))
    }

    /// The class, sign and words of what was found by asking it.
    pub fn verdict(&self) -> (&'static str, &'static str, String) {
        match self.row.verification {
            Verified::NotProbed => ("unasked", "", String::new()),
            Verified::Verified if self.row.origin != ListingOrigin::Registered => {
                ("verified", "✓", "Verified: the lobby asked the server itself".into())
            }
            Verified::Verified => ("verified", "✓", "Verified: the server itself says the same".into()),
            Verified::Differs => {
                let fields: Vec<_> = self.row.differences.names().collect();
                (
                    "differs",
                    "≠",
                    format!("Differs: asked for its {}, the server says something else", fields.join(", ")),
                )
            }
            Verified::Unreachable => ("unreachable", "?", "The server does not answer questions".into()),
        }
    }
}

fn width(part: u16, of: u16) -> u32 {
    let (part, of) = (u32::from(part), u32::from(of.max(1)));
    // Somebody is never nobody.
    (part * 100 / of).clamp(u32::from(part > 0) * 2, 100)
}
