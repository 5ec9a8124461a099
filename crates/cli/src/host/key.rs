//! The secret key of a server, stored in a file.

use crate::{error::CommandError, stdio::print_stderr, user_dirs};
use rallypoint_files::{OwnerOnly, create_private_dir, is_open_to_group_or_others};
use rallypoint_session::{PublicKey, StaticKey, generate_static_key};
use std::{
    fs::OpenOptions,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// Loads the key from a file, or generates and stores one if the file does not exist.
pub fn load_or_generate(key_file: Option<&Path>) -> Result<StaticKey, CommandError> {
    let file = match key_file {
        Some(file) => file.to_owned(),
        None => data_file("session.key")
            .ok_or_else(|| CommandError::Usage("there is no home directory for the key: set --key-file".into()))?,
    };
    let cannot = |what: &str, why: &dyn std::fmt::Display| {
        CommandError::failed(format!("cannot {what} the key in {}: {why}; set another --key-file", file.display()))
    };
    match read(&file) {
        Ok(text) => parse(&text).ok_or_else(|| cannot("use", &"it is not 64 hexadecimal digits")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = generate_static_key().map_err(CommandError::failed)?;
            // Only the default directory is created: another path may be misspelt.
            let created = if key_file.is_none() { create_directory(&file) } else { Ok(()) };
            created.and_then(|()| store(&file, &key)).map_err(|error| cannot("write", &error))?;
            Ok(key)
        }
        Err(error) => Err(cannot("read", &error)),
    }
}

/// The path of a file in the user's data directory. `None` without a home directory.
pub fn data_file(name: &str) -> Option<PathBuf> {
    Some(user_dirs::data()?.join(name))
}

fn read(file: &Path) -> io::Result<String> {
    let mut opened = OpenOptions::new().read(true).open(file)?;
    if is_open_to_group_or_others(&opened.metadata()?) {
        print_stderr(format_args!(
            "warning: other users can read {}: run chmod 600 to keep the key secret",
            file.display()
        ));
    }
    let mut text = String::new();
    // A key is shorter than this; anything longer is not a key.
    (&mut opened).take(1_000).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Option<StaticKey> {
    // Secret and public keys have the same text form.
    let bytes = *text.trim().parse::<PublicKey>().ok()?.as_bytes();
    StaticKey::from_bytes(bytes).ok()
}

fn create_directory(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), create_private_dir)
}

/// Stores the key, readable by its owner only: with it, others could impersonate the server.
fn store(file: &Path, key: &StaticKey) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).owner_only().open(file)?;
    writeln!(file, "{}", PublicKey::new(*key.expose()))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let first = load_or_generate(Some(&file)).unwrap();
        assert_eq!(load_or_generate(Some(&file)).unwrap().public(), first.public());
        assert!(!is_open_to_group_or_others(&std::fs::metadata(&file).unwrap()));
        std::fs::write(&file, "not a key").unwrap();
        assert!(load_or_generate(Some(&file)).unwrap_err().to_string().contains("64 hexadecimal digits"));
        assert!(load_or_generate(Some(&dir.path().join("missing/key"))).is_err());
        assert!(!dir.path().join("missing").exists());
    }
}
