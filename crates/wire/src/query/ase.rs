//! The query of The All-Seeing Eye, a server browser: Multi Theft Auto, Far Cry, Chaser, Purge.
//!
//! The port is usually that of the game plus 123. Everything is text, also the numbers; a length includes itself.
//!
//! ```text
//! client   73
//! server   45 59 45 31 game port name mode map version password players max {name value}... 01 {player}...
//! player   FIELDS [name] [team] [skin] [score] [ping] [time]
//!                 01     02     04     08      10     20
//! text     LENGTH bytes
//! ```
//!
//! ```
//! use rallypoint_wire::query::ase::Status;
//!
//! let reply = b"EYE1\x04mta\x0622003\x07Bacon \x03DM\x05None\x041.6\x020\x021\x0332\x01\x09\x04Ada\x025";
//! let status = Status::parse(reply)?;
//! assert_eq!((status.name, status.players), (&b"Bacon "[..], Some(1)));
//! let player = status.list().next().expect("a player")?;
//! assert_eq!((player.name, player.score), (&b"Ada"[..], &b"5"[..]));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::{borrow::Cow, string::String, vec::Vec};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "ase";

/// Name of the query protocol for people.
pub const TITLE: &str = "All-Seeing Eye: Multi Theft Auto, Far Cry";

/// Default UDP port of the queries of a server: that of Multi Theft Auto.
pub const PORT: u16 = 22_126;

/// Longest datagram of a server in bytes. There is only one, so that it grows with the number of players: 25 bytes for each.
pub const MAX_DATAGRAM: usize = 16_384;

/// The query.
pub const QUERY: &[u8] = b"s";

const PREFIX: [u8; 4] = *b"EYE1";

/// The description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Short name of the game.
    pub game: &'a [u8],
    /// Port of the game.
    pub port: Option<u16>,
    /// Name of the server.
    pub name: &'a [u8],
    /// Game mode.
    pub mode: &'a [u8],
    /// Current map.
    pub map: &'a [u8],
    /// Version of the game.
    pub version: &'a [u8],
    /// Whether a password is required.
    pub password: bool,
    /// Number of players.
    pub players: Option<u16>,
    /// Maximum number of players.
    pub max_players: Option<u16>,
    rest: &'a [u8],
}

/// A player. Fields that the server does not send are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Player<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Name of the team.
    pub team: &'a [u8],
    /// Appearance.
    pub skin: &'a [u8],
    /// Points; in some games any text.
    pub score: &'a [u8],
    /// Round-trip time in milliseconds.
    pub ping: &'a [u8],
    /// Time since the player joined, in a form of the game's own.
    pub time: &'a [u8],
}

impl<'a> Status<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of this protocol, or ends before the rules.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if *reader.array("prefix")? != PREFIX {
            return Err(DecodeError::new("prefix", DecodeErrorKind::Mismatch));
        }
        let mut text = |field| text(&mut reader, field);
        let game = text("game")?;
        let port = number(text("port")?);
        let name = text("name")?;
        let mode = text("mode")?;
        let map = text("map")?;
        let version = text("version")?;
        let password = !matches!(text("password")?, b"" | b"0");
        let players = number(text("number of players")?);
        let max_players = number(text("maximum number of players")?);
        let rest = reader.take_rest();
        Ok(Self { game, port, name, mode, map, version, password, players, max_players, rest })
    }

    /// Names and values of the rules. An error takes the place of the one where the datagram is cut off.
    pub fn rules(&self) -> impl Iterator<Item = Result<Rule<'a>, DecodeError>> + use<'a> {
        let mut reader = Some(Reader::new(self.rest));
        core::iter::from_fn(move || {
            let rule = rule(reader.as_mut()?).transpose();
            if !matches!(rule, Some(Ok(_))) {
                reader = None;
            }
            rule
        })
    }

    /// The players. An error takes the place of the one where the datagram is cut off.
    pub fn list(&self) -> impl Iterator<Item = Result<Player<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.rest);
        while let Ok(Some(_)) = rule(&mut reader) {}
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let player = Player::parse(&mut reader);
            if player.is_err() {
                reader.take_rest();
            }
            Some(player)
        })
    }
}

/// Name and value of a rule.
type Rule<'a> = (&'a [u8], &'a [u8]);

/// The next rule; `None` at the end of the rules, which is an empty name.
fn rule<'a>(reader: &mut Reader<'a>) -> Result<Option<Rule<'a>>, DecodeError> {
    let rule = (|| {
        let name = text(reader, "name of a rule")?;
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Some((name, text(reader, "value of a rule")?)))
    })();
    if rule.is_err() {
        // No players follow.
        reader.take_rest();
    }
    rule
}

impl<'a> Player<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let fields = reader.u8("fields of a player")?;
        if fields & 0xc0 != 0 {
            return Err(DecodeError::new("fields of a player", DecodeErrorKind::Unknown));
        }
        let mut field = |bit, name| if fields & bit != 0 { text(reader, name) } else { Ok(&[][..]) };
        Ok(Self {
            name: field(0x01, "name of a player")?,
            team: field(0x02, "team of a player")?,
            skin: field(0x04, "skin of a player")?,
            score: field(0x08, "score of a player")?,
            ping: field(0x10, "ping of a player")?,
            time: field(0x20, "time of a player")?,
        })
    }
}

fn text<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let length = reader.u8(field)?;
    let length = length.checked_sub(1).ok_or(DecodeError::new(field, DecodeErrorKind::Zero))?;
    reader.bytes(length.into(), field)
}

/// A number; `None` if the text is none.
pub fn number<N: core::str::FromStr>(text: &[u8]) -> Option<N> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Decodes a text of a game for display, without colours: in Far Cry, a `$` and a digit.
///
/// ```
/// use rallypoint_wire::query::ase::display;
///
/// assert_eq!(display(b"$3Bacon $6Town", b"farcry"), "Bacon Town");
/// assert_eq!(display(b"$3 for a ride", b"mta"), "$3 for a ride");
/// ```
#[must_use]
pub fn display<'a>(text: &'a [u8], game: &[u8]) -> Cow<'a, str> {
    if !game.eq_ignore_ascii_case(b"farcry") || !text.contains(&b'$') {
        return crate::text::display(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'$', [digit, behind @ ..]) if digit.is_ascii_digit() => behind,
            _ => {
                plain.push(byte);
                behind
            }
        };
    }
    Cow::Owned(String::from(crate::text::display(&plain)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn status(players: &[u8]) -> Vec<u8> {
        let base = b"EYE1\x04mta\x0622003\x02n\x02m\x02p\x021\x021\x03-1\x0332\x05rule\x02v\x01";
        [base, players].concat()
    }

    #[test]
    fn a_status_has_rules_and_players() {
        let bytes = status(b"\x3f\x04Ada\x04Red\x02s\x03-5\x0360\x038m\x09\x06Grace\x01\x3f\x01\x01\x01\x01\x01\x01");
        let status = Status::parse(&bytes).unwrap();
        assert_eq!((status.game, status.port, status.password), (&b"mta"[..], Some(22_003), true));
        assert_eq!((status.players, status.max_players), (None, Some(32)));
        assert_eq!(status.rules().collect::<Vec<_>>(), [Ok((&b"rule"[..], &b"v"[..]))]);
        let ada = Player { name: b"Ada", team: b"Red", skin: b"s", score: b"-5", ping: b"60", time: b"8m" };
        let grace = Player { name: b"Grace", ..Player::default() };
        assert_eq!(status.list().collect::<Vec<_>>(), [Ok(ada), Ok(grace), Ok(Player::default())]);
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let whole = status(b"\x3f\x04Ada\x04Red\x02s\x03-5\x0360\x038m");
        let rules = whole.len() - 20 - 7;
        for end in 0..whole.len() {
            let Ok(status) = Status::parse(&whole[..end]) else {
                assert!(end < rules, "{end}");
                continue;
            };
            let errors = status.rules().filter(Result::is_err).count() + status.list().filter(Result::is_err).count();
            // After the rules there may be no player.
            assert_eq!(errors, usize::from(end != whole.len() - 20), "{end}");
        }
        assert_eq!(Status::parse(b"EYE2\x04mta").unwrap_err().field, "prefix");
        assert_eq!(Status::parse(b"EYE1\0").unwrap_err().kind, DecodeErrorKind::Zero);
        let list = |players: &[u8]| {
            let bytes = status(players);
            let status = Status::parse(&bytes).unwrap();
            status.list().map(|player| player.map(drop).map_err(|error| error.kind)).collect::<Vec<_>>()
        };
        assert_eq!(list(b"\x80\x01"), [Err(DecodeErrorKind::Unknown)]);
        assert_eq!(list(b"\x01\0\x01\x02a"), [Err(DecodeErrorKind::Zero)]);
        assert_eq!(list(b"\x01\x02a\x01\x09"), vec![Ok(()), Err(DecodeErrorKind::Truncated)]);
    }
}
