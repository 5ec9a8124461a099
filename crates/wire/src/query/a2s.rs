//! The queries of Valve: A2S_INFO, A2S_PLAYER and A2S_RULES, of the engines GoldSrc and Source and of most games on Steam.
//!
//! All numbers are little-endian, all texts end with a zero byte. A server may demand a challenge for every query, and sends one in
//! place of the reply; the client repeats the query with it:
//!
//! ```text
//! client   ff ff ff ff 54 "Source Engine Query" 00 [challenge]
//!          ff ff ff ff 55 challenge             players; ff ff ff ff if the client has no challenge
//!          ff ff ff ff 56 challenge             rules
//! server   ff ff ff ff 41 challenge
//!          ff ff ff ff 49 ...                   info: see `Info`
//!          ff ff ff ff 6d ...                   info of old versions of GoldSrc
//!          ff ff ff ff 44 COUNT players         see `Players`
//!          ff ff ff ff 45 COUNT(2) rules        see `Rules`
//!          fe ff ff ff ...                      a part of a longer reply: see `Fragment`
//! ```
//!
//! ```
//! use rallypoint_wire::query::a2s::{Request, Response};
//!
//! let mut query = Vec::new();
//! Request::Players([1, 2, 3, 4]).emit(&mut query);
//! assert_eq!(query, b"\xff\xff\xff\xffU\x01\x02\x03\x04");
//!
//! let reply = b"\xff\xff\xff\xffD\x01\x00Ada\0\x05\0\0\0\0\0\xc0\x3f";
//! let Response::Players(players) = Response::parse(reply)? else { panic!("not players") };
//! let (list, cut) = players.list(Some(false));
//! assert_eq!((list[0].name, list[0].score, list[0].duration, cut), (&b"Ada"[..], 5, 1.5, None));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

mod info;
mod lists;
mod split;
mod text;

pub use info::{Extra, Info, Mod, Obsolete, Ship};
pub use lists::{Player, Players, Rules, ShipPlayer, emit_player, emit_players, emit_rule, emit_rules};
pub use split::{Compressed, Fragment, SplitForm, emit_split};
pub use text::display;

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "a2s";

/// Name of the query protocol for people.
pub const TITLE: &str = "Valve A2S: Source, GoldSrc and games on Steam";

/// Default UDP port of a server.
pub const PORT: u16 = 27_015;

/// Longest datagram of a server in bytes. Valve's are up to 1,400 bytes long; some games send longer ones instead of splitting.
pub const MAX_DATAGRAM: usize = 16_384;

/// Longest reply in bytes, put together and decompressed: several times the largest one of any known game.
pub const MAX_MESSAGE: usize = 256 << 10;

/// What a client sends that has no challenge yet.
pub const NO_CHALLENGE: [u8; 4] = [0xff; 4];

/// First bytes of a whole message.
const WHOLE: [u8; 4] = [0xff; 4];

/// First bytes of a part of a message.
const SPLIT: [u8; 4] = [0xfe, 0xff, 0xff, 0xff];

/// What follows the type in a query for the info.
const INFO_QUERY: &[u8] = b"Source Engine Query\0";

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A2S_INFO, with the server's challenge if there is one.
    Info(Option<[u8; 4]>),
    /// A2S_PLAYER, with the server's challenge or [`NO_CHALLENGE`].
    Players([u8; 4]),
    /// A2S_RULES, with the server's challenge or [`NO_CHALLENGE`].
    Rules([u8; 4]),
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is parsed")]
pub enum Response<'a> {
    /// S2C_CHALLENGE: the query has to be repeated with this challenge.
    Challenge([u8; 4]),
    /// S2A_INFO_SRC, or S2A_INFO_DETAILED of GoldSrc.
    Info(Info<'a>),
    /// S2A_PLAYER.
    Players(Players<'a>),
    /// S2A_RULES.
    Rules(Rules<'a>),
}

/// Whether a datagram of a server is a part of a longer message.
#[must_use]
pub fn is_split(datagram: &[u8]) -> bool {
    datagram.starts_with(&SPLIT)
}

impl Request {
    /// Parses a datagram from a client; `None` if it is none of these queries. Bytes after a query, which some clients add, are
    /// ignored.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        match datagram.strip_prefix(&WHOLE)?.split_first()? {
            (b'T', rest) => Some(Self::Info(rest.strip_prefix(INFO_QUERY)?.first_chunk().copied())),
            (b'U', rest) => Some(Self::Players(*rest.first_chunk()?)),
            (b'V', rest) => Some(Self::Rules(*rest.first_chunk()?)),
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&WHOLE);
        match self {
            Self::Info(challenge) => {
                out.push(b'T');
                out.extend_from_slice(INFO_QUERY);
                out.extend_from_slice(challenge.as_ref().map_or(&[], |challenge| &challenge[..]));
            }
            Self::Players(challenge) => {
                out.push(b'U');
                out.extend_from_slice(&challenge);
            }
            Self::Rules(challenge) => {
                out.push(b'V');
                out.extend_from_slice(&challenge);
            }
        }
    }
}

impl<'a> Response<'a> {
    /// Parses a whole message of a server: a datagram, or what the parts of a split message were put together to.
    ///
    /// # Errors
    /// If it is none of these replies, or an info that ends before its last mandatory field. What is cut off elsewhere is an error
    /// when it is read: [`Info::cut`], [`Players::list`], [`Rules::iter`].
    pub fn parse(message: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if message.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let Some(rest) = message.strip_prefix(&WHOLE) else { return error("prefix", DecodeErrorKind::Mismatch) };
        let mut reader = Reader::new(rest);
        match reader.u8("type")? {
            b'A' => Ok(Self::Challenge(*reader.array("challenge")?)),
            b'I' => Info::parse(reader).map(Self::Info),
            b'm' => Info::parse_obsolete(reader).map(Self::Info),
            b'D' => Players::parse(reader).map(Self::Players),
            b'E' => Rules::parse(reader).map(Self::Rules),
            _ => error("type", DecodeErrorKind::Unknown),
        }
    }
}

impl Response<'_> {
    /// Whether the reply ends where its numbers say. If it does not, parts of different messages may have been put together.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self {
            Self::Challenge(_) => true,
            Self::Info(info) => info.cut.is_none(),
            Self::Players(players) => players.is_exact(),
            Self::Rules(rules) => rules.is_exact(),
        }
    }
}

/// Appends a reply that consists of a challenge, without the challenge itself.
pub fn emit_challenge(out: &mut Vec<u8>) {
    out.extend_from_slice(&WHOLE);
    out.push(b'A');
}

/// Appends a text and its end. Zero bytes within it are left out.
fn emit_text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_documented_bytes() {
        for (request, bytes) in [
            (Request::Info(None), &b"\xff\xff\xff\xffTSource Engine Query\0"[..]),
            (Request::Info(Some([1, 2, 3, 4])), b"\xff\xff\xff\xffTSource Engine Query\0\x01\x02\x03\x04"),
            (Request::Players(NO_CHALLENGE), b"\xff\xff\xff\xffU\xff\xff\xff\xff"),
            (Request::Rules([0x4b, 0xa1, 0xd5, 0x22]), b"\xff\xff\xff\xffV\x4b\xa1\xd5\x22"),
        ] {
            let mut out = Vec::new();
            request.emit(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(Request::parse(bytes), Some(request));
        }
        for other in [
            &b""[..],
            b"\xff\xff\xff\xff",
            b"\xff\xff\xff\xffTSource Engine Query",
            b"\xff\xff\xff\xffU\x01\x02\x03",
            b"\xff\xff\xff\xffA\x01\x02\x03\x04",
            b"\xfe\xff\xff\xffU\x01\x02\x03\x04",
        ] {
            assert_eq!(Request::parse(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\xff\xff\xff", "prefix"),
            (b"\xfe\xff\xff\xff\x49", "prefix"),
            (b"\xff\xff\xff\xff", "type"),
            (b"\xff\xff\xff\xffj", "type"),
            (b"\xff\xff\xff\xffA\x01\x02\x03", "challenge"),
            (b"\xff\xff\xff\xffD", "number of players"),
            (b"\xff\xff\xff\xffE\x01", "number of rules"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_challenge_is_four_bytes() {
        let mut out = Vec::new();
        emit_challenge(&mut out);
        out.extend([0x4b, 0xa1, 0xd5, 0x22]);
        assert_eq!(Response::parse(&out), Ok(Response::Challenge([0x4b, 0xa1, 0xd5, 0x22])));
    }
}
