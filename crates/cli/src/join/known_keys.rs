//! The keys of servers that were joined before, stored in a file like the `known_hosts` of SSH (W67).

use crate::stdio::print_stderr;
use rallypoint_session::PublicKey;
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Maximum number of servers, and maximum size of the file in bytes. The oldest servers are forgotten.
const MAX_SERVERS: usize = 1_000;
const MAX_FILE: u64 = 1 << 20;

/// Servers and their keys.
pub struct KnownKeys {
    file: Option<PathBuf>,
    /// Oldest first.
    servers: Vec<(String, PublicKey)>,
}

impl KnownKeys {
    /// Reads the file. Without a home directory, nothing is remembered.
    pub fn load(file: Option<PathBuf>) -> Self {
        let servers = file.as_deref().map(read).unwrap_or_else(|| Ok(Vec::new()));
        let servers = servers.unwrap_or_else(|error| {
            let file = file.as_deref().unwrap_or(Path::new("")).display();
            print_stderr(format_args!("warning: cannot read the keys of known servers in {file}: {error}"));
            Vec::new()
        });
        Self { file, servers }
    }

    /// The key of a server, named as `host:port`.
    pub fn get(&self, server: &str) -> Option<PublicKey> {
        self.servers.iter().find(|(known, _)| known.eq_ignore_ascii_case(server)).map(|(_, key)| *key)
    }

    /// The file, for messages.
    pub fn file(&self) -> String {
        self.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
    }

    /// Stores the key of a server that has proved to hold it. Failing to store it is not an error of the session.
    pub fn remember(&mut self, server: &str, key: PublicKey) {
        if self.get(server) == Some(key) {
            return;
        }
        self.servers.retain(|(known, _)| !known.eq_ignore_ascii_case(server));
        self.servers.push((server.to_owned(), key));
        let excess = self.servers.len().saturating_sub(MAX_SERVERS);
        self.servers.drain(..excess);
        if let Some(file) = &self.file
            && let Err(error) = write(file, &self.servers)
        {
            print_stderr(format_args!("warning: cannot store the key of this server in {}: {error}", file.display()));
        }
    }
}

fn read(file: &Path) -> io::Result<Vec<(String, PublicKey)>> {
    let mut text = String::new();
    match File::open(file) {
        Ok(opened) => opened.take(MAX_FILE).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // A line that is not understood is a comment.
    let parse = |line: &str| {
        let (server, key) = line.trim().split_once(' ')?;
        Some((server.to_owned(), key.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

fn write(file: &Path, servers: &[(String, PublicKey)]) -> io::Result<()> {
    rallypoint_files::create_private_dir(file.parent().unwrap_or(Path::new(".")))?;
    let lines: String = servers.iter().map(|(server, key)| format!("{server} {key}\n")).collect();
    rallypoint_files::replace(file, lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::new([byte; 32])
    }

    #[test]
    fn w67_keys_are_remembered_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/known_servers");
        let load = || KnownKeys::load(Some(file.clone()));
        assert_eq!(load().get("example.org:45555"), None);
        load().remember("Example.org:45555", key(1));
        load().remember("example.org:7", key(2));
        assert_eq!(load().get("example.org:45555"), Some(key(1)));
        load().remember("example.org:45555", key(3));
        let known = load();
        assert_eq!((known.get("example.org:45555"), known.get("example.org:7")), (Some(key(3)), Some(key(2))));
        assert_eq!(known.servers.len(), 2);
        std::fs::write(&file, format!("# comment\nbad\na:1 {}\nb:2 12\n", key(4))).unwrap();
        assert_eq!(load().servers, [("a:1".to_owned(), key(4))]);
    }

    #[test]
    fn the_oldest_of_too_many_servers_is_forgotten() {
        let mut known = KnownKeys::load(None);
        for number in 0..=MAX_SERVERS {
            known.remember(&format!("server:{number}"), key(1));
        }
        assert_eq!(
            (known.get("server:0"), known.get("server:1"), known.servers.len()),
            (None, Some(key(1)), MAX_SERVERS)
        );
    }
}
