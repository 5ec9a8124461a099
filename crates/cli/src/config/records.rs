//! Settings that are lists of tables: `[[ban]]` and `[[watch]]`.

use super::{
    kind::{Invalid, Kind},
    networks::read_network,
};
use crate::toml_file::{FoundErrors, TableReader, quoted};
use jiff::Timestamp;
use rallypoint_lobby::WatchTarget;
use rallypoint_lobby_proto::{Ban, BanSubject, CanonicalNetwork, NamePattern};
use rallypoint_query::{Host, ServerAddress, Target, list_names, proto::Protocol};
use rallypoint_wire::lobby::ListId;
use std::{collections::BTreeMap, num::NonZeroU16};
use toml::de::DeValue;

/// Tables `[[name]]`. `read` gets a table and the ones before it, and reports what is wrong; `lines` are the keys of one.
fn tables<T: 'static>(
    name: &'static str,
    expects: &'static str,
    read: impl Fn(TableReader<'_>, &[T]) -> Option<T> + Send + Sync + 'static,
    lines: fn(&T) -> Vec<String>,
) -> Kind<Vec<T>> {
    let read_all = move |value: &crate::toml_file::Value<'_>| {
        let elements = value.get_ref().as_array().ok_or(Invalid::Unexpected)?;
        let found = FoundErrors::default();
        let mut all = Vec::new();
        for element in elements {
            match TableReader::element(name, element, &found) {
                Some(table) => {
                    let one = read(table, &all);
                    all.extend(one);
                }
                None => found.push(element.span(), format!("expected {expects}")),
            }
        }
        if found.is_empty() { Ok(all) } else { Err(found.into()) }
    };
    let show = move |all: &Vec<T>| {
        let all: Vec<_> = all.iter().map(|one| format!("{{ {} }}", lines(one).join(", "))).collect();
        format!("[{}]", all.join(", "))
    };
    Kind::new(expects, read_all, show)
}

/// The bans.
pub fn bans() -> Kind<Vec<Ban>> {
    let expects = "[[ban]] with one of address, network and name, and optionally reason and until";
    tables("ban", expects, |table, _| read_ban(table), ban_lines)
}

/// The subject of a ban as it is written in a file.
pub fn ban_subject(ban: &Ban) -> String {
    match &ban.subject {
        BanSubject::Name(pattern) => quoted(pattern),
        subject => subject.to_string(),
    }
}

/// The end of a ban.
pub fn ban_end(ban: &Ban) -> Option<Timestamp> {
    // `read_date` made it of a timestamp.
    ban.until.and_then(|until| Timestamp::try_from(until).ok())
}

fn read_ban(mut table: TableReader<'_>) -> Option<Ban> {
    const NETWORK: &str = "a network such as \"203.0.113.0/24\" or an address";
    const DATE: &str = "a date such as 2027-01-31 or 2027-01-31T18:00:00Z";
    let network = |value: &DeValue<'_>| read_network(value.as_str()?).ok().map(CanonicalNetwork);
    let address = table.read("address", NETWORK, network).map(BanSubject::Network);
    let network = table.read("network", NETWORK, network).map(BanSubject::Network);
    let name = table.read("name", "text", DeValue::as_str).map(|name| BanSubject::Name(NamePattern::new(name)));
    let reason = table.read("reason", "text", DeValue::as_str).unwrap_or_default();
    let until = table.read("until", DATE, read_date);
    let subjects: Vec<_> = ["address", "network", "name"].iter().filter_map(|key| table.get(key)).collect();
    match subjects[..] {
        // A subject that is misspelt is not missing as well.
        [] if table.entries().all(|(_, key)| ["reason", "until"].contains(&key)) => {
            table.push_error("this [[ban]] lacks an address, a network or a name".into());
        }
        [_, _, ..] => {
            let last = subjects.iter().map(|value| value.span()).max_by_key(|span| span.start).unwrap_or_default();
            table.push_error_at(last, "a [[ban]] takes only one of address, network and name".into());
        }
        _ => {}
    }
    table.finish();
    let subject = address.or(network).or(name)?;
    Some(Ban { subject, reason: reason.into(), until: until.map(Timestamp::into) })
}

/// Parses a date-time with an offset, or a day, which stands for its beginning in UTC.
fn read_date(value: &DeValue<'_>) -> Option<Timestamp> {
    let text = match value {
        DeValue::Datetime(date) => date.to_string(),
        DeValue::String(text) => text.to_string(),
        _ => return None,
    };
    match text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == 10) {
        Some(day) => day.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp()).ok(),
        None => text.parse().ok(),
    }
}

/// The keys of a ban, one per line.
pub fn ban_lines(ban: &Ban) -> Vec<String> {
    let (key, value) = match &ban.subject {
        BanSubject::Network(network) if network.0.prefix_len() == network.0.max_prefix_len() => {
            ("address", quoted(network))
        }
        BanSubject::Network(network) => ("network", quoted(network)),
        BanSubject::Name(pattern) => ("name", quoted(pattern)),
        BanSubject::Server(server) => ("server", quoted(server.id)),
    };
    let mut lines = vec![format!("{key} = {value}")];
    if !ban.reason.is_empty() {
        lines.push(format!("reason = {}", quoted(&ban.reason)));
    }
    lines.extend(ban_end(ban).map(|until| format!("until = {until}")));
    lines
}

/// Servers that the lobby probes because they cannot register. They can refer to lists by these names.
pub fn watched_servers(names: BTreeMap<ListId, String>) -> Kind<Vec<WatchTarget>> {
    let expects = "[[watch]] with server, such as \"bloodmasters://play.example.org:6969\" or \
                   \"session://203.0.113.1:45555\", and with list, its name or UUID";
    tables("watch", expects, move |table, before| read_watched(table, before, &names), watch_lines)
}

fn read_watched(
    mut table: TableReader<'_>,
    before: &[WatchTarget],
    names: &BTreeMap<ListId, String>,
) -> Option<WatchTarget> {
    let server = table.parsed("server", read_server);
    let list = table.parsed("list", |text| read_list(text, names));
    table.require("server");
    table.require("list");
    table.finish();
    let ((server, protocol), list) = server.zip(list)?;
    let host = match server.host {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.into(),
    };
    let port = server.port.or(NonZeroU16::new(protocol.default_port()))?;
    let target = WatchTarget { host, port, protocol, list };
    if before.iter().any(|other| other.to_string() == target.to_string()) {
        table.push_error(format!("{target} is listed twice; remove one of them"));
    }
    Some(target)
}

fn read_list(text: &str, names: &BTreeMap<ListId, String>) -> Result<ListId, String> {
    let fits = |name: &&String| !name.is_empty() && name.to_lowercase() == text.trim().to_lowercase();
    let named = names.iter().find(|(_, name)| fits(name)).map(|(id, _)| *id);
    named.map_or_else(|| list_names::find(text), Ok).map_err(|_| {
        let known: Vec<_> = names.values().filter(|name| !name.is_empty()).map(quoted).collect();
        format!("expected a UUID or one of {}, not {}", known.join(", "), quoted(text))
    })
}

fn read_server(text: &str) -> Result<(ServerAddress, Protocol), String> {
    match text.parse() {
        Ok(Target::Server(server @ ServerAddress { protocol: Some(protocol), .. })) => Ok((server, protocol)),
        _ => {
            let schemes: Vec<_> = Protocol::ALL.iter().map(|protocol| format!("{protocol}://host:port")).collect();
            Err(format!("expected {}, not {}", schemes.join(" or "), quoted(text)))
        }
    }
}

/// The keys of one watched server, one per line.
pub fn watch_lines(target: &WatchTarget) -> Vec<String> {
    vec![format!("server = {}", quoted(target)), format!("list = {}", quoted(target.list))]
}
