//! The kinds of settings: what is valid, how it is read from TOML, and how it is written back.

use crate::{
    toml_file::{FoundErrors, Value, found, plain, quoted},
    units,
};
use rallypoint_limit::Rate;
use rallypoint_wire::text::sanitize;
use std::{
    fmt::{self, Display},
    net::SocketAddr,
    ops::{Range, RangeInclusive},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};
use toml::de::DeValue;

/// The problem with a value, and the part of the value that has it, if not the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    pub message: String,
    pub at: Option<Range<usize>>,
}

/// Why a value is invalid.
pub enum Invalid {
    /// It is not what the kind expects.
    Unexpected,
    /// Another reason.
    Because(String),
    /// The errors of its parts.
    Parts(Vec<ValueError>),
}

/// Parses a value.
type Read<T> = Box<dyn Fn(&Value<'_>) -> Result<T, Invalid> + Send + Sync>;

/// A kind of setting with values of this type.
pub struct Kind<T> {
    /// The valid values, as in "expected ...".
    pub expects: String,
    /// Whether messages may repeat an invalid value: not if it could be a secret, or is long.
    is_repeated: bool,
    read: Read<T>,
    show: Box<dyn Fn(&T) -> String + Send + Sync>,
    /// What a new value does to the one before.
    merge: fn(&mut T, T),
}

impl ValueError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None }
    }
}

impl From<FoundErrors> for Invalid {
    fn from(found: FoundErrors) -> Self {
        let error = |(at, message)| ValueError { message, at: Some(at) };
        Self::Parts(found.into_inner().into_iter().map(error).collect())
    }
}

impl<T: 'static> Kind<T> {
    pub fn new(
        expects: impl Into<String>,
        read: impl Fn(&Value<'_>) -> Result<T, Invalid> + Send + Sync + 'static,
        show: impl Fn(&T) -> String + Send + Sync + 'static,
    ) -> Self {
        let merge = |old: &mut T, new| *old = new;
        Self { expects: expects.into(), is_repeated: true, read: Box::new(read), show: Box::new(show), merge }
    }

    /// Values that are written as text in a form of their own.
    pub fn text(
        expects: impl Into<String>,
        read: impl Fn(&str) -> Result<T, Invalid> + Send + Sync + 'static,
        show: impl Fn(&T) -> String + Send + Sync + 'static,
    ) -> Self {
        let read_value = move |value: &Value<'_>| read(value.get_ref().as_str().ok_or(Invalid::Unexpected)?);
        Self::new(expects, read_value, move |value| quoted(show(value)))
    }

    /// The kind whose messages do not repeat the value.
    pub fn unrepeated(self) -> Self {
        Self { is_repeated: false, ..self }
    }

    /// The kind in which a new value is combined with the one before.
    pub fn merged_by(self, merge: fn(&mut T, T)) -> Self {
        Self { merge, ..self }
    }

    /// Parses a value into `target`.
    ///
    /// # Errors
    /// Everything that is wrong with the value; then `target` is unchanged.
    pub fn set(&self, target: &mut T, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        match (self.read)(value) {
            Ok(new) => {
                (self.merge)(target, new);
                Ok(())
            }
            Err(Invalid::Unexpected) if self.is_repeated => {
                Err(vec![ValueError::new(format!("expected {}, {}", self.expects, found(value.get_ref())))])
            }
            Err(Invalid::Unexpected) => Err(vec![ValueError::new(format!("expected {}", self.expects))]),
            Err(Invalid::Because(why)) => Err(vec![ValueError::new(why)]),
            Err(Invalid::Parts(errors)) => Err(errors),
        }
    }

    /// The value in TOML syntax.
    pub fn show(&self, value: &T) -> String {
        (self.show)(value)
    }
}

/// `true` or `false`.
pub fn switch() -> Kind<bool> {
    Kind::new("true or false", |value| plain(value.get_ref()).ok_or(Invalid::Unexpected), bool::to_string)
}

/// An integer within a range.
pub fn number<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    let expects = match (range.start(), range.end()) {
        (min, &u64::MAX) => format!("a number of at least {min}"),
        (min, max) => format!("a number from {min} to {max}"),
    };
    Kind::new(expects, move |value| within(plain(value.get_ref()), &range), T::to_string)
}

fn within<T: TryFrom<u64>>(number: Option<u64>, range: &RangeInclusive<u64>) -> Result<T, Invalid> {
    let number = number.filter(|number| range.contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or(Invalid::Unexpected)
}

/// A number of bytes: an integer, or text with a unit.
pub fn size<T: TryFrom<u64> + Copy + 'static>(range: RangeInclusive<u64>) -> Kind<T>
where
    u64: TryFrom<T>,
{
    let show = |bytes: u64| units::show_size(bytes).map_or_else(|| bytes.to_string(), quoted);
    let (min, max) = (show(*range.start()), show(*range.end()));
    // Below 1 MiB, units only get in the way.
    let what = if max.starts_with('"') { "size" } else { "number" };
    let read = move |value: &Value<'_>| {
        let text = || value.get_ref().as_str().and_then(units::parse_size);
        within(plain(value.get_ref()).or_else(text), &range)
    };
    Kind::new(format!("a {what} from {min} to {max}"), read, move |bytes| {
        u64::try_from(*bytes).map(show).unwrap_or_default()
    })
}

/// A duration: `"70s"`, `"5m"`, `"1h 30m"`.
pub fn duration(range: RangeInclusive<Duration>) -> Kind<Duration> {
    let (min, max) = (units::show_duration(*range.start()), units::show_duration(*range.end()));
    let read = move |text: &str| units::duration_within(text, range.clone()).ok_or(Invalid::Unexpected);
    Kind::text(format!("a duration from \"{min}\" to \"{max}\""), read, |time| units::show_duration(*time))
}

/// One of a fixed set of words, in upper or lower case.
pub fn choice<T: Copy + PartialEq + Send + Sync>(words: &'static [(&'static str, T)]) -> Kind<T> {
    let all: Vec<_> = words.iter().map(|(word, _)| quoted(word)).collect();
    let expects = match &all[..] {
        [some @ .., last] if !some.is_empty() => format!("{} or {last}", some.join(", ")),
        _ => all.concat(),
    };
    let read = |text: &str| {
        let word = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        word.map(|(_, value)| *value).ok_or(Invalid::Unexpected)
    };
    let show = |value: &T| words.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| word).to_owned();
    Kind::text(expects, read, show)
}

/// A file or directory, or an empty text for none.
pub fn path(what: &str) -> Kind<Option<PathBuf>> {
    let show = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    Kind::text(what, |text| Ok((!text.is_empty()).then(|| text.into())), show)
}

/// A value of a type with a text form, or an empty text for none.
pub fn parsed<T: FromStr<Err: Display> + Display + 'static>(expects: &str) -> Kind<Option<T>> {
    let parse = |text: &str| text.parse().map_err(|error: T::Err| Invalid::Because(error.to_string()));
    optional(expects, parse, T::to_string).unrepeated()
}

/// Text in a form of its own, or an empty text for none.
pub fn optional<T: 'static>(
    expects: impl Into<String>,
    read: impl Fn(&str) -> Result<T, Invalid> + Send + Sync + 'static,
    show: impl Fn(&T) -> String + Send + Sync + 'static,
) -> Kind<Option<T>> {
    let read = move |text: &str| if text.is_empty() { Ok(None) } else { read(text).map(Some) };
    Kind::text(expects, read, move |value| value.as_ref().map(&show).unwrap_or_default())
}

/// What is shown instead of a secret. It is shorter than a valid one, so it cannot be mistaken for it.
pub const HIDDEN: &str = "(hidden)";

/// A text that is read but never shown.
pub fn secret<T: 'static, E>(
    expects: impl Into<String>,
    parse: impl Fn(&str) -> Result<T, E> + Send + Sync + 'static,
) -> Kind<Option<T>> {
    let read = move |text: &str| parse(text).map_err(|_| Invalid::Unexpected);
    optional(expects, read, |_| HIDDEN.into()).unrepeated()
}

/// A text for pages, of at most this many characters.
pub fn page_text(max: usize) -> Kind<String> {
    let read = move |text: &str| match text.chars().count() <= max {
        // Lines stay lines; other control characters have no meaning on a page.
        true => Ok(text.lines().map(sanitize).collect::<Vec<_>>().join("\n")),
        false => Err(Invalid::Unexpected),
    };
    Kind::text(format!("a text of at most {max} characters"), read, String::clone).unrepeated()
}

/// A rate limit of packets or requests, or `"off"`.
pub fn rate() -> Kind<Option<Rate>> {
    rates("a rate limit such as \"10/s burst 300\" or \"600/m burst 50\", or \"off\"", |number| number.to_string())
}

/// A rate limit of bytes, or `"off"`.
pub fn byte_rate() -> Kind<Option<Rate>> {
    rates("a rate limit such as \"40kB/s burst 1.2MB\", or \"off\"", units::show_traffic)
}

fn rates(expects: &str, show_number: fn(u64) -> String) -> Kind<Option<Rate>> {
    let read = |text: &str| {
        if text.trim().eq_ignore_ascii_case("off") {
            return Ok(None);
        }
        let rate = read_rate(text).ok_or(Invalid::Unexpected)?;
        rate.validate().map_err(|error| Invalid::Because(error.to_string()))?;
        Ok(Some(rate))
    };
    let show = move |rate: &Option<Rate>| {
        let Some(Rate { count, per, burst }) = rate else { return "off".to_owned() };
        let unit = PERIODS.iter().find(|(_, seconds)| per.as_secs() == *seconds).map_or("s", |(unit, _)| unit);
        format!("{}/{unit} burst {}", show_number(*count), show_number(*burst))
    };
    Kind::text(expects, read, show)
}

const PERIODS: [(&str, u64); 6] = [("s", 1), ("m", 60), ("h", 3_600), ("sec", 1), ("min", 60), ("hour", 3_600)];

fn read_rate(text: &str) -> Option<Rate> {
    let (rate, burst) = text.split_once("burst")?;
    let (count, unit) = rate.trim().trim_end_matches(',').split_once('/')?;
    let (_, seconds) = PERIODS.iter().find(|(name, _)| *name == unit.trim())?;
    let per = Duration::from_secs(*seconds);
    Some(Rate { count: units::parse_size(count)?, per, burst: units::parse_size(burst)? })
}

/// Whether a list can be empty, written as `off` or as an empty array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    Refused,
    Off,
}

/// A list: a TOML array, or one text with commas. `of` describes the elements in the plural.
pub fn list<T: 'static>(
    of: &'static str,
    empty: Empty,
    read: fn(&str) -> Result<T, String>,
    show: fn(&T) -> String,
) -> Kind<Vec<T>> {
    let expects = format!("a list of {of}{}", if empty == Empty::Off { ", or \"off\"" } else { "" });
    let read_all = {
        let expects = expects.clone();
        move |value: &Value<'_>| {
            let list = read_list(value, &expects, empty, read)?;
            match list.is_empty() && empty == Empty::Refused {
                true => Err(Invalid::Because(format!("expected {expects}, not an empty list"))),
                false => Ok(list),
            }
        }
    };
    let show_all = move |values: &Vec<T>| {
        let values: Vec<_> = values.iter().map(|value| quoted(show(value))).collect();
        format!("[{}]", values.join(", "))
    };
    Kind::new(expects, read_all, show_all)
}

fn read_list<T>(
    value: &Value<'_>,
    expects: &str,
    empty: Empty,
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Invalid> {
    match value.get_ref() {
        DeValue::String(text) if empty == Empty::Off && text.trim().eq_ignore_ascii_case("off") => Ok(Vec::new()),
        DeValue::String(text) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            all(parts.map(|part| read(part).map_err(ValueError::new)))
        }
        DeValue::Array(values) => all(values.iter().map(|value| {
            let at = |message| ValueError { message, at: Some(value.span()) };
            let wrong_type = || at(format!("expected {expects}, {}", found(value.get_ref())));
            read(value.get_ref().as_str().ok_or_else(wrong_type)?.trim()).map_err(at)
        })),
        _ => Err(Invalid::Unexpected),
    }
}

/// Collects all values, or the errors of all results.
pub fn all<T>(results: impl Iterator<Item = Result<T, ValueError>>) -> Result<Vec<T>, Invalid> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(Invalid::Parts(errors)) }
}

/// Parses an address and a port to listen on.
pub fn read_socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("expected an address and a port such as \"0.0.0.0:29944\" or \"[::]:29944\", not {}", quoted(text))
    })
}

impl<T> fmt::Debug for Kind<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("expects", &self.expects).finish_non_exhaustive()
    }
}
