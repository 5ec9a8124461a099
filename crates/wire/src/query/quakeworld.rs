//! The query of QuakeWorld: `status`.
//!
//! Every message begins with four bytes FF. A reply is what the server's console prints, after the letter `n`:
//!
//! ```text
//! client   ff ff ff ff status FLAGS\n
//! server   ff ff ff ff n \key\value\key\value...\n
//!                        ID FRAGS MINUTES PING "NAME" "SKIN" TOP BOTTOM "TEAM" "KIND"\n      one line per player, then 00
//!          ff ff ff ff n ID FRAGS ...\n                                                        what did not fit into 8,000 bytes
//! ```
//!
//! The flags are those of MVDSV: the sum of 1 (settings), 2 (players), 4 (spectators), 16 (with teams) and 128 (with `b` for a bot
//! or `h` for a human). Other servers ignore them, and leave the last two fields out. A spectator has a negative ping, and
//! `\s\` before the name. Nothing in a reply shows which query it answers. In HexenWorld, a message begins with five bytes FF.
//!
//! ```
//! use rallypoint_wire::query::quakeworld::Status;
//!
//! let reply = b"\xff\xff\xff\xffn\\map\\dm3\n7 12 3 25 \"Ada\" \"base\" 4 4 \"red\" \"h\"\n\0";
//! let status = Status::parse(reply)?;
//! assert_eq!(status.settings.unwrap().get("map"), Some(&b"dm3"[..]));
//! let player = status.players().next().expect("a player")?;
//! assert_eq!((player.name, player.frags, player.team), (&b"Ada"[..], Some(12), Some(&b"red"[..])));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use super::quake3::InfoString;
use crate::{DecodeError, DecodeErrorKind};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "quakeworld";

/// Name of the query protocol for people.
pub const TITLE: &str = "QuakeWorld and HexenWorld";

/// Default UDP port of a server.
pub const PORT: u16 = 27_500;

/// Longest datagram of a server in bytes: its console's buffer, and the header.
pub const MAX_DATAGRAM: usize = 8_006;

/// Length in bytes from which on a reply may have been continued in another datagram: the next line did not fit.
pub const MAY_BE_CONTINUED: usize = MAX_DATAGRAM - 512;

const PREFIX: &[u8] = b"\xff\xff\xff\xff";

/// Settings, players, spectators, teams and kinds of players.
const QUERY: &[u8] = b"\xff\xff\xff\xffstatus 151\n";

const HEXENWORLD_QUERY: &[u8] = b"\xff\xff\xff\xff\xffstatus\n";

/// A reply, or its continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Whether it is a reply of HexenWorld.
    pub is_hexenworld: bool,
    /// The settings; none in a continuation.
    pub settings: Option<InfoString<'a>>,
    players: &'a [u8],
}

/// The line of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLine<'a> {
    /// Number of the player, which no other player has had since the server was started.
    pub id: i32,
    /// Points; none of a spectator.
    pub frags: Option<i32>,
    /// Time since the player joined, in minutes.
    pub minutes: i32,
    /// Round-trip time in milliseconds.
    pub ping: i32,
    /// The name, in the character set of [`quake`](super::quake).
    pub name: &'a [u8],
    /// Name of the skin.
    pub skin: &'a [u8],
    /// Colour of the shirt.
    pub top: u8,
    /// Colour of the trousers.
    pub bottom: u8,
    /// Name of the team; none if the server does not know the flag.
    pub team: Option<&'a [u8]>,
    /// Whether the player is a bot; none if the server does not know the flag.
    pub is_bot: Option<bool>,
    /// Whether the player only watches.
    pub is_spectator: bool,
}

/// Appends the query.
pub fn emit_query(out: &mut Vec<u8>) {
    out.extend_from_slice(QUERY);
}

/// Appends the query of HexenWorld.
pub fn emit_hexenworld_query(out: &mut Vec<u8>) {
    out.extend_from_slice(HEXENWORLD_QUERY);
}

/// Whether a datagram, which may be cut, is one of these queries.
#[must_use]
pub fn is_query(datagram: &[u8]) -> bool {
    datagram.len() > PREFIX.len() + 1 && (QUERY.starts_with(datagram) || HEXENWORLD_QUERY.starts_with(datagram))
}

impl<'a> Status<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is not such a reply. One that ends within the line of a player is not an error: see [`Status::players`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if datagram.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let Some(text) = datagram.strip_prefix(PREFIX) else { return error("prefix", DecodeErrorKind::Mismatch) };
        let (is_hexenworld, text) = text.strip_prefix(b"\xff").map_or((false, text), |text| (true, text));
        let Some(text) = text.strip_prefix(b"n") else { return error("command", DecodeErrorKind::Unknown) };
        if !text.starts_with(b"\\") {
            let begins_with_number = text.first().is_some_and(u8::is_ascii_digit);
            return match begins_with_number {
                true => Ok(Self { is_hexenworld, settings: None, players: text }),
                false => error("settings", DecodeErrorKind::Missing),
            };
        }
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
            return error("settings", DecodeErrorKind::Truncated);
        };
        Ok(Self { is_hexenworld, settings: Some(InfoString::new(&text[..end])), players: &text[end + 1..] })
    }

    /// The players. An error takes the place of a line that is not one of a player, or that is cut off.
    pub fn players(&self) -> impl Iterator<Item = Result<PlayerLine<'a>, DecodeError>> + use<'a> {
        let text = self.players.strip_suffix(b"\0").unwrap_or(self.players);
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| !line.trim_ascii().is_empty()).map(PlayerLine::parse)
    }
}

impl<'a> PlayerLine<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |kind| DecodeError::new("player", kind);
        // A line that is cut off could end in a part of a number.
        let line = line.strip_suffix(b"\n").ok_or(error(DecodeErrorKind::Truncated))?;
        let mut words = Words(line);
        let mut next = || words.next().ok_or(error(DecodeErrorKind::Invalid));
        let number = |word: &[u8]| -> Result<i32, DecodeError> {
            str::from_utf8(word).ok().and_then(|word| word.parse().ok()).ok_or(error(DecodeErrorKind::Invalid))
        };
        let colour = |word: &[u8]| number(word).map(|number| number.clamp(0, 255) as u8);
        let id = number(next()?)?;
        let frags = next()?;
        let minutes = number(next()?)?;
        let ping = number(next()?)?;
        let name = next()?;
        let skin = next()?;
        let top = colour(next()?)?;
        let bottom = colour(next()?)?;
        let team = words.next();
        let is_bot = match words.last() {
            Some(b"b") => Some(true),
            Some(b"h") => Some(false),
            _ => None,
        };
        let (name, has_mark) = name.strip_prefix(b"\\s\\").map_or((name, false), |name| (name, true));
        let is_spectator = has_mark && ping <= 0 || frags == b"S";
        let frags = if is_spectator { None } else { Some(number(frags)?) };
        let ping = ping.saturating_abs();
        Ok(Self { id, frags, minutes, ping, name, skin, top, bottom, team, is_bot, is_spectator })
    }
}

/// Words between spaces, and texts between quotes.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_start();
        let (word, rest) = match text.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quoted.iter().position(|byte| *byte == b'"')?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => {
                let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
                text.split_at(end)
            }
        };
        self.0 = rest;
        (!text.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn players(lines: &[u8]) -> Vec<Result<PlayerLine<'_>, DecodeErrorKind>> {
        let status = Status { is_hexenworld: false, settings: None, players: lines };
        status.players().map(|player| player.map_err(|error| error.kind)).collect()
    }

    #[test]
    fn lines_of_old_and_new_servers() {
        let ada = PlayerLine {
            id: 7,
            frags: Some(-3),
            minutes: 12,
            ping: 25,
            name: b"\xc1da",
            skin: b"",
            top: 4,
            bottom: 13,
            team: None,
            is_bot: None,
            is_spectator: false,
        };
        assert_eq!(players(b"7 -3 12 25 \"\xc1da\" \"\" 4 13\n\0"), [Ok(ada)]);
        let with_team = PlayerLine { team: Some(b"r e d"), ..ada };
        assert_eq!(players(b"7 -3 12 25 \"\xc1da\" \"\" 4 13 \"r e d\"\n"), [Ok(with_team)]);
        let bot = PlayerLine { is_bot: Some(true), ..with_team };
        assert_eq!(players(b"7 -3 12 25 \"\xc1da\" \"\" 4 13 \"r e d\" \"b\"\n"), [Ok(bot)]);
        let spectator = PlayerLine { frags: None, is_spectator: true, ..ada };
        assert_eq!(
            players(b"7 -9999 12 -25 \"\\s\\\xc1da\" \"\" 4 13\n7 S 12 25 \"\xc1da\" \"\" 4 13\n"),
            [Ok(spectator); 2]
        );
    }

    #[test]
    fn cut_and_hostile_lines_are_errors() {
        use DecodeErrorKind::{Invalid, Truncated};
        assert_eq!(players(b"7 1 2 3 \"a\" \"\" 4 1"), [Err(Truncated)]);
        assert_eq!(
            players(b"7 1 2 3 \"a\n1\nx 1 2 3 \"a\" \"\" 4 1\n7 1 2 3 \"a\" \"\" 99999999999 1\n"),
            [Err(Invalid); 4]
        );
    }

    #[test]
    fn datagrams_that_are_no_replies_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\xff\xff\xff", "prefix"),
            (b"\xff\xff\xff\xff", "command"),
            (b"\xff\xff\xff\xffstatus\n", "command"),
            (b"\xff\xff\xff\xffn", "settings"),
            (b"\xff\xff\xff\xffnBad rcon_password.\n", "settings"),
            (b"\xff\xff\xff\xffn\\map\\dm", "settings"),
        ] {
            assert_eq!(Status::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn the_query_is_recognised_even_if_cut() {
        let mut query = Vec::new();
        emit_query(&mut query);
        assert_eq!(query, b"\xff\xff\xff\xffstatus 151\n");
        assert!(is_query(&query) && is_query(&query[..8]));
        query.clear();
        emit_hexenworld_query(&mut query);
        assert_eq!(query, b"\xff\xff\xff\xff\xffstatus\n");
        assert!(is_query(&query) && is_query(&query[..8]));
        assert!(!is_query(b"") && !is_query(b"\xff\xff\xff\xff") && !is_query(b"\xff\xff\xff\xffgetinfo"));
    }
}
