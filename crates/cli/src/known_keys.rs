//! Keys that were seen before, stored in files like the `known_hosts` of SSH: those of servers that were joined (W67), and those of
//! lobbies whose copies were read (W121).

use crate::stdio::print_stderr;
use std::{
    fmt::Display,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    str::FromStr,
};

/// Maximum number of names, and maximum size of the file in bytes. The oldest are forgotten.
const MAX_NAMES: usize = 1_000;
const MAX_FILE: u64 = 1 << 20;

/// Names of servers or lobbies, and their keys.
#[derive(Debug)]
pub struct KnownKeys<K> {
    file: Option<PathBuf>,
    /// Oldest first.
    keys: Vec<(String, K)>,
}

impl<K: FromStr + Display + Copy + PartialEq> KnownKeys<K> {
    /// Reads the file. Without a home directory, nothing is remembered.
    pub fn load(file: Option<PathBuf>) -> Self {
        let keys = file.as_deref().map(read).unwrap_or_else(|| Ok(Vec::new()));
        let keys = keys.unwrap_or_else(|error| {
            let file = file.as_deref().unwrap_or(Path::new("")).display();
            print_stderr(format_args!("warning: cannot read the known keys in {file}: {error}"));
            Vec::new()
        });
        Self { file, keys }
    }

    /// The key of a server or lobby.
    pub fn get(&self, name: &str) -> Option<K> {
        self.keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, key)| *key)
    }

    /// The file, for messages.
    pub fn file(&self) -> String {
        self.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
    }

    /// Stores a key that was verified, in place of an earlier one.
    ///
    /// # Errors
    /// A warning, if it cannot be stored: it is remembered only until this program ends.
    pub fn remember(&mut self, name: &str, key: K) -> Result<(), String> {
        if self.get(name) == Some(key) {
            return Ok(());
        }
        self.keys.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.keys.push((name.to_owned(), key));
        let excess = self.keys.len().saturating_sub(MAX_NAMES);
        self.keys.drain(..excess);
        let Some(file) = &self.file else { return Ok(()) };
        write(file, &self.keys)
            .map_err(|error| format!("warning: cannot store the key of {name} in {}: {error}", file.display()))
    }
}

fn read<K: FromStr>(file: &Path) -> io::Result<Vec<(String, K)>> {
    let mut text = String::new();
    match File::open(file) {
        Ok(opened) => opened.take(MAX_FILE).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // A line that is not understood is a comment.
    let parse = |line: &str| {
        let (name, key) = line.trim().split_once(' ')?;
        Some((name.to_owned(), key.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

fn write<K: Display>(file: &Path, keys: &[(String, K)]) -> io::Result<()> {
    rallypoint_files::create_private_dir(file.parent().unwrap_or(Path::new(".")))?;
    let lines: String = keys.iter().map(|(name, key)| format!("{name} {key}\n")).collect();
    rallypoint_files::replace(file, lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::mirror::PinnedKey;
    use rallypoint_session::PublicKey;

    fn key(byte: u8) -> PublicKey {
        PublicKey::new([byte; 32])
    }

    #[test]
    fn w67_keys_are_remembered_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/known_servers");
        let load = || KnownKeys::load(Some(file.clone()));
        assert_eq!(load().get("example.org:45555"), None);
        load().remember("Example.org:45555", key(1)).unwrap();
        load().remember("example.org:7", key(2)).unwrap();
        assert_eq!(load().get("example.org:45555"), Some(key(1)));
        load().remember("example.org:45555", key(3)).unwrap();
        let known = load();
        assert_eq!((known.get("example.org:45555"), known.get("example.org:7")), (Some(key(3)), Some(key(2))));
        assert_eq!(known.keys.len(), 2);
        std::fs::write(&file, format!("# comment\nbad\na:1 {}\nb:2 12\n", key(4))).unwrap();
        assert_eq!(load().keys, [("a:1".to_owned(), key(4))]);
    }

    #[test]
    fn w121_a_key_can_have_a_time_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known_lobbies");
        let key = "RWSw4dWaD47V+w9rvl0NvKZ/9lcauIWwZXVtjJ6EKxyjBm17BOn53k8S";
        std::fs::write(&file, format!("a.example {key} 1800000000\nb.example {key}\nc.example {key} soon\n")).unwrap();
        let known = KnownKeys::<PinnedKey>::load(Some(file));
        let newest = |lobby: &str| known.get(lobby).map(|pinned| pinned.newest);
        assert_eq!(
            (newest("a.example"), newest("b.example"), newest("c.example")),
            (Some(1_800_000_000), Some(0), None)
        );
    }

    #[test]
    fn the_oldest_of_too_many_servers_is_forgotten() {
        let mut known = KnownKeys::load(None);
        for number in 0..=MAX_NAMES {
            known.remember(&format!("server:{number}"), key(1)).unwrap();
        }
        assert_eq!((known.get("server:0"), known.get("server:1"), known.keys.len()), (None, Some(key(1)), MAX_NAMES));
    }
}
