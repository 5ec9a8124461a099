//! A server as a row of a list.

use super::format;
use crate::{
    WebSettings,
    site::{Country, SiteFiles},
    trends::{Trend, Trends},
};
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
    trend: Option<&'a Trend>,
    pub country: Option<Country<'a>>,
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
        Self { row, settings, now, trend: None, country: None }
    }

    /// Adds the last 24 hours, and the country if the operator has given a database of countries.
    pub fn with_details(self, trends: &'a Trends, files: &'a SiteFiles) -> Self {
        let trend = trends.get(self.row.id).filter(|trend| trend.is_drawable());
        let countries = files.countries.as_ref();
        let country = self.address().and_then(|address| countries?.find(address.ip()));
        Self { trend, country, ..self }
    }

    /// The last 24 hours as an SVG path, and in words.
    pub fn trend(&self) -> Option<(String, String)> {
        self.trend.map(|trend| (trend.path(self.row.slots), trend.in_words()))
    }

    pub fn name(&self) -> &'a str {
        if self.row.name.trim().is_empty() { NO_NAME } else { &self.row.name }
    }

    /// The full name of the game, or the short one if there is no other.
    pub fn game(&self) -> &'a str {
        if self.row.game_name.is_empty() { &self.row.game } else { &self.row.game_name }
    }

    pub fn list(&self) -> String {
        self.settings.names.short(&self.row.list)
    }

    /// Players and slots: "5 / 16".
    pub fn players(&self) -> String {
        let ServerRecord { players, slots, .. } = self.row;
        // A registration without a number of slots has 0.
        if *slots > 0 { format!("{players} / {slots}") } else { players.to_string() }
    }

    /// Bots: "+ 2 bots".
    pub fn bots(&self) -> Option<String> {
        (self.row.bots > 0).then(|| format!("+ {}", format::count_of(self.row.bots, "bot")))
    }

    /// The path that is put before every address.
    pub fn base(&self) -> &'a str {
        self.settings.site.base()
    }

    /// The link that starts the game, if the operator has configured one.
    pub fn join(&self) -> Option<String> {
        Some(self.settings.joins.get(&self.row.list)?.fill(self.address()?))
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

    /// The latency from each node of a cluster, the nearest first.
    pub fn node_latencies(&self) -> Vec<(&'a str, String)> {
        let mut latencies: Vec<_> = self.row.node_latencies().iter().collect();
        latencies.sort_by_key(|latency| latency.latency);
        latencies.iter().map(|latency| (&*latency.node, format::milliseconds(latency.latency))).collect()
    }

    pub fn age(&self) -> String {
        format::age(self.now.saturating_sub(self.row.since))
    }

    /// The differences between the registration and the server's own answer, in words.
    pub fn differences(&self) -> Vec<String> {
        let row = self.row;
        let info = row.info.as_deref();
        let text = |what: &str, listed: &str, answer: Option<&String>| match answer {
            Some(answer) => format!("lists the {what} “{listed}”, answers “{answer}”"),
            None => format!("lists another {what} than it answers"),
        };
        let number = |noun: &str, listed: u16, answer: Option<u16>| match answer {
            Some(answer) => format!("lists {}, answers {}", format::count_of(listed, noun), format::count(answer)),
            None => format!("lists another number of {noun}s than it answers"),
        };
        let describe = |field: &str| match field {
            "players" => number("player", row.players, info.and_then(|info| info.players)),
            "slots" => number("slot", row.slots, info.and_then(|info| info.max_players)),
            "name" => text("name", self.name(), info.and_then(|info| info.name.as_ref())),
            "map" => text("map", &row.map, info.and_then(|info| info.map.as_ref())),
            "password" if row.password => "lists a password, answers that none is needed".into(),
            "password" => "lists no password, answers that one is needed".into(),
            other => format!("lists another {other} than it answers"),
        };
        row.differences.names().map(describe).collect()
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
            Verification::Differs => badge("differs", "≠", &format!("Differs: {}", self.differences().join("; "))),
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
