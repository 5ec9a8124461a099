//! The ban list as it stands in a file.

use super::kind::{Kind, Value, Wrong, all, found, quoted, read_network, show_network};
use super::nearest;
use ipnet::IpNet;
use jiff::Timestamp;
use rallypoint_lobby_proto::{Ban, Banned, NamePattern};
use rallypoint_web::{BanRule, Network};
use std::{fmt, time::Instant};
use toml::de::DeValue;

/// One `[[ban]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanLine {
    pub who: Who,
    pub reason: String,
    pub until: Option<Timestamp>,
}

/// Who is banned, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    Network(IpNet),
    Name(String),
}

/// The keys of one `[[ban]]`.
pub const KEYS: [&str; 5] = ["address", "network", "name", "reason", "until"];

/// A list of bans: every file and variable that has one replaces it as a whole.
pub struct BanList;

impl BanLine {
    /// For the registry, which knows no dates. A ban that has ended is none.
    pub fn in_force(&self, now: Instant, today: Timestamp) -> Option<Ban> {
        let until = match self.until {
            None => None,
            // What is too far away for the clock does not end while the program runs.
            Some(until) => match std::time::Duration::try_from(until.duration_since(today)) {
                Ok(left) if !left.is_zero() => now.checked_add(left),
                _ => return None,
            },
        };
        let who = match &self.who {
            Who::Network(net) => Banned::Network(*net),
            Who::Name(pattern) => Banned::Name(NamePattern::new(pattern)),
        };
        Some(Ban { who, reason: self.reason.as_str().into(), until })
    }

    /// For those who want to see it.
    pub fn rule(&self) -> BanRule {
        let who = match &self.who {
            Who::Network(net) => rallypoint_web::Who::Network(Network(*net)),
            Who::Name(pattern) => rallypoint_web::Who::Name(pattern.clone()),
        };
        let until = self.until.map(|until| u64::try_from(until.as_second()).unwrap_or(0));
        BanRule { who, reason: self.reason.clone(), until }
    }
}

impl fmt::Display for BanLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Network(net) => f.write_str(&show_network(net)),
            Who::Name(pattern) => f.write_str(&quoted(pattern)),
        }
    }
}

impl Kind for BanList {
    type Of = Vec<BanLine>;

    fn expects(&self) -> String {
        "[[ban]] with one of address, network and name, and with reason and until if you like".into()
    }

    fn set(&self, target: &mut Vec<BanLine>, value: &Value<'_>) -> Result<(), Vec<Wrong>> {
        let DeValue::Array(bans) = value.get_ref() else {
            return Err(vec![Wrong::new(format!("expected {}, {}", self.expects(), found(value.get_ref())))]);
        };
        *target = all(bans.iter().map(read))?;
        Ok(())
    }

    fn show(&self, bans: &Vec<BanLine>) -> String {
        let bans: Vec<_> = bans.iter().map(|ban| format!("{{ {} }}", lines(ban).join(", "))).collect();
        format!("[{}]", bans.join(", "))
    }
}

/// One ban, or all that is wrong with it.
fn read(ban: &Value<'_>) -> Result<BanLine, Vec<Wrong>> {
    let Some(table) = ban.get_ref().as_table() else {
        return Err(vec![Wrong::new(format!("expected {}", BanList.expects())).at(ban.span())]);
    };
    let (mut whom, mut reason, mut until, mut wrongs) = (Vec::new(), String::new(), None, Vec::new());
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let text = || match value.get_ref().as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(Wrong::new(format!("{name}: expected text, {}", found(value.get_ref())))),
        };
        let network = |text: String| read_network(&text).map_err(|wrong| Wrong::new(format!("{name}: {wrong}")));
        let result = match name {
            "address" | "network" => {
                text().and_then(network).map(|network| whom.push((key.span().start, Who::Network(network))))
            }
            "name" => text().map(|text| whom.push((key.span().start, Who::Name(text)))),
            "reason" => text().map(|text| reason = text),
            "until" => read_date(value).map(|date| until = Some(date)),
            unknown => {
                let message = format!("unknown key {} in [[ban]]{}", quoted(unknown), nearest(unknown, KEYS));
                Err(Wrong::new(message).at(key.span()))
            }
        };
        wrongs.extend(result.err().map(|wrong| wrong.at(value.span())));
    }
    whom.sort_by_key(|(at, _)| *at);
    // What is there but wrong, or mistyped, is not missing.
    let is_named = table.keys().any(|key| !["reason", "until"].contains(&key.get_ref().as_ref()));
    match (whom.pop(), whom.is_empty()) {
        (Some((_, who)), true) if wrongs.is_empty() => return Ok(BanLine { who, reason, until }),
        (Some((at, _)), false) => {
            wrongs.push(Wrong::new("expected only one of address, network and name in a [[ban]]").at(at..at));
        }
        (None, _) if !is_named => {
            wrongs.push(Wrong::new("expected an address, a network or a name in this [[ban]]").at(ban.span()));
        }
        _ => {}
    }
    Err(wrongs)
}

/// A moment: a date-time with an offset, or a day, which is its beginning in UTC.
fn read_date(value: &Value<'_>) -> Result<Timestamp, Wrong> {
    let text = match value.get_ref() {
        DeValue::Datetime(date) => date.to_string(),
        DeValue::String(text) => text.to_string(),
        _ => String::new(),
    };
    let day = |text: &str| text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == 10);
    let moment = match day(&text) {
        Some(day) => day.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp()).ok(),
        None => text.parse().ok(),
    };
    moment.ok_or_else(|| {
        let expected = "expected a date such as 2027-01-31 or 2027-01-31T18:00:00Z";
        Wrong::new(format!("until: {expected}, {}", found(value.get_ref())))
    })
}

/// The keys of a ban, a line each.
pub fn lines(ban: &BanLine) -> Vec<String> {
    let mut lines = vec![match &ban.who {
        Who::Network(net) if net.prefix_len() == net.max_prefix_len() => {
            format!("address = {}", quoted(show_network(net)))
        }
        Who::Network(net) => format!("network = {}", quoted(show_network(net))),
        Who::Name(pattern) => format!("name = {}", quoted(pattern)),
    }];
    if !ban.reason.is_empty() {
        lines.push(format!("reason = {}", quoted(&ban.reason)));
    }
    lines.extend(ban.until.map(|until| format!("until = {until}")));
    lines
}
