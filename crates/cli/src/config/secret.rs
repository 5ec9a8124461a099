//! Secrets among the settings: they are read, and never shown.

use super::kind::{Kind, Value, Wrong};
use rallypoint_web::Token;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// The operator's token.
pub struct Secret;

impl Kind for Secret {
    type Of = Option<Token>;

    fn expects(&self) -> String {
        "a token of at least 16 characters, from `rallypoint admin token`".into()
    }

    fn set(&self, target: &mut Option<Token>, value: &Value<'_>) -> Result<(), Vec<Wrong>> {
        // What stands there is not repeated.
        let wrong = || Wrong::new(format!("expected {}", self.expects()));
        let text = value.get_ref().as_str().ok_or_else(wrong)?;
        *target = if text.is_empty() { None } else { Some(Token::new(text).map_err(|_| wrong())?) };
        Ok(())
    }

    fn show(&self, value: &Option<Token>) -> String {
        // Too short to be taken for one.
        if value.is_some() { "\"(hidden)\"".into() } else { "\"\"".into() }
    }
}

/// The token in a file, and what should be known about that file.
pub fn read_token(file: &Path) -> Result<(Token, Option<String>), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read the token: {error}"))?;
    let token = Token::new(text.trim()).map_err(|error| error.to_string())?;
    // A group may be there just for the lobby, and systemd's credentials look like that, too.
    let is_open = fs::metadata(file).is_ok_and(|file| file.mode() & 0o007 != 0);
    let note = is_open.then(|| {
        let file = file.display();
        format!("other users of this machine may read the operator's token in {file}: chmod 600 {file}")
    });
    Ok((token, note))
}
