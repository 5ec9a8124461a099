//! Fields that only one protocol has.

/// Fields that only one protocol has, by name, in an order chosen by the protocol.
///
/// ```
/// use rallypoint_query_proto::{Extension, Protocol, ServerInfo};
///
/// let own = Extension::from([("version_type", 1_u8.into()), ("version", 292_u32.into())]);
/// let info = ServerInfo { extensions: [(Protocol::Session, own)].into(), ..ServerInfo::default() };
/// assert_eq!(info.extensions[&Protocol::Session].number("version"), Some(292_u32));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension(Vec<(&'static str, ExtensionValue)>);

/// The value of a field in an [`Extension`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionValue {
    /// A number.
    Number(i64),
    /// Yes or no.
    Switch(bool),
    /// A text, safe to display.
    Text(String),
    /// The server has not reported the field.
    Unknown,
}

impl Extension {
    /// All fields, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ExtensionValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// A field; `None` if it does not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ExtensionValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// A field that is a number in the range of this type.
    #[must_use]
    pub fn number<N: TryFrom<i64>>(&self, name: &str) -> Option<N> {
        match self.get(name)? {
            ExtensionValue::Number(number) => (*number).try_into().ok(),
            _ => None,
        }
    }

    /// A field that is yes or no.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            ExtensionValue::Switch(switch) => Some(*switch),
            _ => None,
        }
    }

    /// A field that is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            ExtensionValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Memory used by texts, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let length = |value: &ExtensionValue| if let ExtensionValue::Text(text) = value { text.len() } else { 0 };
        self.0.iter().map(|(_, value)| length(value)).sum()
    }
}

impl<const N: usize> From<[(&'static str, ExtensionValue); N]> for Extension {
    fn from(fields: [(&'static str, ExtensionValue); N]) -> Self {
        Self(fields.into())
    }
}

impl FromIterator<(&'static str, ExtensionValue)> for Extension {
    fn from_iter<I: IntoIterator<Item = (&'static str, ExtensionValue)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl From<$number> for ExtensionValue {
            fn from(number: $number) -> Self {
                Self::Number(number.into())
            }
        })+
    };
}

numbers!(u8, u16, u32, i8, i16, i32, i64);

impl From<bool> for ExtensionValue {
    fn from(switch: bool) -> Self {
        Self::Switch(switch)
    }
}

impl From<String> for ExtensionValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
