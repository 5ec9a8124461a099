//! Durations and sizes as users write them, in files and flags.

use jiff::SignedDuration;
use std::{ops::RangeInclusive, time::Duration};

const DAY: u64 = 86_400;

/// Units of memory and files.
const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Units of data that is transmitted.
const DECIMAL: [(&str, u64); 4] = [("TB", 10_u64.pow(12)), ("GB", 10_u64.pow(9)), ("MB", 10_u64.pow(6)), ("kB", 1_000)];

/// Short forms: as with systemd and nginx, they are binary units.
const SHORT: [(&str, u64); 6] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("B", 1), ("", 1)];

/// Parses a duration such as `500ms`, `70s`, `1h 30m`, `7d` or `2w`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let whole = |unit: char, seconds: u64| {
        let number = text.strip_suffix(unit)?.trim().parse::<u64>().ok()?;
        number.checked_mul(seconds).map(Duration::from_secs)
    };
    let clock = || text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    whole('d', DAY).or_else(|| whole('w', 7 * DAY)).or_else(clock)
}

/// Parses a duration within a range.
pub fn duration_within(text: &str, range: RangeInclusive<Duration>) -> Option<Duration> {
    parse_duration(text).filter(|time| range.contains(time))
}

/// A duration in the largest unit in which it is an integer; a day is 24 hours.
pub fn show_duration(time: Duration) -> String {
    let ms = time.as_millis();
    let day = u128::from(DAY) * 1_000;
    match ms {
        0 => "0s".into(),
        _ if ms > day && ms.is_multiple_of(day) => format!("{}d", ms / day),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

/// Parses a size in bytes: `4096`, `64KiB`, `1.5 GiB`, `40kB`, `4G`. Upper and lower case are the same.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let mut units = BINARY.iter().chain(&DECIMAL).chain(&SHORT);
    let (_, unit) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    let number = number.replace('_', "");
    let (whole, decimals) = match number.split_once('.') {
        // A part of a byte is a mistake; more decimals than these are never needed, and the product below fits.
        Some((whole, digits)) if *unit > 1 && (1..=6).contains(&digits.len()) => {
            (whole, digits.parse::<u64>().ok()? * unit / 10_u64.pow(digits.len() as u32))
        }
        Some(_) => return None,
        None => (&*number, 0),
    };
    whole.parse::<u64>().ok()?.checked_mul(*unit)?.checked_add(decimals)
}

/// A size of at least 1 MiB in the largest binary unit in which it has at most one decimal. `None` if there is no such unit.
pub fn show_size(bytes: u64) -> Option<String> {
    in_units(bytes, &BINARY[..3])
}

/// A number of bytes for transmission, in the largest decimal unit in which it has at most one decimal.
pub fn show_traffic(bytes: u64) -> String {
    in_units(bytes, &DECIMAL).unwrap_or_else(|| bytes.to_string())
}

fn in_units(bytes: u64, units: &[(&str, u64)]) -> Option<String> {
    let tenths = u128::from(bytes) * 10;
    let fits = |(_, unit): &&(&str, u64)| bytes >= *unit && tenths.is_multiple_of((*unit).into());
    let (name, unit) = units.iter().find(fits)?;
    let tenths = tenths / u128::from(*unit);
    Some(match tenths % 10 {
        0 => format!("{}{name}", tenths / 10),
        decimal => format!("{}.{decimal}{name}", tenths / 10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_from_milliseconds_to_weeks() {
        for (text, ms) in [
            ("500ms", 500),
            ("5s", 5_000),
            ("1h 30m", 5_400_000),
            ("7d", 604_800_000),
            ("2w", 1_209_600_000),
            ("0d", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "7", "d", "-1h", "-1d", "2y", "2 days ago", "1\u{e4}", "99999999999999999999w", "1e9d"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_shown_as_a_person_writes_them() {
        for (text, seconds) in [("70s", 70), ("2m", 120), ("24h", 86_400), ("36h", 129_600), ("365d", 365 * 86_400)] {
            assert_eq!(show_duration(Duration::from_secs(seconds)), text);
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)));
        }
        assert_eq!(
            (show_duration(Duration::ZERO), show_duration(Duration::from_millis(1_500))),
            ("0s".into(), "1500ms".into())
        );
    }

    #[test]
    fn sizes_are_numbers_of_bytes_or_have_a_unit() {
        for (text, bytes) in [
            ("4096", 4_096),
            ("1_048_576", 1 << 20),
            ("4GiB", 4 << 30),
            ("4 gib", 4 << 30),
            ("4G", 4 << 30),
            ("1.5MiB", 3 << 19),
            ("512 MB", 512_000_000),
            ("64k", 65_536),
            ("40kB", 40_000),
            ("1.25kB", 1_250),
            ("100B", 100),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for wrong in [
            "",
            "GiB",
            "1.5",
            "1.B",
            "-1",
            "4 giga",
            "1e9",
            "4.GiB",
            ".5GiB",
            "99999999999999999999",
            "16777216TiB",
            "4GiB 2MiB",
        ] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (bytes, shown) in [(2 << 30, "2GiB"), (512 << 20, "512MiB"), (1 << 40, "1TiB"), (3 << 29, "1.5GiB")] {
            assert_eq!(show_size(bytes).as_deref(), Some(shown));
            assert_eq!(parse_size(shown), Some(bytes));
        }
        assert_eq!((show_size(4_096), show_size((1 << 20) + 1)), (None, None));
        for (bytes, shown) in
            [(40_000, "40kB"), (1_200_000, "1.2MB"), (8_000_000, "8MB"), (600, "600"), (1_234, "1234")]
        {
            assert_eq!(show_traffic(bytes), shown);
            assert_eq!(parse_size(shown), Some(bytes));
        }
    }
}
