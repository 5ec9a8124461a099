//! Hints for ports of a lobby that are mistaken for others.

use crate::local_lobby::DEFAULT_HTTP_PORT;
use rallypoint_wire::{legacy, lobby};
use std::fmt::Display;

/// A hint for a server whose port is one of a lobby.
pub fn for_server(host: &impl Display, port: u16) -> Option<String> {
    let http = DEFAULT_HTTP_PORT.get();
    match port {
        lobby::PORT => Some(format!("{port} is the port of a lobby, not of a game server: rallypoint list {host}")),
        legacy::PORT => {
            Some(format!("{port} is the legacy port of a lobby, not of a game server: rallypoint list --legacy {host}"))
        }
        port if port == http => {
            Some(format!("{port} is the port of a lobby's page, not of a game server: rallypoint list {host}"))
        }
        _ => None,
    }
}

/// A hint for a lobby whose port is another one of the same program.
pub fn for_lobby(port: u16) -> Option<String> {
    let http = DEFAULT_HTTP_PORT.get();
    match port {
        legacy::PORT => {
            Some(format!("{port} is the port for old Gang Garrison 2 versions: use {}, or none", lobby::PORT))
        }
        port if port == http => Some(format!("{port} is the port of a lobby's page: use {}, or none", lobby::PORT)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_lobby_are_recognised() {
        assert_eq!(for_server(&"a", 8_190), None);
        assert!(for_server(&"a", 29_944).unwrap().ends_with("rallypoint list a"));
        assert!(for_server(&"a", 29_950).unwrap().contains("page"));
        assert!(for_server(&"a", 29_942).unwrap().ends_with("list --legacy a"));
        assert_eq!(for_lobby(29_944), None);
        assert_eq!(for_lobby(29_950).unwrap(), "29950 is the port of a lobby's page: use 29944, or none");
    }
}
