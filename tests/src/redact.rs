//! Replaces the parts of the program's output that differ between runs.

use crate::mock_server::MockServer;
use serde_json::Value;

/// Replaces the ports of `servers` by `PORT` and the value of every ping by `#`.
#[must_use]
pub fn redact_ports_and_pings(text: &str, servers: &[&MockServer]) -> String {
    let mut text = text.to_owned();
    for server in servers {
        text = text.replace(&format!(":{}", server.port()), ":PORT");
    }
    let words = text.split_inclusive([' ', '\n', ',', '/']).collect::<Vec<_>>();
    let is_number = |word: &str| word.trim_end_matches(' ').parse::<f64>().is_ok();
    let is_unit = |word: &&str| word.trim_end_matches([',', ' ', '\n']) == "ms";
    let mut redacted = String::new();
    for (n, word) in words.iter().enumerate() {
        let is_ping = is_number(word) && words.get(n + 1).is_some_and(is_unit);
        redacted += if is_ping { "# " } else { word };
    }
    redacted
}

/// Collapses the spaces that align columns: their number depends on the width of the pings.
#[must_use]
pub fn collapse_spaces(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// Replaces every measured time in a JSON document by `#`.
pub fn redact_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if matches!(key.as_str(), "ping_ms" | "connect_ms") && value.is_f64() {
                    *value = "#".into();
                } else {
                    redact_times(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact_times),
        _ => {}
    }
}
