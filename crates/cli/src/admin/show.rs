//! What the lobby answers, for people.

use crate::output::{
    table::{Cell, Column, Table},
    terminal::Terminal,
};
use jiff::Timestamp;
use rallypoint_wire::text;
use serde_json::Value;

const fn column(title: &'static str, least: usize, drop: u8) -> Column {
    Column { title, right: false, least, drop }
}

pub fn bans(answer: &Value, terminal: Terminal) -> String {
    let columns = [
        column("ID", 2, 0),
        column("WHO", 12, 0),
        column("UNTIL", 20, 2),
        column("SOURCE", 5, 3),
        column("REASON", 8, 1),
    ];
    let row = |ban: &Value| {
        let id = ban["id"].as_u64().map_or("-".into(), |id| id.to_string());
        let until = ban["until"].as_u64().map_or("for good".into(), time);
        let until = if ban["in_force"] == false { format!("ended {until}") } else { until };
        [id, whom(ban), until, words(&ban["source"]), words(&ban["reason"])]
    };
    table(&columns, &answer["bans"], row, terminal, "nobody is banned")
}

pub fn notes(answer: &Value, terminal: Terminal) -> String {
    let columns = [column("ID", 2, 0), column("ABOUT", 12, 0), column("WRITTEN", 20, 1), column("NOTE", 8, 0)];
    let row = |note: &Value| {
        let id = note["id"].as_u64().unwrap_or(0).to_string();
        [id, words(&note["about"]), moment(&note["time"]), words(&note["text"])]
    };
    table(&columns, &answer["notes"], row, terminal, "there are no notes")
}

pub fn audit(answer: &Value, terminal: Terminal) -> String {
    let columns = [
        column("TIME", 20, 0),
        column("FROM", 9, 2),
        column("WHAT", 6, 0),
        column("ABOUT", 12, 0),
        column("UNTIL", 20, 3),
        column("WHY", 8, 1),
    ];
    let row = |entry: &Value| {
        let [from, action, about, reason] = ["from", "action", "about", "reason"].map(|key| words(&entry[key]));
        [moment(&entry["time"]), from, action, about, moment(&entry["until"]), reason]
    };
    table(&columns, &answer["entries"], row, terminal, "nothing was done yet")
}

/// One ban in a line.
pub fn ban(ban: &Value) -> String {
    let until = ban["until"].as_u64().map_or("for good".into(), |until| format!("until {}", time(until)));
    format!("{} {until} (ban {})", whom(ban), ban["id"])
}

pub fn unlisted(answer: &Value) -> String {
    let name = words(&answer["name"]);
    let banned: Vec<_> = answer["banned"].as_array().into_iter().flatten().map(words).collect();
    let also = if banned.is_empty() { String::new() } else { format!("; banned for as long: {}", banned.join(", ")) };
    format!("\"{name}\" is off the list until {}{also}\n", moment(&answer["until"]))
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

fn whom(ban: &Value) -> String {
    match (&ban["network"], &ban["name"]) {
        (Value::Null, Value::Null) => format!("server \"{}\"", words(&ban["server"]["name"])),
        (Value::Null, name) => format!("name {}", words(name)),
        (network, _) => words(network),
    }
}

/// Text that came over the network.
fn words(value: &Value) -> String {
    text::sanitize(value.as_str().unwrap_or_default()).into_owned()
}

fn moment(value: &Value) -> String {
    value.as_u64().map(time).unwrap_or_default()
}

fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}
