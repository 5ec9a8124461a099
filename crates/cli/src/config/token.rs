//! The admin token: a setting that is read but never printed.

use super::setting_type::{SettingType, Value, ValueError};
use crate::error::describe_io;
use rallypoint_web::AdminToken;
use std::{fs, path::Path};

/// The type of the admin token.
pub struct TokenType;

impl SettingType for TokenType {
    type Of = Option<AdminToken>;

    fn expects(&self) -> String {
        "a token of at least 16 characters, from `rallypoint admin token`".into()
    }

    fn set(&self, target: &mut Option<AdminToken>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        // The message does not repeat the value.
        let unexpected = || ValueError::new(format!("expected {}", self.expects()));
        let text = value.get_ref().as_str().ok_or_else(unexpected)?;
        *target = if text.is_empty() { None } else { Some(AdminToken::new(text).map_err(|_| unexpected())?) };
        Ok(())
    }

    fn show(&self, value: &Option<AdminToken>) -> String {
        // Shorter than a valid token, so it cannot be mistaken for one.
        if value.is_some() { "\"(hidden)\"".into() } else { "\"\"".into() }
    }
}

/// The token in a file, and a warning if other users can read that file.
pub fn read_token(file: &Path) -> Result<(AdminToken, Option<String>), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read the token: {}", describe_io(&error)))?;
    let token = AdminToken::new(text.trim()).map_err(|error| error.to_string())?;
    // A group may exist for the lobby alone, as with credentials of systemd.
    let is_open = fs::metadata(file).is_ok_and(|file| rallypoint_files::is_open_to_others(&file));
    let note = is_open.then(|| {
        let file = file.display();
        format!("other users of this machine can read the admin token in {file}: run chmod 600 {file}")
    });
    Ok((token, note))
}
