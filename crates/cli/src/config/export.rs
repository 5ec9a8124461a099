//! Settings of the copies for mirrors.

use super::setting_type::{ListType, quoted};
use rallypoint_query::{HttpUrl, split_port};
use rallypoint_web::{ExportOptions, ExportSettings};
use rallypoint_wire::lobby;
use std::{num::NonZeroU16, path::PathBuf, time::Duration};

/// Settings of the copies for mirrors.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportConfig {
    /// The directory; `None` if no copies are written.
    pub directory: Option<PathBuf>,
    pub interval: Duration,
    /// The key; `None` for the file in the data directory.
    pub key_file: Option<PathBuf>,
    pub max_age: Duration,
    /// The names of the lobby.
    pub hosts: Vec<String>,
    /// The address of the live page.
    pub page_url: Option<HttpUrl>,
    /// Where copies are published.
    pub mirrors: Vec<HttpUrl>,
}

impl Default for ExportConfig {
    fn default() -> Self {
        Self {
            directory: None,
            interval: ExportOptions::INTERVAL,
            key_file: None,
            max_age: ExportSettings::default().max_age,
            hosts: Vec::new(),
            page_url: None,
            mirrors: Vec::new(),
        }
    }
}

/// Names of the lobby.
pub fn hosts() -> ListType<String> {
    let of = "host names such as [\"lobby.example.org\", \"lobby.example.org:29945\"]";
    ListType { of, read: read_host, show: String::clone, or_off: true }
}

/// Where copies are published.
pub fn mirrors() -> ListType<HttpUrl> {
    let of = "URLs such as [\"https://mirror.example.net/lobby/\"]";
    ListType { of, read: read_mirror, show: ToString::to_string, or_off: true }
}

fn read_mirror(text: &str) -> Result<HttpUrl, String> {
    text.parse().map_err(|error| format!("{error}, not {}", quoted(text)))
}

/// A host with its port, unless that is the default one: as clients name lobbies.
fn read_host(text: &str) -> Result<String, String> {
    let (host, port) = split_port(text)
        .ok_or_else(|| format!("expected a host name such as \"lobby.example.org\", not {}", quoted(text)))?;
    let host = host.to_string().to_lowercase();
    Ok(match port.map(NonZeroU16::get).filter(|port| *port != lobby::PORT) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_as_clients_name_lobbies() {
        assert_eq!(read_host("Lobby.Example.org:29944").as_deref(), Ok("lobby.example.org"));
        assert_eq!(read_host("127.0.0.1:7").as_deref(), Ok("127.0.0.1:7"));
        assert_eq!(read_host("[2001:db8::1]").as_deref(), Ok("[2001:db8::1]"));
        assert!(read_host("https://lobby.example.org/").is_err() && read_host("").is_err());
    }
}
