//! A section of a file, key by key: whatever is wrong is written down with its place, and reading goes on.

use crate::config::{found, nearest};
use std::{cell::RefCell, ops::Range};
use toml::de::{DeTable, DeValue};

/// What is wrong, and where.
pub type Found = RefCell<Vec<(Range<usize>, String)>>;

/// A section that is being read.
pub struct Section<'a> {
    /// As in `[session]` or `[[player]]`; empty for the file itself.
    name: &'a str,
    table: &'a DeTable<'a>,
    /// Where it begins.
    at: Range<usize>,
    found: &'a Found,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub fn new(name: &'a str, table: &'a DeTable<'a>, found: &'a Found) -> Self {
        Self { name, table, at: 0..0, found, known: Vec::new() }
    }

    /// A value, if it is there and can be read.
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
            self.print_stderr(
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

    /// A whole number of the range of its type.
    pub fn number<T: IntegerType>(&mut self, key: &'static str) -> Option<T> {
        let expected = format!("a number from {} to {}", T::LEAST, T::MOST);
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
                    self.print_stderr(value.span(), message);
                }
            }
        }
        texts
    }

    /// `[key]`.
    pub fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let table = self.read(key, &format!("the section [{key}]"), |value| value.as_table())?;
        Some(Section { name: key, table, at: 0..0, found: self.found, known: Vec::new() })
    }

    /// Every `[[key]]`.
    pub fn sections(&mut self, key: &'static str) -> Vec<Section<'a>> {
        let expected = format!("sections [[{key}]]");
        let list = self.read(key, &expected, |value| value.as_array());
        let mut sections = Vec::new();
        for value in list.into_iter().flat_map(|list| list.iter()) {
            match value.get_ref().as_table() {
                Some(table) => {
                    sections.push(Section { name: key, table, at: value.span(), found: self.found, known: Vec::new() });
                }
                None => {
                    self.print_stderr(value.span(), format!("{key}: expected {expected}, {}", found(value.get_ref())));
                }
            }
        }
        sections
    }

    /// It makes no sense without this.
    pub fn need(&self, key: &str) {
        if !self.table.contains_key(key) {
            self.print_stderr(self.at.clone(), format!("expected {key} in this [[{}]]", self.name));
        }
    }

    /// All keys were asked for: whatever else is there has no meaning.
    pub fn end(self) {
        for key in self.table.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            let place = if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
            let hint = nearest(key.get_ref(), self.known.iter().copied());
            self.print_stderr(key.span(), format!("unknown key \"{}\"{place}{hint}", key.get_ref()));
        }
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn print_stderr(&self, at: Range<usize>, message: String) {
        self.found.borrow_mut().push((at, message));
    }
}

const TEXT: &str = "text in quotes";

/// A kind of whole numbers.
pub trait IntegerType: TryFrom<i64> {
    const LEAST: i64;
    const MOST: i64;
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl IntegerType for $kind {
            const LEAST: i64 = <$kind>::MIN as i64;
            const MOST: i64 = <$kind>::MAX as i64;
        }
    )*};
}

numbers!(u8, i8, u16, i16, u32);

/// A whole number of a file.
pub fn integer(value: &DeValue<'_>) -> Option<i64> {
    value.as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
}
