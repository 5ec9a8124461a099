//! Reads a TOML table key by key and collects all errors with their positions.

use crate::config::{found, nearest};
use std::{cell::RefCell, ops::Range};
use toml::de::{DeTable, DeValue};

/// Errors with their positions.
pub type FoundErrors = RefCell<Vec<(Range<usize>, String)>>;

/// A table that is being read.
pub struct TableReader<'a> {
    /// As in `[session]` or `[[player]]`; empty for the file itself.
    name: &'a str,
    table: &'a DeTable<'a>,
    /// Position of the table.
    at: Range<usize>,
    found: &'a FoundErrors,
    known: Vec<&'static str>,
}

impl<'a> TableReader<'a> {
    pub fn new(name: &'a str, table: &'a DeTable<'a>, found: &'a FoundErrors) -> Self {
        Self { name, table, at: 0..0, found, known: Vec::new() }
    }

    /// A value, if it exists and is valid.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let value = self.table.get(key)?;
        let result = read(value.get_ref());
        if result.is_none() {
            self.push_error(
                value.span(),
                format!("{}: expected {expected}, {}", self.path(key), found(value.get_ref())),
            );
        }
        result
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, TEXT, |value| value.as_str().map(str::to_owned))
    }

    pub fn switch(&mut self, key: &'static str) -> bool {
        self.read(key, "true or false", DeValue::as_bool).unwrap_or(false)
    }

    /// An integer within the range of its type.
    pub fn number<T: IntegerType>(&mut self, key: &'static str) -> Option<T> {
        let expected = format!("a number from {} to {}", T::MIN, T::MAX);
        self.read(key, &expected, |value| integer(value).and_then(|number| T::try_from(number).ok()))
    }

    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let list = self.read(key, "a list such as [\"one\", \"two\"]", |value| value.as_array());
        let mut texts = Vec::new();
        for value in list.into_iter().flat_map(|list| list.iter()) {
            match value.get_ref().as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let message = format!("{}: expected {TEXT}, {}", self.path(key), found(value.get_ref()));
                    self.push_error(value.span(), message);
                }
            }
        }
        texts
    }

    /// `[key]`.
    pub fn table(&mut self, key: &'static str) -> Option<TableReader<'a>> {
        let table = self.read(key, &format!("the table [{key}]"), |value| value.as_table())?;
        Some(TableReader { name: key, table, at: 0..0, found: self.found, known: Vec::new() })
    }

    /// Every `[[key]]`.
    pub fn tables(&mut self, key: &'static str) -> Vec<TableReader<'a>> {
        let expected = format!("tables [[{key}]]");
        let list = self.read(key, &expected, |value| value.as_array());
        let mut tables = Vec::new();
        for value in list.into_iter().flat_map(|list| list.iter()) {
            match value.get_ref().as_table() {
                Some(table) => {
                    tables.push(TableReader {
                        name: key,
                        table,
                        at: value.span(),
                        found: self.found,
                        known: Vec::new(),
                    });
                }
                None => {
                    self.push_error(value.span(), format!("{key}: expected {expected}, {}", found(value.get_ref())));
                }
            }
        }
        tables
    }

    /// Reports a missing key.
    pub fn require(&self, key: &str) {
        if !self.table.contains_key(key) {
            self.push_error(self.at.clone(), format!("this [[{}]] lacks {key}", self.name));
        }
    }

    /// Reports all keys that were not read as unknown.
    pub fn finish(self) {
        for key in self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            let location = if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
            let hint = nearest(key.get_ref(), self.known.iter().copied());
            self.push_error(key.span(), format!("unknown key \"{}\"{location}{hint}", key.get_ref()));
        }
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn push_error(&self, at: Range<usize>, message: String) {
        self.found.borrow_mut().push((at, message));
    }
}

const TEXT: &str = "text in quotes";

/// An integer type of the file.
pub trait IntegerType: TryFrom<i64> {
    const MIN: i64;
    const MAX: i64;
}

macro_rules! integer_types {
    ($($type:ty),*) => {$(
        impl IntegerType for $type {
            const MIN: i64 = <$type>::MIN as i64;
            const MAX: i64 = <$type>::MAX as i64;
        }
    )*};
}

integer_types!(u8, i8, u16, i16, u32);

/// An integer value.
pub fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
}
