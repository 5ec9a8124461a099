//! The operator's settings for the pages: texts, a colour, a path.

use super::setting_type::{SettingType, Value, ValueError, quoted};
use rallypoint_wire::text;
use std::{fmt::Display, marker::PhantomData, str::FromStr};

/// A text for display, of at most this many characters.
pub struct TextType(pub usize);

impl SettingType for TextType {
    type Of = String;

    fn expects(&self) -> String {
        format!("a text of at most {} characters", self.0)
    }

    fn set(&self, target: &mut String, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let text = value.get_ref().as_str().filter(|text| text.chars().count() <= self.0);
        let text = text.ok_or_else(|| ValueError::new(format!("expected {}", self.expects())))?;
        // Lines stay lines; other control characters have no meaning on a page.
        *target = text.lines().map(text::sanitize).collect::<Vec<_>>().join("\n");
        Ok(())
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }
}

/// A value that is written as a text in a form of its own; an empty text is the default.
pub struct ParsedType<T> {
    expects: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> ParsedType<T> {
    pub const fn new(expects: &'static str) -> Self {
        Self { expects, of: PhantomData }
    }
}

impl<T: FromStr<Err: Display> + Display> SettingType for ParsedType<T> {
    type Of = Option<T>;

    fn expects(&self) -> String {
        self.expects.into()
    }

    fn set(&self, target: &mut Option<T>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let text = value.get_ref().as_str().ok_or_else(|| ValueError::new(format!("expected {}", self.expects)))?;
        let parsed =
            (!text.is_empty()).then(|| text.parse().map_err(|error: T::Err| ValueError::new(error.to_string())));
        *target = parsed.transpose()?;
        Ok(())
    }

    fn show(&self, value: &Option<T>) -> String {
        quoted(value.as_ref().map(ToString::to_string).unwrap_or_default())
    }
}
