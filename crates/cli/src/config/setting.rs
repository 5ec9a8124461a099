//! One setting: a row of the table.

use super::{kind::ValueError, settings::Settings, table::SETTINGS};
use crate::toml_file::Value;
use toml::{Spanned, de::DeValue};

/// One setting.
pub struct Setting {
    /// Section and key, as in `lobby.lease`.
    pub path: &'static str,
    /// The default, as a variable has it.
    pub default: &'static str,
    /// Description, one or two lines.
    pub about: &'static str,
    /// Description of the valid values.
    pub expects: String,
    /// Whether a change takes effect on SIGHUP; otherwise it needs a restart.
    pub reloads: bool,
    pub set: Box<Set>,
    pub show: Box<Show>,
    /// Whether two configurations differ in this setting.
    pub differs: fn(&Settings, &Settings) -> bool,
}

type Set = dyn Fn(&mut Settings, &Value<'_>) -> Result<(), Vec<ValueError>> + Send + Sync;
type Show = dyn Fn(&Settings) -> String + Send + Sync;

impl Setting {
    /// The setting with this path.
    pub fn find(path: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.path == path)
    }

    /// Whether this path is a table of settings.
    pub fn is_section(path: &str) -> bool {
        SETTINGS.iter().any(|setting| setting.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }

    /// The environment variable: `RALLYPOINT_LOBBY_LEASE`.
    pub fn variable(&self) -> String {
        format!("RALLYPOINT_{}", self.path.replace('.', "_").to_uppercase())
    }

    /// Parses a value into the settings.
    pub fn set(&self, settings: &mut Settings, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        (self.set)(settings, value)
    }

    /// Parses the text of a variable or flag: TOML if it is valid as such, otherwise the text itself, so that a shell needs
    /// no quotes within quotes.
    pub fn set_text(&self, settings: &mut Settings, value: &str) -> Result<(), Vec<ValueError>> {
        let text = Spanned::new(0..value.len(), DeValue::String(value.into()));
        match DeValue::parse(value) {
            Ok(toml) => self.set(settings, &toml).or_else(|error| self.set(settings, &text).map_err(|_| error)),
            Err(_) => self.set(settings, &text),
        }
    }

    /// The current value in TOML syntax.
    pub fn show(&self, settings: &Settings) -> String {
        (self.show)(settings)
    }
}

/// Makes settings of the rows of the table.
macro_rules! setting_table {
    ($($reloads:ident $path:literal = $default:literal, $kind:expr => $($field:ident).+, $about:literal;)*) => {
        vec![$({
            let kind = Arc::new($kind);
            let shown = Arc::clone(&kind);
            Setting {
                path: $path,
                default: $default,
                about: $about,
                expects: kind.expects.clone(),
                reloads: $reloads,
                set: Box::new(move |settings, value| kind.set(&mut settings.$($field).+, value)),
                show: Box::new(move |settings| shown.show(&settings.$($field).+)),
                differs: |old, new| old.$($field).+ != new.$($field).+,
            }
        }),*]
    };
}
pub(super) use setting_table;
