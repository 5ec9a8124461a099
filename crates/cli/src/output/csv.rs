//! Comma-separated values (RFC 4180, with plain line ends).

use super::FailedTarget;
use rallypoint_query::{ProbeError, ScannedServer, proto::Protocol};

/// The names of the fields.
const FIELDS: [&str; 16] = [
    "target",
    "address",
    "protocol",
    "ping_ms",
    "name",
    "game",
    "mode",
    "map",
    "version",
    "players",
    "max_players",
    "bots",
    "spectators",
    "password",
    "complete",
    "error",
];

/// The first line.
pub fn header() -> String {
    line(FIELDS.map(str::to_owned))
}

/// The line of a server.
pub fn server(record: &ScannedServer) -> String {
    let info = &record.info;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    line([
        record.target.clone(),
        optional(record.address),
        record.protocol.map(Protocol::as_str).unwrap_or_default().into(),
        optional(record.ping_ms()),
        text(&info.name),
        record.game().unwrap_or_default().into(),
        text(&info.mode),
        text(&info.map),
        text(&info.version),
        optional(info.players),
        optional(info.max_players),
        optional(info.bots),
        optional(info.spectators),
        optional(info.password),
        optional(record.reply.as_ref().map(|reply| reply.missing.is_empty())),
        record.error.as_ref().map(ProbeError::code).unwrap_or_default().into(),
    ])
}

/// The line of a target without a result.
pub fn failed_target(failed: &FailedTarget) -> String {
    let mut fields = [const { String::new() }; FIELDS.len()];
    fields[0].clone_from(&failed.target);
    fields[1] = optional(failed.address);
    fields[FIELDS.len() - 1] = failed.error.into();
    line(fields)
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A line without its end.
fn line(fields: [String; FIELDS.len()]) -> String {
    fields.map(|field| quoted(without_formula(&field))).join(",")
}

/// A field in quotes, if it needs them.
fn quoted(field: String) -> String {
    match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}

/// A field that a spreadsheet would evaluate as a formula is preceded by an apostrophe: names come from untrusted servers.
fn without_formula(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}") } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> String {
        let mut fields = [const { String::new() }; FIELDS.len()];
        fields[0] = name.into();
        line(fields).trim_end_matches(',').to_owned()
    }

    #[test]
    fn fields_cannot_break_a_line_or_be_evaluated() {
        assert_eq!(header().split(',').collect::<Vec<_>>(), FIELDS);
        assert_eq!(name("plain 七"), "plain 七");
        assert_eq!(name("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(name("=cmd()"), "'=cmd()");
        assert_eq!(name("-1.5"), "-1.5");
        assert_eq!(name("-=<[clan]>=-"), "'-=<[clan]>=-");
    }
}
