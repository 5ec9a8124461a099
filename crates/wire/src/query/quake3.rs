//! The queries of Quake 3 and of the games on its engine and its descendants: `getinfo` and `getstatus`.
//!
//! Every message begins with four bytes FF, which set it apart from the game's own datagrams, and is text otherwise:
//!
//! ```text
//! client   ff ff ff ff getinfo CHALLENGE        ff ff ff ff getstatus CHALLENGE
//! server   ff ff ff ff infoResponse\n\key\value\key\value...
//!          ff ff ff ff statusResponse\n\key\value...\n
//!                      SCORE PING "NAME"\n      one line per player
//! ```
//!
//! A server repeats the challenge as the value of the key `challenge`. Descendants add the number of the player's team to the line
//! of a player: DarkPlaces before the name, QFusion after it; others leave the score out. In DarkPlaces, games write the score, and
//! need not write a number.
//!
//! ```
//! use rallypoint_wire::query::quake3::{Request, Response};
//!
//! let mut query = Vec::new();
//! Request::Status(b"4f2a").emit(&mut query);
//! assert_eq!(query, b"\xff\xff\xff\xffgetstatus 4f2a");
//!
//! let reply = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\4f2a\\mapname\\q3dm17\n12 48 \"^1Ada\"\n";
//! let Response::Status(status) = Response::parse(reply)? else { panic!("not a status") };
//! assert_eq!(status.settings.get("mapname"), Some(&b"q3dm17"[..]));
//! let player = status.players().next().expect("a player")?;
//! assert_eq!((player.score, player.ping, player.name), (Some(12), Some(48), &b"^1Ada"[..]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind};
use alloc::{borrow::Cow, vec::Vec};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "quake3";

/// Name of the query protocol for people.
pub const TITLE: &str = "Quake 3 and games on its engine";

/// Default UDP port of a server.
pub const PORT: u16 = 27_960;

/// Longest message of a server in bytes (`MAX_MSGLEN` of the engine).
pub const MAX_MESSAGE: usize = 16_384;

/// Maximum length of a challenge in bytes that a server repeats.
pub const MAX_CHALLENGE: usize = 128;

const PREFIX: &[u8] = b"\xff\xff\xff\xff";

/// A query, with its challenge, which may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `getinfo`: a short description.
    Info(&'a [u8]),
    /// `getstatus`: all settings, and the players.
    Status(&'a [u8]),
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// `infoResponse`.
    Info(InfoString<'a>),
    /// `statusResponse`.
    Status(Status<'a>),
}

/// All settings of a server, and its players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// The settings.
    pub settings: InfoString<'a>,
    players: &'a [u8],
}

/// Keys and values: `\key\value\key\value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoString<'a>(&'a [u8]);

/// The line of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLine<'a> {
    /// Points.
    pub score: Option<i32>,
    /// Round-trip time in milliseconds.
    pub ping: Option<i32>,
    /// Number of the team.
    pub team: Option<i32>,
    /// The name, with colour codes. It may contain quotes.
    pub name: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses a datagram from a client. `None` if it is none of these queries, or has a challenge that no reply can repeat.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let text = datagram.strip_prefix(PREFIX)?.trim_ascii_end();
        let (command, challenge) = match text.iter().position(u8::is_ascii_whitespace) {
            Some(end) => (&text[..end], text[end..].trim_ascii_start()),
            None => (text, &[][..]),
        };
        let is_allowed = |byte: &u8| byte.is_ascii_graphic() && !b"\\\";".contains(byte);
        if challenge.len() > MAX_CHALLENGE || !challenge.iter().all(is_allowed) {
            return None;
        }
        match command {
            b"getinfo" => Some(Self::Info(challenge)),
            b"getstatus" => Some(Self::Status(challenge)),
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let (command, challenge) = match self {
            Self::Info(challenge) => ("getinfo", challenge),
            Self::Status(challenge) => ("getstatus", challenge),
        };
        out.extend_from_slice(PREFIX);
        out.extend_from_slice(command.as_bytes());
        if !challenge.is_empty() {
            out.push(b' ');
            out.extend_from_slice(challenge);
        }
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
        let Some((command, body)) = split_line(text) else { return error("command", DecodeErrorKind::Truncated) };
        let is_status = match command.trim_ascii_end() {
            b"infoResponse" => false,
            b"statusResponse" => true,
            _ => return error("command", DecodeErrorKind::Unknown),
        };
        let (settings, players) = split_line(body).unwrap_or((body, &[]));
        if !settings.starts_with(b"\\") {
            let kind = if settings.is_empty() { DecodeErrorKind::Missing } else { DecodeErrorKind::Invalid };
            return error("settings", kind);
        }
        let settings = InfoString(settings);
        Ok(if is_status { Self::Status(Status { settings, players }) } else { Self::Info(settings) })
    }

    /// The settings of either reply.
    #[must_use]
    pub fn settings(&self) -> InfoString<'a> {
        match self {
            Self::Info(settings) | Self::Status(Status { settings, .. }) => *settings,
        }
    }
}

impl<'a> InfoString<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// All keys with their values, in order. A key at the end without a value has an empty one.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut parts = self.0.get(1..).unwrap_or_default().split(|byte| *byte == b'\\');
        core::iter::from_fn(move || Some((parts.next()?, parts.next().unwrap_or_default())))
            .filter(|(key, _)| !key.is_empty())
    }

    /// The first value of a key, in upper or lower case.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(key.as_bytes())).map(|(_, value)| value)
    }
}

impl<'a> Status<'a> {
    /// The players. An error takes the place of a line that is not one of a player, or that is cut off.
    pub fn players(&self) -> impl Iterator<Item = Result<PlayerLine<'a>, DecodeError>> + use<'a> {
        let lines = self.players.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty() && **line != [0]).map(PlayerLine::parse)
    }
}

impl<'a> PlayerLine<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |kind| DecodeError::new("player", kind);
        let open = line.iter().position(|byte| *byte == b'"').ok_or(error(DecodeErrorKind::Truncated))?;
        let close = line.iter().rposition(|byte| *byte == b'"').filter(|close| *close > open);
        let close = close.ok_or(error(DecodeErrorKind::Truncated))?;
        let number = |text: &[u8]| -> Result<i32, DecodeError> {
            let number = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.ok_or(error(DecodeErrorKind::Invalid))
        };
        let words = |text: &'a [u8]| text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut before = [None; 3];
        let mut count = 0;
        for word in words(&line[..open]) {
            let is_score = count == 0 && words(&line[..open]).count() > 1;
            let slot = before.get_mut(count).ok_or(error(DecodeErrorKind::Invalid))?;
            *slot = match number(word) {
                Ok(number) => Some(number),
                Err(_) if is_score => None,
                Err(error) => return Err(error),
            };
            count += 1;
        }
        let after = words(&line[close + 1..]).next().map(number).transpose()?;
        let (score, ping) = if count == 1 { (None, before[0]) } else { (before[0], before[1]) };
        Ok(Self { score, ping, team: before[2].or(after), name: &line[open + 1..close] })
    }
}

/// Appends an `infoResponse`, or the beginning of a `statusResponse`: its settings. Characters that an info string cannot hold
/// are replaced.
pub fn emit_settings<'a>(is_status: bool, settings: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(if is_status { b"statusResponse\n" } else { b"infoResponse\n" });
    for (key, value) in settings {
        for text in [key, value] {
            out.push(b'\\');
            out.extend(text.bytes().map(|byte| match byte {
                b'\\' => b'/',
                b'"' => b'\'',
                b';' => b',',
                0..b' ' => b' ',
                byte => byte,
            }));
        }
    }
    if is_status {
        out.push(b'\n');
    }
}

/// Appends the line of a player to a `statusResponse`.
pub fn emit_player(score: i32, ping: i32, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(alloc::format!("{score} {ping} \"").as_bytes());
    out.extend(name.bytes().map(|byte| match byte {
        b'"' => b'\'',
        0..b' ' => b' ',
        byte => byte,
    }));
    out.extend_from_slice(b"\"\n");
}

/// Writes the challenge of a query into its reply, which is at the end of `out` from `start` on. An empty one is left out.
pub fn insert_challenge(challenge: &[u8], start: usize, out: &mut Vec<u8>) {
    let Some(line) = out[start..].iter().position(|byte| *byte == b'\n') else { return };
    if challenge.is_empty() {
        return;
    }
    out.extend_from_slice(CHALLENGE);
    out.extend_from_slice(challenge);
    out[start + line + 1..].rotate_right(CHALLENGE.len() + challenge.len());
}

/// The key of a challenge in a reply.
pub const CHALLENGE: &[u8] = b"\\challenge\\";

/// Removes colour codes: a `^` and a letter or digit, and `^x` with three hexadecimal digits, which DarkPlaces has.
///
/// ```
/// use rallypoint_wire::query::quake3::strip_colours;
///
/// assert_eq!(*strip_colours(b"^1Red ^xf0fPink ^^ 5^"), *b"Red Pink ^^ 5^");
/// ```
#[must_use]
pub fn strip_colours(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'^') {
        return Cow::Borrowed(text);
    }
    let mut stripped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'^', [b'x', a, b, c, behind @ ..]) if [a, b, c].iter().all(|byte| byte.is_ascii_hexdigit()) => behind,
            (b'^', [code, behind @ ..]) if code.is_ascii_alphanumeric() => behind,
            _ => {
                stripped.push(byte);
                behind
            }
        };
    }
    Cow::Owned(stripped)
}

fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn players(lines: &[u8]) -> Vec<Result<PlayerLine<'_>, DecodeErrorKind>> {
        let status = Status { settings: InfoString(b""), players: lines };
        status.players().map(|player| player.map_err(|error| error.kind)).collect()
    }

    #[test]
    fn requests_are_read_as_clients_write_them() {
        for (bytes, expected) in [
            (&b"\xff\xff\xff\xffgetinfo xyz"[..], Some(Request::Info(b"xyz"))),
            (b"\xff\xff\xff\xffgetstatus\n", Some(Request::Status(b""))),
            (b"\xff\xff\xff\xffgetstatus 7f3a\n", Some(Request::Status(b"7f3a"))),
            (b"\xff\xff\xff\xffgetinfo a\\b", None),
            (b"\xff\xff\xff\xffgetinfo a\"b", None),
            (b"\xff\xff\xff\xffgetinfoxyz", None),
            (b"\xff\xff\xff\xffrcon x", None),
            (b"getinfo xyz", None),
            (b"", None),
        ] {
            assert_eq!(Request::parse(bytes), expected, "{}", bytes.escape_ascii());
        }
        let long = [b"\xff\xff\xff\xffgetinfo ", &[b'x'; MAX_CHALLENGE + 1][..]].concat();
        assert_eq!(Request::parse(&long), None);
    }

    #[test]
    fn the_lines_of_players_differ_by_game() {
        let line = |score, ping, team, name| Ok(PlayerLine { score, ping, team, name });
        assert_eq!(
            players(b"12 48 \"^1Ada\"\n-3 999 \"say \"hi\"\"\n7 20 2 \"Xon\"\n5 30 \"War\" 1\n0 \"Moh\"\n1 2 \"\"\n\0"),
            [
                line(Some(12), Some(48), None, b"^1Ada"),
                line(Some(-3), Some(999), None, b"say \"hi\""),
                line(Some(7), Some(20), Some(2), b"Xon"),
                line(Some(5), Some(30), Some(1), b"War"),
                line(None, Some(0), None, b"Moh"),
                line(Some(1), Some(2), None, b""),
            ]
        );
    }

    #[test]
    fn cut_and_hostile_lines_are_errors() {
        use DecodeErrorKind::{Invalid, Truncated};
        assert_eq!(players(b"1 2 \"cut\n12 4\n\"\n"), [Err(Truncated), Err(Truncated), Err(Truncated)]);
        assert_eq!(players(b"x y \"a\"\n99999999999 \"b\"\n1 2 3 4 \"c\"\n1 1 \"d\" e\n"), [Err(Invalid); 4]);
        let line = PlayerLine { score: None, ping: Some(7), team: Some(1), name: b"a" };
        assert_eq!(players(b"3:40.5 7 1 \"a\"\n99999999999 7 1 \"a\"\n"), [Ok(line); 2]);
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\xff\xff\xff", "prefix"),
            (b"\xff\xff\xff\xff", "command"),
            (b"\xff\xff\xff\xffinfoResponse", "command"),
            (b"\xff\xff\xff\xffprint\n\\a\\b", "command"),
            (b"\xff\xff\xff\xffinfoResponse\n", "settings"),
            (b"\xff\xff\xff\xffstatusResponse\nmapname\\x", "settings"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn keys_are_found_in_any_case_and_the_first_one_counts() {
        let info = InfoString(b"\\Hostname\\a\\hostname\\b\\\\empty\\last");
        assert_eq!(info.get("hostname"), Some(&b"a"[..]));
        assert_eq!(info.get("last"), Some(&b""[..]));
        assert_eq!(info.get("missing"), None);
        assert_eq!(InfoString(b"").iter().count(), 0);
    }

    #[test]
    fn settings_cannot_break_out_of_their_place() {
        let mut out = Vec::new();
        emit_settings(true, [("sv_hostname", "a\\b\"c;d\ne")], &mut out);
        emit_player(1, 2, "x\"\ny", &mut out);
        insert_challenge(b"7f", 0, &mut out);
        let Ok(Response::Status(status)) = Response::parse(&out) else { panic!("not a status") };
        assert!(status.settings.iter().eq([(&b"challenge"[..], &b"7f"[..]), (b"sv_hostname", b"a/b'c,d e")]));
        assert_eq!(status.players().next().unwrap().unwrap().name, b"x' y");
        assert_eq!(status.players().count(), 1);
    }
}
