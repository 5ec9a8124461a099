//! Numbers and times as text.

use super::server_row::ServerRow;
use std::{fmt, time::Duration};

/// A whole number with thousands separators: "10,000".
pub(crate) fn count(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun in singular or plural: "1 server", "2 servers".
pub(crate) fn count_of(number: impl fmt::Display, noun: &str) -> String {
    let number = count(number);
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A duration in the largest unit that fits: "3 h"; "new" below a minute.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "new".into(),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", count(seconds / 86_400)),
    }
}

/// Time since an event: "45 s ago", "3 h ago".
pub(super) fn ago(seconds: &u64) -> String {
    if *seconds < 60 { format!("{seconds} s ago") } else { format!("{} ago", age(*seconds)) }
}

/// A latency in whole milliseconds, rounded up, and at least 1.
pub(super) fn milliseconds(latency: Duration) -> String {
    format!("{} ms", latency.as_micros().div_ceil(1_000).max(1))
}

/// A server in one line: "ctf_truefort · 5 / 16 players · Gang Garrison 2 2.9".
pub(super) fn summary(server: &ServerRow<'_>) -> String {
    let game = format!("{} {}", server.game(), server.row.version);
    let bots = server.bots().unwrap_or_default();
    let players = format!("{} players {bots}", server.players());
    let parts = [&*server.row.map, players.trim(), game.trim()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// A share in percent, rounded down: only a share of 1 is "100 %".
pub(super) fn percent(share: f64) -> String {
    let tenths = (share.clamp(0.0, 1.0) * 1_000.0).floor() / 10.0;
    if tenths >= 100.0 { "100 %".into() } else { format!("{tenths:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_formatted() {
        assert_eq!([0, 7, 999, 1_000, 12_345, 1_234_567].map(count), ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!((count_of(1, "server"), count_of(0, "server")), ("1 server".into(), "0 servers".into()));
        let ages = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 86_400_000].map(age);
        assert_eq!(ages, ["new", "new", "1 min", "59 min", "1 h", "23 h", "1 d", "1,000 d"]);
        let latencies = [0, 1, 1_000, 1_001, 25_400].map(|micros| milliseconds(Duration::from_micros(micros)));
        assert_eq!(latencies, ["1 ms", "1 ms", "1 ms", "2 ms", "26 ms"]);
        assert_eq!([0.0, 0.5, 0.9999, 1.0, 7.0].map(percent), ["0.0 %", "50.0 %", "99.9 %", "100 %", "100 %"]);
    }
}
