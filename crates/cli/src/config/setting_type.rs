//! The types of settings: how their values are parsed from TOML and written back.

use ipnet::IpNet;
use jiff::SignedDuration;
use rallypoint_limit::Rate;
use std::{
    fmt,
    marker::PhantomData,
    net::{IpAddr, SocketAddr},
    ops::{Range, RangeInclusive},
    path::PathBuf,
    time::Duration,
};
use toml::{Spanned, de::DeValue};

/// A TOML value with its position in the file.
pub type Value<'a> = Spanned<DeValue<'a>>;

/// The problem with a value, and the part of the value that has it, if not the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    pub message: String,
    pub at: Option<Range<usize>>,
}

/// Parses and writes the value of a setting.
pub trait SettingType {
    /// The Rust type of the value.
    type Of;

    /// The valid values, as in "expected ...".
    fn expects(&self) -> String;

    /// Parses a value into `target`.
    ///
    /// # Errors
    /// Everything that is wrong with the value; then `target` is unchanged.
    fn set(&self, target: &mut Self::Of, value: &Value<'_>) -> Result<(), Vec<ValueError>>;

    /// The value in TOML syntax.
    fn show(&self, value: &Self::Of) -> String;
}

/// `true` or `false`.
pub struct BoolType;

/// An integer within a range.
pub struct IntegerType<T>(pub RangeInclusive<u64>, pub PhantomData<T>);

/// A duration: `"70s"`, `"5m"`, `"1h 30m"`.
pub struct DurationType(pub RangeInclusive<Duration>);

/// One of a fixed set of words.
pub struct ChoiceType<T: 'static>(pub &'static [(&'static str, T)]);

/// A file or directory, or an empty string for none.
pub struct PathType(pub &'static str);

/// A rate limit, `"10/s burst 300"`, or `"off"`.
pub struct RateLimitType;

/// A list of values: a TOML array, or one string with commas.
pub struct ListType<T> {
    /// Description of the elements, in the plural.
    pub of: &'static str,
    pub read: fn(&str) -> Result<T, String>,
    pub show: fn(&T) -> String,
    /// Whether the list can be empty, written as `off` or as an empty array.
    pub or_off: bool,
}

impl ValueError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None }
    }

    /// Sets the wrong part of the value, unless it is set already.
    pub fn at(self, at: Range<usize>) -> Self {
        Self { at: self.at.or(Some(at)), ..self }
    }
}

impl From<ValueError> for Vec<ValueError> {
    fn from(error: ValueError) -> Self {
        vec![error]
    }
}

/// Collects all values, or the errors of all results.
pub fn all<T>(results: impl Iterator<Item = Result<T, Vec<ValueError>>>) -> Result<Vec<T>, Vec<ValueError>> {
    let mut values = Vec::new();
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(more) => errors.extend(more),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

/// The type of integers within a range.
pub fn number<T>(range: RangeInclusive<u64>) -> IntegerType<T> {
    IntegerType(range, PhantomData)
}

/// Text as a TOML string.
pub fn quoted(text: impl fmt::Display) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// "not ...": the actual value, for the end of a sentence that begins with "expected".
pub fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("not {}", quoted(text)),
        DeValue::Integer(number) => format!("not {number}"),
        DeValue::Float(number) => format!("not {number}"),
        DeValue::Boolean(value) => format!("not {value}"),
        DeValue::Datetime(date) => format!("not the date {date}"),
        DeValue::Array(_) => "not a list".into(),
        DeValue::Table(_) => "not a table".into(),
    }
}

fn unexpected(kind: &impl SettingType, value: &Value<'_>) -> ValueError {
    ValueError::new(format!("expected {}, {}", kind.expects(), found(value.get_ref())))
}

impl SettingType for BoolType {
    type Of = bool;

    fn expects(&self) -> String {
        "true or false".into()
    }

    fn set(&self, target: &mut bool, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        *target = value.get_ref().as_bool().ok_or_else(|| unexpected(self, value))?;
        Ok(())
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }
}

impl<T: TryFrom<u64> + Copy + fmt::Display> SettingType for IntegerType<T> {
    type Of = T;

    fn expects(&self) -> String {
        match (*self.0.start(), *self.0.end()) {
            (min, u64::MAX) => format!("a number of at least {min}"),
            (min, max) => format!("a number from {min} to {max}"),
        }
    }

    fn set(&self, target: &mut T, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let number = value.get_ref().as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        let number = number.filter(|number| self.0.contains(number)).and_then(|number| T::try_from(number).ok());
        *target = number.ok_or_else(|| unexpected(self, value))?;
        Ok(())
    }

    fn show(&self, value: &T) -> String {
        value.to_string()
    }
}

impl SettingType for DurationType {
    type Of = Duration;

    fn expects(&self) -> String {
        let min = show_time(*self.0.start());
        let max = show_time(*self.0.end());
        format!("a duration from \"{min}\" to \"{max}\"")
    }

    fn set(&self, target: &mut Duration, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let time = value.get_ref().as_str().and_then(|text| text.parse::<SignedDuration>().ok());
        let time = time.and_then(|time| Duration::try_from(time).ok()).filter(|time| self.0.contains(time));
        *target = time.ok_or_else(|| unexpected(self, value))?;
        Ok(())
    }

    fn show(&self, value: &Duration) -> String {
        quoted(show_time(*value))
    }
}

/// A duration in the largest unit in which it is an integer.
pub fn show_time(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0 => "0s".into(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

impl<T: Copy + PartialEq> SettingType for ChoiceType<T> {
    type Of = T;

    fn expects(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|(word, _)| quoted(word)).collect();
        match &words[..] {
            [some @ .., last] if !some.is_empty() => format!("{} or {last}", some.join(", ")),
            _ => words.concat(),
        }
    }

    fn set(&self, target: &mut T, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let text = value.get_ref().as_str().unwrap_or_default();
        let word = self.0.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        *target = word.ok_or_else(|| unexpected(self, value))?.1;
        Ok(())
    }

    fn show(&self, value: &T) -> String {
        quoted(self.0.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| word))
    }
}

impl SettingType for PathType {
    type Of = Option<PathBuf>;

    fn expects(&self) -> String {
        self.0.into()
    }

    fn set(&self, target: &mut Option<PathBuf>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let text = value.get_ref().as_str().ok_or_else(|| unexpected(self, value))?;
        *target = (!text.is_empty()).then(|| text.into());
        Ok(())
    }

    fn show(&self, value: &Option<PathBuf>) -> String {
        quoted(value.as_deref().map(std::path::Path::display).map(|path| path.to_string()).unwrap_or_default())
    }
}

impl SettingType for RateLimitType {
    type Of = Option<Rate>;

    fn expects(&self) -> String {
        r#"a rate limit such as "10/s burst 300" or "600/m burst 50", or "off""#.into()
    }

    fn set(&self, target: &mut Option<Rate>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let text = value.get_ref().as_str().ok_or_else(|| unexpected(self, value))?;
        if text.trim().eq_ignore_ascii_case("off") {
            *target = None;
            return Ok(());
        }
        let rate = read_rate(text).ok_or_else(|| unexpected(self, value))?;
        rate.validate().map_err(|error| ValueError::new(error.to_string()))?;
        *target = Some(rate);
        Ok(())
    }

    fn show(&self, value: &Option<Rate>) -> String {
        let Some(Rate { count, per, burst }) = value else { return quoted("off") };
        let unit = UNITS.iter().find(|(_, seconds)| per.as_secs() == *seconds).map_or("s", |(unit, _)| unit);
        quoted(format!("{count}/{unit} burst {burst}"))
    }
}

const UNITS: [(&str, u64); 6] = [("s", 1), ("m", 60), ("h", 3_600), ("sec", 1), ("min", 60), ("hour", 3_600)];

fn read_rate(text: &str) -> Option<Rate> {
    let (rate, burst) = text.split_once("burst")?;
    let (count, unit) = rate.trim().trim_end_matches(',').split_once('/')?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    let number = |text: &str| text.trim().replace('_', "").parse().ok();
    Some(Rate { count: number(count)?, per: Duration::from_secs(*seconds), burst: number(burst)? })
}

impl<T> SettingType for ListType<T> {
    type Of = Vec<T>;

    fn expects(&self) -> String {
        let off = if self.or_off { ", or \"off\"" } else { "" };
        format!("a list of {}{off}", self.of)
    }

    fn set(&self, target: &mut Vec<T>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let read = |text: &str| (self.read)(text.trim()).map_err(ValueError::new);
        let new: Vec<T> = match value.get_ref() {
            DeValue::String(text) if self.or_off && text.trim().eq_ignore_ascii_case("off") => Vec::new(),
            DeValue::String(text) => {
                all(text.split(',').filter(|part| !part.trim().is_empty()).map(|part| read(part).map_err(Vec::from)))?
            }
            DeValue::Array(values) => {
                let one = |value: &Value<'_>| match value.get_ref().as_str() {
                    Some(text) => read(text).map_err(|error| vec![error.at(value.span())]),
                    None => Err(vec![unexpected(self, value).at(value.span())]),
                };
                all(values.iter().map(one))?
            }
            _ => return Err(vec![unexpected(self, value)]),
        };
        if new.is_empty() && !self.or_off {
            return Err(vec![ValueError::new(format!("expected {}, not an empty list", self.expects()))]);
        }
        *target = new;
        Ok(())
    }

    fn show(&self, value: &Vec<T>) -> String {
        let values: Vec<_> = value.iter().map(|value| quoted((self.show)(value))).collect();
        format!("[{}]", values.join(", "))
    }
}

/// Parses an address and a port to listen on.
pub fn read_socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("expected an address and a port such as \"0.0.0.0:29944\" or \"[::]:29944\", not {}", quoted(text))
    })
}

/// Parses a network, or an address as a network of one.
pub fn read_network(text: &str) -> Result<IpNet, String> {
    let one = text.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
    one.or_else(|_| text.parse::<IpNet>().map(|net| net.trunc()))
        .map_err(|_| format!("expected a network such as \"203.0.113.0/24\" or an address, not {}", quoted(text)))
}

/// A network as it is written: a plain address if it contains only one.
pub fn show_network(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}
