//! Reads a TOML table key by key and collects all errors with their positions.

use super::{FoundErrors, Value, found, nearest};
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, fmt::Display, ops::Range, str::FromStr};
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A table that is being read.
pub struct TableReader<'a> {
    /// As in `[session]` or `[[player]]`; empty for the file itself.
    name: String,
    /// What precedes a key in messages.
    prefix: String,
    table: &'a DeTable<'a>,
    /// Position of the table.
    at: Range<usize>,
    found: &'a FoundErrors,
    known: Vec<&'static str>,
}

impl<'a> TableReader<'a> {
    /// Reads the table of a file.
    pub fn new(table: &'a DeTable<'a>, found: &'a FoundErrors) -> Self {
        Self { name: String::new(), prefix: String::new(), table, at: 0..0, found, known: Vec::new() }
    }

    /// Reads one `[[name]]` of a list. Messages name only the keys in it.
    pub fn element(name: &str, value: &'a Value<'a>, found: &'a FoundErrors) -> Option<Self> {
        let table = value.get_ref().as_table()?;
        Some(Self { name: format!("[[{name}]]"), at: value.span(), ..Self::new(table, found) })
    }

    /// A value with its position, if the key exists.
    pub fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table.get(key)
    }

    /// A value with its position, if the key exists; the key is known from then on.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        self.known.push(key);
        self.get(key)
    }

    /// A value, if it exists and is valid.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let result = read(value.get_ref());
        if result.is_none() {
            self.unexpected(key, expected, value);
        }
        result
    }

    /// A text in a form of its own, if it exists and is valid.
    pub fn parsed<T, E: Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.read(key, "text", DeValue::as_str)?;
        let at = self.get(key)?.span();
        parse(text).map_err(|error| self.error_at(at, key, error)).ok()
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, TEXT, |value| value.as_str().map(str::to_owned))
    }

    pub fn switch(&mut self, key: &'static str) -> bool {
        self.read(key, "true or false", DeValue::as_bool).unwrap_or(false)
    }

    /// An integer within the range of its type.
    pub fn number<T: Bounded>(&mut self, key: &'static str) -> Option<T> {
        self.read(key, &format!("a number from {} to {}", T::MIN, T::MAX), plain)
    }

    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let list = self.read(key, "a list such as [\"one\", \"two\"]", DeValue::as_array);
        let text = |value: &Value<'_>| {
            let text = value.get_ref().as_str().map(str::to_owned);
            if text.is_none() {
                self.unexpected(key, TEXT, value);
            }
            text
        };
        list.into_iter().flat_map(|list| list.iter()).filter_map(text).collect()
    }

    /// A value that is a text in a form of its own.
    pub fn parse<T: FromStr<Err: Display>>(&self, key: &str, expected: &str, value: &Value<'_>) -> Option<T> {
        match value.get_ref().as_str() {
            Some(text) => text.parse().map_err(|error| self.error_at(value.span(), key, error)).ok(),
            None => {
                self.unexpected(key, expected, value);
                None
            }
        }
    }

    /// `[key]`.
    pub fn table(&mut self, key: &'static str) -> Option<Self> {
        let table = self.read(key, &format!("the table [{key}]"), DeValue::as_table)?;
        Some(Self { name: format!("[{key}]"), prefix: format!("{key}."), ..Self::new(table, self.found) })
    }

    /// `[key]` with texts by names of any kind.
    pub fn text_map(&mut self, key: &'static str) -> BTreeMap<String, String> {
        let Some(table) = self.table(key) else { return BTreeMap::new() };
        let text = |(value, name): (&'a Value<'a>, &str)| {
            let text = value.get_ref().as_str().map(str::to_owned);
            if text.is_none() {
                table.unexpected(name, TEXT, value);
            }
            text.map(|text| (name.to_owned(), text))
        };
        table.entries().filter_map(text).collect()
    }

    /// Every `[[key]]`.
    pub fn tables(&mut self, key: &'static str) -> Vec<Self> {
        let expected = format!("tables [[{key}]]");
        let list = self.read(key, &expected, DeValue::as_array);
        let table = |value: &'a Value<'a>| {
            let element = Self::element(key, value, self.found);
            if element.is_none() {
                self.unexpected(key, &expected, value);
            }
            element.map(|table| Self { prefix: format!("{key}."), ..table })
        };
        list.into_iter().flat_map(|list| list.iter()).filter_map(table).collect()
    }

    /// All keys and values, for tables whose keys are free.
    pub fn entries(&self) -> impl Iterator<Item = (&'a Value<'a>, &'a str)> + use<'a> {
        let table = self.table;
        table.iter().map(|(key, value)| (value, AsRef::<str>::as_ref(key.get_ref())))
    }

    /// Reports a missing key.
    pub fn require(&self, key: &str) {
        if !self.table.contains_key(key) {
            self.push_error(format!("this {} lacks {key}", self.name));
        }
    }

    /// Reports an error of the table as a whole.
    pub fn push_error(&self, message: String) {
        self.push_error_at(self.at.clone(), message);
    }

    /// Reports an error of a part of the table.
    pub fn push_error_at(&self, at: Range<usize>, message: String) {
        self.found.push(at, message);
    }

    /// Reports a value other than the expected one.
    pub fn unexpected(&self, key: &str, expected: &str, value: &Value<'_>) {
        let message = format!("{}{key}: expected {expected}, {}", self.prefix, found(value.get_ref()));
        self.found.push(value.span(), message);
    }

    /// Reports what is wrong with a value.
    fn error_at(&self, at: Range<usize>, key: &str, message: impl Display) {
        self.found.push(at, format!("{}{key}: {message}", self.prefix));
    }

    /// Reports all keys that were not read as unknown.
    pub fn finish(&self) {
        for key in self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            let place = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
            let hint = nearest(key.get_ref(), self.known.iter().copied());
            self.found.push(key.span(), format!("unknown key \"{}\"{place}{hint}", key.get_ref()));
        }
    }
}

const TEXT: &str = "text in quotes";

/// An integer type with its range.
pub trait Bounded: DeserializeOwned {
    const MIN: i64;
    const MAX: i64;
}

macro_rules! bounded {
    ($($type:ty),*) => {
        $(impl Bounded for $type {
            const MIN: i64 = <$type>::MIN as i64;
            const MAX: i64 = <$type>::MAX as i64;
        })*
    };
}

bounded!(u8, i8, u16, i16, u32, i32);

/// A value of a plain type, such as an integer, if it is one and within the range of the type.
pub fn plain<T: DeserializeOwned>(value: &DeValue<'_>) -> Option<T> {
    T::deserialize(ValueDeserializer::from(toml::Spanned::new(0..0, value.clone()))).ok()
}
