//! The secret key of a server, kept for its next start.

use crate::{error::CommandError, stdio::print_stderr};
use rallypoint_session::{PublicKey, StaticKey, generate_static_key};
use std::{
    env,
    fs::{DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The key that is kept in a file; a new one if there is none yet.
pub fn choose(chosen: Option<&Path>) -> Result<StaticKey, CommandError> {
    let file = match chosen {
        Some(file) => file.to_owned(),
        None => usual_place(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)).ok_or_else(
            || CommandError::Usage("there is no home folder to keep the key in: choose a --key-file".into()),
        )?,
    };
    let cannot = |what: &str, why: &dyn std::fmt::Display| {
        CommandError::failed(format!("cannot {what} the key in {}: {why}; choose another --key-file", file.display()))
    };
    match read(&file) {
        Ok(text) => parse(&text).ok_or_else(|| cannot("use", &"it is not 64 hexadecimal digits")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = generate_static_key().map_err(CommandError::failed)?;
            // Only the usual folder is made: in another name there may be a mistake.
            let made = if chosen.is_none() { make_folder(&file) } else { Ok(()) };
            made.and_then(|()| keep(&file, &key)).map_err(|error| cannot("keep", &error))?;
            Ok(key)
        }
        Err(error) => Err(cannot("read", &error)),
    }
}

fn usual_place(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    Some(data.join("rallypoint/session.key"))
}

fn read(file: &Path) -> io::Result<String> {
    let mut opened = OpenOptions::new().read(true).open(file)?;
    if opened.metadata()?.permissions().mode() & 0o077 != 0 {
        print_stderr(format_args!("note: others can read {}: chmod 600 keeps the key secret", file.display()));
    }
    let mut text = String::new();
    // A key is short: whatever is longer is none.
    (&mut opened).take(1_000).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Option<StaticKey> {
    // Secret and public keys are written alike.
    let bytes = *text.trim().parse::<PublicKey>().ok()?.as_bytes();
    StaticKey::from_bytes(bytes).ok()
}

fn make_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |folder| DirBuilder::new().recursive(true).mode(0o700).create(folder))
}

/// Whoever can read it can pose as the server, so nobody else may.
fn keep(file: &Path, key: &StaticKey) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{}", PublicKey::new(*key.expose()))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let first = choose(Some(&file)).unwrap();
        assert_eq!(choose(Some(&file)).unwrap().public(), first.public());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "not a key").unwrap();
        assert!(choose(Some(&file)).unwrap_err().to_string().contains("64 hexadecimal digits"));
        assert!(choose(Some(&dir.path().join("missing/key"))).is_err());
        assert!(!dir.path().join("missing").exists());
    }

    #[test]
    fn it_is_where_the_system_keeps_such_things() {
        let of = |set: &[(&str, &str)]| {
            usual_place(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Some("/d/rallypoint/session.key".into()));
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.local/share/rallypoint/session.key".into()));
        assert_eq!(of(&[]), None);
    }
}
