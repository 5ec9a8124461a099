//! Ranges in the form of Nagios plugins.

use std::{fmt, str::FromStr};

/// A range: a value outside raises the alarm, or, with `@`, a value inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    from: f64,
    to: f64,
    inside: bool,
    text: String,
}

impl Range {
    /// Whether a value raises the alarm.
    pub fn alerts(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value) == self.inside
    }

    /// The reason for an alarm, as the end of a sentence.
    pub fn describe(&self) -> String {
        format!("is {} {}", if self.inside { "inside" } else { "outside" }, self.text.trim_start_matches('@'))
    }
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected a range such as 10, 10:, ~:10, 10:20 or @10:20";
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(expected);
        let (inside, rest) = text.strip_prefix('@').map_or((false, text), |rest| (true, rest));
        let (from, to) = match rest.split_once(':') {
            Some((from, to)) => {
                let from = match from {
                    "~" => f64::NEG_INFINITY,
                    "" => 0.0,
                    from => number(from)?,
                };
                (from, if to.is_empty() { f64::INFINITY } else { number(to)? })
            }
            None => (0.0, number(rest)?),
        };
        if from > to {
            return Err("the range ends before it begins: the smaller number comes first");
        }
        Ok(Self { from, to, inside, text: text.to_owned() })
    }
}

/// As it was written.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_nagios_plugins() {
        for (text, quiet, alarm) in [
            ("10", &[0.0, 5.0, 10.0][..], &[-1.0, 10.1][..]),
            ("10:", &[10.0, 1e9], &[9.9, -1.0]),
            (":10", &[0.0, 10.0], &[-1.0, 11.0]),
            ("~:10", &[-1e9, 10.0], &[10.1]),
            ("10:20", &[10.0, 20.0], &[9.0, 21.0]),
            ("@10:20", &[9.0, 21.0], &[10.0, 20.0]),
            ("-5:-1", &[-3.0], &[0.0]),
        ] {
            let range: Range = text.parse().unwrap();
            assert_eq!(range.to_string(), text);
            assert!(quiet.iter().all(|value| !range.alerts(*value)), "{text}");
            assert!(alarm.iter().all(|value| range.alerts(*value)), "{text}");
        }
        for wrong in ["", "x", "@", "1:2:3", "20:10", "nan", "1:inf", "~"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
    }
}
