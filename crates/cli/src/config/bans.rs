//! The `[[ban]]` tables.

use super::nearest;
use super::setting_type::{SettingType, Value, ValueError, all, found, quoted, read_network};
use jiff::Timestamp;
use rallypoint_lobby_proto::{Ban, BanSubject, BannedNetwork, NamePattern};
use toml::de::DeValue;

/// The keys of one `[[ban]]`.
pub const KEYS: [&str; 5] = ["address", "network", "name", "reason", "until"];

/// The type of the list of bans. A source that has one replaces the whole list.
pub struct BanListType;

/// The subject of a ban as it is written in a file.
pub fn subject(ban: &Ban) -> String {
    match &ban.subject {
        BanSubject::Name(pattern) => quoted(pattern),
        subject => subject.to_string(),
    }
}

/// The end of a ban.
pub fn end(ban: &Ban) -> Option<Timestamp> {
    // `read_date` made it of a timestamp.
    ban.until.and_then(|until| Timestamp::try_from(until).ok())
}

impl SettingType for BanListType {
    type Of = Vec<Ban>;

    fn expects(&self) -> String {
        "[[ban]] with one of address, network and name, and optionally reason and until".into()
    }

    fn set(&self, target: &mut Vec<Ban>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let DeValue::Array(bans) = value.get_ref() else {
            return Err(vec![ValueError::new(format!("expected {}, {}", self.expects(), found(value.get_ref())))]);
        };
        *target = all(bans.iter().map(read))?;
        Ok(())
    }

    fn show(&self, bans: &Vec<Ban>) -> String {
        let bans: Vec<_> = bans.iter().map(|ban| format!("{{ {} }}", lines(ban).join(", "))).collect();
        format!("[{}]", bans.join(", "))
    }
}

/// Parses one table, or returns everything that is wrong with it.
fn read(ban: &Value<'_>) -> Result<Ban, Vec<ValueError>> {
    let Some(table) = ban.get_ref().as_table() else {
        return Err(vec![ValueError::new(format!("expected {}", BanListType.expects())).at(ban.span())]);
    };
    let mut subjects = Vec::new();
    let mut reason = String::new();
    let mut until = None;
    let mut errors = Vec::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let text = || match value.get_ref().as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(ValueError::new(format!("{name}: expected text, {}", found(value.get_ref())))),
        };
        let network = |text: String| read_network(&text).map_err(|error| ValueError::new(format!("{name}: {error}")));
        let result = match name {
            "address" | "network" => text()
                .and_then(network)
                .map(|network| subjects.push((key.span().start, BanSubject::Network(BannedNetwork(network))))),
            "name" => text().map(|text| subjects.push((key.span().start, BanSubject::Name(NamePattern::new(&text))))),
            "reason" => text().map(|text| reason = text),
            "until" => read_date(value).map(|date| until = Some(date)),
            unknown => {
                let message = format!("unknown key {} in [[ban]]{}", quoted(unknown), nearest(unknown, KEYS));
                Err(ValueError::new(message).at(key.span()))
            }
        };
        errors.extend(result.err().map(|error| error.at(value.span())));
    }
    subjects.sort_by_key(|(at, _)| *at);
    // A subject that is wrong or misspelt is not missing as well.
    let is_named = table.keys().any(|key| !["reason", "until"].contains(&key.get_ref().as_ref()));
    match (subjects.pop(), subjects.is_empty()) {
        (Some((_, subject)), true) if errors.is_empty() => {
            return Ok(Ban { subject, reason: reason.into(), until: until.map(Timestamp::into) });
        }
        (Some((at, _)), false) => {
            errors.push(ValueError::new("a [[ban]] takes only one of address, network and name").at(at..at));
        }
        (None, _) if !is_named => {
            errors.push(ValueError::new("this [[ban]] lacks an address, a network or a name").at(ban.span()));
        }
        _ => {}
    }
    Err(errors)
}

/// Parses a date-time with an offset, or a day, which stands for its beginning in UTC.
fn read_date(value: &Value<'_>) -> Result<Timestamp, ValueError> {
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
        ValueError::new(format!("until: {expected}, {}", found(value.get_ref())))
    })
}

/// The keys of a ban, one per line.
pub fn lines(ban: &Ban) -> Vec<String> {
    let key = match &ban.subject {
        BanSubject::Network(BannedNetwork(net)) if net.prefix_len() == net.max_prefix_len() => "address",
        BanSubject::Network(_) => "network",
        BanSubject::Name(_) => "name",
        BanSubject::Server(_) => "server",
    };
    let value = match &ban.subject {
        BanSubject::Network(network) => quoted(network),
        BanSubject::Name(pattern) => quoted(pattern),
        BanSubject::Server(server) => quoted(server.id),
    };
    let mut lines = vec![format!("{key} = {value}")];
    if !ban.reason.is_empty() {
        lines.push(format!("reason = {}", quoted(&ban.reason)));
    }
    lines.extend(end(ban).map(|until| format!("until = {until}")));
    lines
}
