//! Comma-separated values (RFC 4180, with plain line ends).

use super::record::{Missed, Record};
use crate::ask::Protocol;

/// The first line.
pub const HEADER: &str = "target,address,protocol,ping_ms,name,game,mode,map,version,players,max_players,bots,\
                          spectators,password,complete,error";

/// A line for a server.
pub fn server(record: &Record) -> String {
    let info = &record.info;
    let (answer, text) = (record.answer.as_ref(), |text: &Option<String>| text.clone().unwrap_or_default());
    line(&[
        record.target.clone(),
        number(record.address),
        record.protocol.map(Protocol::as_str).unwrap_or_default().into(),
        number(answer.map(|answer| answer.ping_ms)),
        text(&info.name),
        record.game().unwrap_or_default().into(),
        text(&info.mode),
        text(&info.map),
        text(&info.version),
        number(info.players),
        number(info.max_players),
        number(info.bots),
        number(info.spectators),
        number(info.password),
        number(answer.map(|answer| answer.missing.is_empty())),
        record.trouble.as_ref().map(crate::ask::Trouble::code).unwrap_or_default().into(),
    ])
}

/// A line for a target without an answer.
pub fn missed(missed: &Missed) -> String {
    let mut fields = vec![String::new(); HEADER.split(',').count()];
    fields[0].clone_from(&missed.target);
    fields[1] = number(missed.address);
    if let Some(last) = fields.last_mut() {
        *last = missed.error.into();
    }
    line(&fields)
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",")
}

/// A field as it stands in a line. What a spreadsheet would take for a formula gets an apostrophe before it: names come from
/// strangers.
fn quoted(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let field = if is_formula { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cannot_break_a_line_or_be_run() {
        assert_eq!(quoted("plain 七"), "plain 七");
        assert_eq!(quoted("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(quoted("=cmd()"), "'=cmd()");
        assert_eq!(quoted("-1.5"), "-1.5");
        assert_eq!(quoted("-=<[clan]>=-"), "'-=<[clan]>=-");
    }
}
