//! The queries of Quake 2 and of the games on its engine: `status` and `info`.
//!
//! Every message begins with four bytes FF, and is text otherwise:
//!
//! ```text
//! client   ff ff ff ff status\n                 ff ff ff ff info PROTOCOL\n
//! server   ff ff ff ff print\n\key\value\key\value...\n
//!                      FRAGS PING "NAME"\n      one line per player, as many as fit into 1,384 bytes
//!          ff ff ff ff info\n            NAME      MAP  PLAYERS/ MAXIMUM\n
//!          ff ff ff ff info\nNAME: wrong version\n
//! ```
//!
//! Some games add an address in quotes to the line of a player. Nothing in a reply shows which query it answers.
//!
//! ```
//! use rallypoint_wire::query::quake2::Response;
//!
//! let reply = b"\xff\xff\xff\xffprint\n\\mapname\\q2dm1\\maxclients\\8\n12 48 \"Ada\"\n";
//! let Response::Status(status) = Response::parse(reply)? else { panic!("not a status") };
//! assert_eq!(status.settings.get("mapname"), Some(&b"q2dm1"[..]));
//! let player = status.players().next().expect("a player")?;
//! assert_eq!((player.frags, player.ping, player.name), (12, 48, &b"Ada"[..]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use super::quake3::InfoString;
use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "quake2";

/// Name of the query protocol for people.
pub const TITLE: &str = "Quake 2 and games on its engine";

/// Default UDP port of a server.
pub const PORT: u16 = 27_910;

/// Longest datagram of a server in bytes: more than the 1,400 of the engine, because games on it have other limits.
pub const MAX_DATAGRAM: usize = 8_192;

/// Length in bytes from which on players may have been left out of a status: the next line did not fit.
pub const MAY_LACK_PLAYERS: usize = 1_384 - 64;

/// Protocol number of Quake 2, version 3.20, which servers expect in `info`.
const PROTOCOL: &[u8] = b"34";

const PREFIX: &[u8] = b"\xff\xff\xff\xff";

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `status`: all settings, and the players.
    Status,
    /// `info`: a line with the name, the map and the number of players.
    Info,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// To `status`.
    Status(Status<'a>),
    /// To `info`.
    Info(Info<'a>),
}

/// All settings of a server, and its players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// The settings.
    pub settings: InfoString<'a>,
    players: &'a [u8],
}

/// The reply to `info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Name of the server.
    pub name: &'a [u8],
    /// What a server of another version of the game leaves out.
    pub state: Option<State<'a>>,
}

/// What the reply to `info` says beside the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<'a> {
    /// Current map.
    pub map: &'a [u8],
    /// Number of players.
    pub players: u16,
    /// Maximum number of players.
    pub max_players: u16,
}

/// The line of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLine<'a> {
    /// Points.
    pub frags: i32,
    /// Round-trip time in milliseconds.
    pub ping: i32,
    /// The name, in the character set of [`quake`](super::quake).
    pub name: &'a [u8],
}

impl Request {
    /// Parses a datagram from a client, which may be cut. `None` if it is none of these queries.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        match datagram.strip_prefix(PREFIX)? {
            text if text.starts_with(b"stat") => Some(Self::Status),
            text if text.starts_with(b"info") => Some(Self::Info),
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFIX);
        match self {
            Self::Status => out.extend_from_slice(b"status"),
            Self::Info => {
                out.extend_from_slice(b"info ");
                out.extend_from_slice(PROTOCOL);
            }
        }
        out.push(b'\n');
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these replies. A status that ends within the line of a player is not an error: see [`Status::players`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if datagram.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let Some(text) = datagram.strip_prefix(PREFIX) else { return error("prefix", DecodeErrorKind::Mismatch) };
        if let Some(line) = text.strip_prefix(b"info\n") {
            return Info::parse(line).map(Self::Info);
        }
        let Some(mut text) = text.strip_prefix(b"print\n") else { return error("command", DecodeErrorKind::Unknown) };
        // What the server printed before can precede the settings.
        while !text.starts_with(b"\\") {
            match text.iter().position(|byte| *byte == b'\n') {
                Some(end) => text = &text[end + 1..],
                None => return error("settings", DecodeErrorKind::Missing),
            }
        }
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
            return error("settings", DecodeErrorKind::Truncated);
        };
        Ok(Self::Status(Status { settings: InfoString::new(&text[..end]), players: &text[end + 1..] }))
    }
}

impl<'a> Info<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |kind| DecodeError::new("info", kind);
        let line = line.strip_suffix(b"\0").unwrap_or(line);
        let line = line.strip_suffix(b"\n").ok_or(error(DecodeErrorKind::Truncated))?;
        if let Some(name) = line.strip_suffix(b": wrong version") {
            return Ok(Self { name: name.trim_ascii(), state: None });
        }
        let number = |text: &[u8]| -> Option<u16> { str::from_utf8(text).ok()?.parse().ok() };
        let state = || {
            let slash = line.iter().rposition(|byte| *byte == b'/')?;
            let (rest, players) = last_word(&line[..slash])?;
            let (name, map) = last_word(rest)?;
            let (players, max_players) = (number(players)?, number(line[slash + 1..].trim_ascii())?);
            Some(Self { name: name.trim_ascii(), state: Some(State { map, players, max_players }) })
        };
        state().ok_or(error(DecodeErrorKind::Invalid))
    }
}

/// The last word of a line, and what precedes it.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let start = line.iter().rposition(u8::is_ascii_whitespace)? + 1;
    Some(line.split_at(start))
}

impl<'a> Status<'a> {
    /// The players. An error takes the place of a line that is not one of a player, or that is cut off.
    pub fn players(&self) -> impl Iterator<Item = Result<PlayerLine<'a>, DecodeError>> + use<'a> {
        let text = self.players.strip_suffix(b"\0").unwrap_or(self.players);
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty()).map(PlayerLine::parse)
    }
}

impl<'a> PlayerLine<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |kind| DecodeError::new("player", kind);
        let open = line.iter().position(|byte| *byte == b'"').ok_or(error(DecodeErrorKind::Truncated))?;
        let name = &line[open + 1..];
        let close = name.iter().position(|byte| *byte == b'"').ok_or(error(DecodeErrorKind::Truncated))?;
        let mut numbers = line[..open].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut number = || -> Option<i32> { str::from_utf8(numbers.next()?).ok()?.parse().ok() };
        match (number(), number()) {
            (Some(frags), Some(ping)) => Ok(Self { frags, ping, name: &name[..close] }),
            _ => Err(error(DecodeErrorKind::Invalid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(line: &[u8]) -> Result<Info<'_>, DecodeErrorKind> {
        Info::parse(line).map_err(|error| error.kind)
    }

    #[test]
    fn an_info_has_columns_for_short_names() {
        let state = |map, players, max_players| Some(State { map, players, max_players });
        let line = |name, state| Ok(Info { name, state });
        assert_eq!(info(b"         My Arena    q2dm1  1/ 8\n"), line(b"My Arena", state(b"q2dm1", 1, 8)));
        assert_eq!(
            info(b"A long name 1/2 of an arena a_long_map_name 12/200\n"),
            line(b"A long name 1/2 of an arena", state(b"a_long_map_name", 12, 200))
        );
        assert_eq!(info(b"Arena: wrong version\n"), line(b"Arena", None));
        assert_eq!(info(b"   q2dm1  1/ 8\n\0"), line(b"", state(b"q2dm1", 1, 8)));
    }

    #[test]
    fn hostile_lines_are_errors() {
        use DecodeErrorKind::{Invalid, Truncated};
        assert_eq!(info(b"arena q2dm1  1/ 8"), Err(Truncated));
        for line in [&b"\n"[..], b"/\n", b"1/8\n", b"a 1/8\n", b"a b -1/8\n", b"a b 1/\n", b"a b 1/99999\n"] {
            assert_eq!(info(line), Err(Invalid), "{}", line.escape_ascii());
        }
        let status = Status {
            settings: InfoString::new(b""),
            players: b"1 2 \"a\" \"127.0.0.1\"\n-5 999 \"b \xe2\"\n1 \"c\"\nx 1 \"d\"\n1 2 \"e\n1 2\n",
        };
        let line = |frags, ping, name| Ok(PlayerLine { frags, ping, name });
        let players: Vec<_> = status.players().map(|player| player.map_err(|error| error.kind)).collect();
        let errors = [Err(Invalid), Err(Invalid), Err(Truncated), Err(Truncated)];
        assert_eq!(players[..2], [line(1, 2, b"a"), line(-5, 999, b"b \xe2")]);
        assert_eq!(players[2..], errors);
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\xff\xff\xff", "prefix"),
            (b"\xff\xff\xff\xff", "command"),
            (b"\xff\xff\xff\xffstatus\n", "command"),
            (b"\xff\xff\xff\xffprint\n", "settings"),
            (b"\xff\xff\xff\xffprint\nBad rcon_password.\n", "settings"),
            (b"\xff\xff\xff\xffprint\n\\mapname\\q2", "settings"),
            (b"\xff\xff\xff\xffinfo\n", "info"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn lines_that_were_printed_before_the_settings_are_skipped() {
        let bytes = b"\xff\xff\xff\xffprint\nA map change\n\\mapname\\q2dm1\n";
        let Ok(Response::Status(status)) = Response::parse(bytes) else { panic!("not a status") };
        assert_eq!(status.settings.get("mapname"), Some(&b"q2dm1"[..]));
        assert_eq!(status.players().count(), 0);
    }

    #[test]
    fn queries_are_recognised_even_if_cut() {
        for request in [Request::Status, Request::Info] {
            let mut query = Vec::new();
            request.emit(&mut query);
            assert_eq!(Request::parse(&query), Some(request));
            assert_eq!(Request::parse(&query[..8]), Some(request));
        }
        assert_eq!(Request::parse(b"\xff\xff\xff\xffprint\n"), None);
        assert_eq!(Request::parse(b"status"), None);
    }
}
