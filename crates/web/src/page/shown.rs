//! Numbers and times as people read them.

use std::{fmt, time::Duration};

/// A whole number with commas: 10,000.
pub(super) fn count(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something: "1 server", "2 servers".
pub(super) fn many(number: impl fmt::Display, thing: &str) -> String {
    let number = count(number);
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// How long, in one unit: "3 h".
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => "now".into(),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", count(seconds / 86_400)),
    }
}

/// How long ago, in words.
pub(super) fn ago(seconds: &u64) -> String {
    if *seconds < 60 { format!("{seconds} s ago") } else { format!("{} ago", span(*seconds)) }
}

/// A latency in whole milliseconds: never 0.
pub(super) fn milliseconds(latency: Duration) -> String {
    format!("{} ms", latency.as_micros().div_ceil(1_000).max(1))
}

/// A share in percent; what is not quite everything is not 100.
pub(super) fn percent(share: f64) -> String {
    let tenths = (share.clamp(0.0, 1.0) * 1_000.0).floor() / 10.0;
    if tenths >= 100.0 { "100 %".into() } else { format!("{tenths:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!([0, 7, 999, 1_000, 12_345, 1_234_567].map(count), ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!((many(1, "server"), many(0, "server")), ("1 server".into(), "0 servers".into()));
        let spans = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 86_400_000].map(span);
        assert_eq!(spans, ["now", "now", "1 min", "59 min", "1 h", "23 h", "1 d", "1,000 d"]);
        let latencies = [0, 1, 1_000, 1_001, 25_400].map(|micros| milliseconds(Duration::from_micros(micros)));
        assert_eq!(latencies, ["1 ms", "1 ms", "1 ms", "2 ms", "26 ms"]);
        assert_eq!([0.0, 0.5, 0.9999, 1.0, 7.0].map(percent), ["0.0 %", "50.0 %", "99.9 %", "100 %", "100 %"]);
    }
}
