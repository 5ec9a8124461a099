//! Formats responses of the admin API as text.

use crate::output::{
    table::{Cell, Column, Table},
    terminal::Terminal,
};
use rallypoint_wire::text;
use serde_json::Value;

const fn column(title: &'static str, least: usize, drop: u8) -> Column {
    Column { title, right: false, least, preferred: least, drop, if_different: false }
}

pub fn bans(answer: &Value, terminal: Terminal) -> String {
    let columns = [
        column("ID", 2, 0),
        column("SUBJECT", 12, 0),
        column("UNTIL", 20, 2),
        column("SOURCE", 5, 3),
        column("REASON", 8, 1),
    ];
    let row = |ban: &Value| {
        let id = ban["id"].as_u64().map_or("-".into(), |id| id.to_string());
        let until = ban["until"].as_str().map_or("permanent".into(), sanitize);
        let until = if ban["in_force"] == false { format!("expired {until}") } else { until };
        [id, subject(ban), until, sanitized(&ban["source"]), sanitized(&ban["reason"])]
    };
    table(&columns, &answer["bans"], row, terminal, "no bans")
}

pub fn notes(answer: &Value, terminal: Terminal) -> String {
    let columns = [column("ID", 2, 0), column("ABOUT", 12, 0), column("WRITTEN", 20, 1), column("NOTE", 8, 0)];
    let row = |note: &Value| {
        let id = note["id"].as_u64().unwrap_or(0).to_string();
        [id, sanitized(&note["about"]), sanitized(&note["time"]), sanitized(&note["text"])]
    };
    table(&columns, &answer["notes"], row, terminal, "no notes")
}

pub fn audit(answer: &Value, terminal: Terminal) -> String {
    let columns = [
        column("TIME", 20, 0),
        column("FROM", 9, 2),
        column("ACTION", 6, 0),
        column("ABOUT", 12, 0),
        column("UNTIL", 20, 3),
        column("REASON", 8, 1),
    ];
    let row = |entry: &Value| {
        let [from, action, about, reason] = ["from", "action", "about", "reason"].map(|key| sanitized(&entry[key]));
        [sanitized(&entry["time"]), from, action, about, sanitized(&entry["until"]), reason]
    };
    table(&columns, &answer["entries"], row, terminal, "the audit log is empty")
}

/// One ban in one line.
pub fn ban(ban: &Value) -> String {
    let until = ban["until"].as_str().map_or("permanently".into(), |until| format!("until {}", sanitize(until)));
    format!("{} {until} (ban {})", subject(ban), ban["id"])
}

pub fn unlisted(answer: &Value) -> String {
    let name = sanitized(&answer["name"]);
    let banned: Vec<_> = answer["banned"].as_array().into_iter().flatten().map(sanitized).collect();
    let also = if banned.is_empty() { String::new() } else { format!("; also banned: {}", banned.join(", ")) };
    format!("\"{name}\" is unlisted until {}{also}\n", sanitized(&answer["until"]))
}

fn table<const N: usize>(
    columns: &[Column; N],
    rows: &Value,
    row: impl Fn(&Value) -> [String; N],
    terminal: Terminal,
    empty: &str,
) -> String {
    let mut table = Table::new(columns);
    for cells in rows.as_array().into_iter().flatten().map(row) {
        table.push(cells.into_iter().map(|text| Cell { text, ..Cell::default() }).collect());
    }
    if table.is_empty() { format!("{empty}\n") } else { table.render(terminal) }
}

pub fn subject(ban: &Value) -> String {
    match (&ban["network"], &ban["name"]) {
        (Value::Null, Value::Null) => format!("server \"{}\"", sanitized(&ban["server"]["name"])),
        (Value::Null, name) => format!("name {}", sanitized(name)),
        (network, _) => sanitized(network),
    }
}

/// Text from the network, without control characters.
fn sanitized(value: &Value) -> String {
    sanitize(value.as_str().unwrap_or_default())
}

fn sanitize(text: &str) -> String {
    text::sanitize(text).into_owned()
}
