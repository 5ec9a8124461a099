//! Hosts and mirrors of copies.

use super::kind::{Empty, Kind, list};
use crate::toml_file::quoted;
use rallypoint_query::{HttpUrl, split_port};
use rallypoint_wire::lobby;
use std::num::NonZeroU16;

/// Names of the lobby.
pub fn hosts() -> Kind<Vec<String>> {
    let of = "host names such as [\"lobby.example.org\", \"lobby.example.org:29945\"]";
    list(of, Empty::Off, read_host, String::clone)
}

/// Where copies are published.
pub fn mirrors() -> Kind<Vec<HttpUrl>> {
    let read = |text: &str| text.parse().map_err(|error| format!("{error}, not {}", quoted(text)));
    list("URLs such as [\"https://mirror.example.net/lobby/\"]", Empty::Off, read, HttpUrl::to_string)
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
