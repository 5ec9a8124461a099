//! The secret ID of a server (L13).

use crate::error::CommandError;
use rallypoint_udp::entropy;
use rallypoint_wire::lobby::ServerId;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// A new ID, or the one that is kept in a file.
pub fn choose(file: Option<&Path>) -> Result<ServerId, CommandError> {
    let Some(file) = file else { return random() };
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        CommandError::failed(format!(
            "cannot {what} the server's ID in {}: {error}; choose another --id-file",
            file.display()
        ))
    };
    match fs::read_to_string(file) {
        Ok(text) => read(&text).ok_or_else(|| cannot("read", &"it is not 32 hexadecimal digits")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = random()?;
            keep(file, id).map_err(|error| cannot("keep", &error))?;
            Ok(id)
        }
        Err(error) => Err(cannot("read", &error)),
    }
}

fn random() -> Result<ServerId, CommandError> {
    let bytes: [u8; 16] = entropy::bytes().map_err(CommandError::failed)?;
    Ok(ServerId::from_bytes(bytes))
}

fn read(text: &str) -> Option<ServerId> {
    let text = text.trim();
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(|number| ServerId::from_bytes(number.to_be_bytes()))
}

/// Whoever can read it can take the server off the list, so nobody else may.
fn keep(file: &Path, id: ServerId) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{:032x}", u128::from_be_bytes(*id.expose()))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_id_is_kept_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("id");
        let first = choose(Some(&file)).unwrap();
        assert_eq!(choose(Some(&file)).unwrap(), first);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(choose(None).unwrap(), first);
        fs::write(&file, "+1ccf16b1436d856f504dcc1af306aaa").unwrap();
        assert!(choose(Some(&file)).unwrap_err().to_string().contains("32 hexadecimal digits"));
    }
}
