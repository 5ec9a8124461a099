//! The documents of a FiveM or RedM server, over HTTP at the port of the game.
//!
//! ```text
//! GET /dynamic.json    {"hostname": "^1My ^0server", "clients": 3, "sv_maxclients": "48", "gametype": "Freeroam", "mapname": "x"}
//! GET /info.json       {"server": "FXServer v1", "vars": {"tags": "a, b", "sv_projectDesc": "..."}, "resources": ["chat"]}
//! GET /players.json    [{"id": 1, "name": "Ada", "ping": 42, "endpoint": "127.0.0.1", "identifiers": ["license:..."]}]
//! ```
//!
//! Numbers are numbers or texts. A server may refuse each of the documents.

use alloc::string::String;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "fivem";

/// Title of the query protocol for people.
pub const TITLE: &str = "FiveM and RedM (HTTP)";

/// Default TCP port of a server.
pub const PORT: u16 = 30_120;

/// Path of the numbers that change.
pub const DYNAMIC: &str = "/dynamic.json";

/// Path of the settings.
pub const INFO: &str = "/info.json";

/// Path of the players.
pub const PLAYERS: &str = "/players.json";

/// Removes colour codes: a `^` and a digit.
///
/// ```
/// use rallypoint_wire::query::fivem::strip_colours;
///
/// assert_eq!(strip_colours("^1My ^0server ^^ ^x"), "My server ^^ ^x");
/// ```
#[must_use]
pub fn strip_colours(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut stripped = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        if c == '^' && chars.next_if(char::is_ascii_digit).is_some() {
            continue;
        }
        stripped.push(c);
    }
    stripped
}
