//! The secret ID of a server (L13), stored in a file.

use crate::error::CommandError;
use rallypoint_files::OwnerOnly;
use rallypoint_udp::entropy;
use rallypoint_wire::lobby::ServerId;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Loads the ID from a file, or generates and stores one if the file does not exist. Without a file, the ID is random.
pub fn load_or_generate(file: Option<&Path>) -> Result<ServerId, CommandError> {
    let Some(file) = file else { return random() };
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        CommandError::failed(format!(
            "cannot {what} the server's ID in {}: {error}; set another --id-file",
            file.display()
        ))
    };
    match fs::read_to_string(file) {
        Ok(text) => parse(&text).ok_or_else(|| cannot("read", &"it is not 32 hexadecimal digits")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = random()?;
            store(file, id).map_err(|error| cannot("write", &error))?;
            Ok(id)
        }
        Err(error) => Err(cannot("read", &error)),
    }
}

fn random() -> Result<ServerId, CommandError> {
    let bytes: [u8; 16] = entropy::bytes().map_err(CommandError::failed)?;
    Ok(ServerId::from_bytes(bytes))
}

fn parse(text: &str) -> Option<ServerId> {
    let text = text.trim();
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(|number| ServerId::from_bytes(number.to_be_bytes()))
}

/// Stores the ID, readable by its owner only: with it, others could unregister the server.
fn store(file: &Path, id: ServerId) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).owner_only().open(file)?;
    writeln!(file, "{:032x}", u128::from_be_bytes(*id.expose()))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_file_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("id");
        let first = load_or_generate(Some(&file)).unwrap();
        assert_eq!(load_or_generate(Some(&file)).unwrap(), first);
        assert!(!rallypoint_files::is_open_to_group_or_others(&fs::metadata(&file).unwrap()));
        assert_ne!(load_or_generate(None).unwrap(), first);
        fs::write(&file, "+1ccf16b1436d856f504dcc1af306aaa").unwrap();
        assert!(load_or_generate(Some(&file)).unwrap_err().to_string().contains("32 hexadecimal digits"));
    }
}
