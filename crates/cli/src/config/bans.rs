//! The ban list as it stands in a file.

use super::kind::{Kind, Value, Wrong, found, quoted, read_network, show_network};
use super::nearest;
use ipnet::IpNet;
use jiff::Timestamp;
use rallypoint_lobby::{Ban, Banned, NamePattern};
use std::time::Instant;
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
        Some(Ban { who, reason: self.reason.clone(), until })
    }
}

impl Kind for BanList {
    type Of = Vec<BanLine>;

    fn expects(&self) -> String {
        "[[ban]] with one of address, network and name, and with reason and until if you like".into()
    }

    fn set(&self, target: &mut Vec<BanLine>, value: &Value<'_>) -> Result<(), Wrong> {
        let DeValue::Array(bans) = value.get_ref() else {
            return Err(Wrong::new(format!("expected {}, {}", self.expects(), found(value.get_ref()))));
        };
        *target =
            bans.iter().map(|ban| read(ban).map_err(|wrong| wrong.at(ban.span()))).collect::<Result<_, Wrong>>()?;
        Ok(())
    }

    fn show(&self, bans: &Vec<BanLine>) -> String {
        let bans: Vec<_> = bans.iter().map(|ban| format!("{{ {} }}", lines(ban).join(", "))).collect();
        format!("[{}]", bans.join(", "))
    }
}

fn read(ban: &Value<'_>) -> Result<BanLine, Wrong> {
    let table = ban.get_ref().as_table().ok_or_else(|| Wrong::new(format!("expected {}", BanList.expects())))?;
    let (mut who, mut reason, mut until) = (None, String::new(), None);
    for (key, value) in table {
        let text = || match value.get_ref().as_str() {
            Some(text) => Ok(text),
            None => Err(Wrong::new(format!("{}: expected text, {}", key.get_ref(), found(value.get_ref())))),
        };
        let one = match key.get_ref().as_ref() {
            "address" | "network" => text().and_then(|text| {
                read_network(text).map(Who::Network).map_err(|wrong| Wrong::new(format!("{}: {wrong}", key.get_ref())))
            }),
            "name" => text().map(|text| Who::Name(text.into())),
            "reason" => {
                reason = text().map_err(|wrong| wrong.at(value.span()))?.into();
                continue;
            }
            "until" => {
                until = Some(read_date(value).map_err(|wrong| wrong.at(value.span()))?);
                continue;
            }
            unknown => {
                let message = format!("unknown key {} in [[ban]]{}", quoted(unknown), nearest(unknown, KEYS));
                return Err(Wrong::new(message).at(key.span()));
            }
        };
        let one = one.map_err(|wrong| wrong.at(value.span()))?;
        if who.replace(one).is_some() {
            return Err(Wrong::new("expected only one of address, network and name in a [[ban]]").at(key.span()));
        }
    }
    let who = who.ok_or_else(|| Wrong::new("expected an address, a network or a name in this [[ban]]"))?;
    Ok(BanLine { who, reason, until })
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
