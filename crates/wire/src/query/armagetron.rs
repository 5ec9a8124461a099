//! The queries of Armagetron Advanced: a short and a long description of a server.
//!
//! A datagram consists of messages of 16-bit words, which are big-endian, and a final word with the number of the sender:
//!
//! ```text
//! client   0034 0000 0000  0011                                           short
//!          0035 0000 0000  0011                                           long
//! server   0032 0000 COUNT WORDS...  0000      WORDS: port(2) address(text) transactions(2)
//!          0033 0000 COUNT WORDS...  0000      WORDS: port(2) address(text) name(text) users(2)
//!             oldest version(2) latest version(2) release(text) limit(2) users(text) options(text) website(text) ids(text)
//!             flags(1) ...settings
//! number   low word, high word
//! text     length with the final zero; two characters per word, of which the second is added as a signed number * 256
//! ```
//!
//! Fields were added over the years: a server that is older leaves out those at the end. A server that has not received a
//! short query for a while ignores long ones. Names of users, and their identifiers, are separated by line breaks.
//!
//! ```
//! use rallypoint_wire::query::armagetron::{Query, Response};
//!
//! let mut query = Vec::new();
//! Query::Short.emit(&mut query);
//! assert_eq!(query, [0, 0x34, 0, 0, 0, 0, 0, 0x11]);
//! let reply = b"\0\x32\0\0\0\x05\x11\xb6\0\0\0\0\0\0\0\0\0\0";
//! assert_eq!(Response::parse(reply)?, Response::Short);
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "armagetron";

/// Name of the query protocol for people.
pub const TITLE: &str = "Armagetron Advanced";

/// Default UDP port of a server.
pub const PORT: u16 = 4_534;

/// Longest datagram in bytes: what fits into one; the game sends at most 1,400 at a time.
pub const MAX_DATAGRAM: usize = 2_048;

/// Number of a sender that has not logged in.
const STRANGER: u16 = 17;

/// What a query requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// A confirmation, which permits a long query.
    Short,
    /// The description.
    Long,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To a short query.
    Short,
    /// To a long query.
    Long(Info),
}

/// The description of a server. `None`: the server is too old to send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Name of the server, with colour codes.
    pub name: Vec<u8>,
    /// Number of users.
    pub users: u32,
    /// Oldest and latest version of the protocol that the server supports.
    pub versions: Option<[u32; 2]>,
    /// Version of the server, in words.
    pub release: Option<Vec<u8>>,
    /// Maximum number of users.
    pub max_users: Option<u32>,
    /// Names of the users, each followed by a line break, with colour codes.
    pub user_names: Option<Vec<u8>>,
    /// Description of the settings by the owner of the server, with colour codes.
    pub options: Option<Vec<u8>>,
    /// Website of the server.
    pub website: Option<Vec<u8>>,
    /// Identifiers of the users that have logged in, in the order of their names: each followed by a line break.
    pub user_ids: Option<Vec<u8>>,
    /// Bit 0: users have to log in; bit 1: another map than the default one; bit 2: teams.
    pub flags: Option<u16>,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let descriptor: u16 = match self {
            Self::Short => 52,
            Self::Long => 53,
        };
        for word in [descriptor, 0, 0, STRANGER] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Whether a datagram is a query.
    #[must_use]
    pub fn is_query(datagram: &[u8]) -> bool {
        matches!(datagram, [0, 52 | 53, 0, 0, 0, 0, 0, 17])
    }
}

impl Response {
    /// Parses a datagram from a server: its first message.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(datagram: &[u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        let descriptor = reader.u16_be("descriptor")?;
        reader.u16_be("message")?;
        let length = usize::from(reader.u16_be("length")?) * 2;
        let mut message = Reader::new(reader.bytes(length, "message")?);
        reader.u16_be("sender")?;
        match descriptor {
            50 => {
                number(&mut message, "port")?;
                text(&mut message, "address")?;
                Ok(Self::Short)
            }
            51 => Info::parse(&mut message).map(Self::Long),
            _ => Err(DecodeError::new("descriptor", DecodeErrorKind::Unknown)),
        }
    }
}

impl Info {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        number(reader, "port")?;
        text(reader, "address")?;
        let mut info = Self {
            name: text(reader, "name")?,
            users: number(reader, "users")?,
            versions: None,
            release: None,
            max_users: None,
            user_names: None,
            options: None,
            website: None,
            user_ids: None,
            flags: None,
        };
        if !reader.is_empty() {
            info.versions = Some([number(reader, "oldest version")?, number(reader, "latest version")?]);
            info.release = Some(text(reader, "release")?);
        }
        if !reader.is_empty() {
            info.max_users = Some(number(reader, "maximum of users")?);
        }
        if !reader.is_empty() {
            info.user_names = Some(text(reader, "names of users")?);
            info.options = Some(text(reader, "options")?);
            info.website = Some(text(reader, "website")?);
        }
        if !reader.is_empty() {
            info.user_ids = Some(text(reader, "identifiers of users")?);
        }
        if !reader.is_empty() {
            info.flags = Some(reader.u16_be("flags")?);
        }
        // What follows is a digest of settings, with which clients rate servers.
        Ok(info)
    }
}

fn number(reader: &mut Reader<'_>, field: &'static str) -> Result<u32, DecodeError> {
    let low = reader.u16_be(field)?;
    let high = reader.u16_be(field)?;
    Ok(u32::from(high) << 16 | u32::from(low))
}

/// A text, without the zero at its end. A server adds two signed characters for a word, so a first one above 127 takes one off
/// the second.
fn text(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<u8>, DecodeError> {
    let length = usize::from(reader.u16_be(field)?);
    let words = reader.bytes(length.div_ceil(2) * 2, field)?.as_chunks().0;
    let characters = words.iter().flat_map(|word| {
        let word = u16::from_be_bytes(*word);
        let first = word as u8;
        let second = word.wrapping_sub(i16::from(first.cast_signed()).cast_unsigned()) >> 8;
        [first, second as u8]
    });
    Ok(characters.take(length).take_while(|character| *character != 0).collect())
}

/// Removes colour codes as the game does: `0x` and six characters, whatever they are, and an incomplete code at the end; again
/// if that makes new ones.
///
/// ```
/// use rallypoint_wire::query::armagetron::strip_colours;
///
/// assert_eq!(strip_colours(b"0xff0000Red0xRESETT and 0xff"), b"Red and ");
/// assert_eq!(strip_colours(b"00xffffffxff0000x"), b"");
/// ```
#[must_use]
pub fn strip_colours(text: &[u8]) -> Vec<u8> {
    let mut current = text.to_vec();
    for _ in 0..MAX_PASSES {
        let mut kept = Vec::with_capacity(current.len());
        let mut rest = &current[..];
        while let Some((first, behind)) = rest.split_first() {
            if rest.starts_with(b"0x") {
                rest = rest.get(COLOUR_LENGTH..).unwrap_or_default();
            } else {
                kept.push(*first);
                rest = behind;
            }
        }
        if kept.len() == current.len() {
            break;
        }
        current = kept;
    }
    current
}

/// Length of a colour code in bytes.
const COLOUR_LENGTH: usize = 8;

/// How many times codes are removed that the removal of others has made: more than twice only in texts made for it, whose cost
/// would grow with the square of their length.
const MAX_PASSES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn field(datagram: &[u8]) -> &'static str {
        Response::parse(datagram).unwrap_err().field
    }

    #[test]
    fn texts_are_words_of_two_signed_characters() {
        let read = |length: u16, rest: &[u16]| {
            let bytes = words(&[&[length], rest].concat());
            text(&mut Reader::new(&bytes), "text")
        };
        assert_eq!(read(5, &[0x6261, 0x6463, 0]).unwrap(), b"abcd");
        // f6 e4: e4f6 - 100.
        assert_eq!(read(4, &[0xe3f6, 0x0078]).unwrap(), b"\xf6\xe4x");
        assert_eq!(read(2, &[0xfff6]).unwrap(), b"\xf6");
        assert_eq!(read(0, &[]).unwrap(), b"");
        assert_eq!(read(1, &[0]).unwrap(), b"");
        assert!(read(3, &[0x6261]).is_err());
        assert!(read(0xffff, &[0x6261]).is_err());
    }

    #[test]
    fn an_old_server_leaves_out_the_end() {
        let message = words(&[51, 0, 7, 4534, 0, 0, 2, 0x0061, 3, 0, 0]);
        let Ok(Response::Long(info)) = Response::parse(&message) else { panic!("not long") };
        assert_eq!((&info.name[..], info.users, info.versions, info.flags), (&b"a"[..], 3, None, None));
        let message = words(&[51, 0, 14, 4534, 0, 0, 2, 0x0061, 3, 0, 0, 0, 17, 0, 1, 0, 99, 0]);
        let Err(error) = Response::parse(&message) else { panic!("cut off") };
        assert_eq!(error.field, "maximum of users");
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        assert_eq!([field(b""), field(b"\0"), field(b"\0\x32")], ["datagram", "descriptor", "message"]);
        assert_eq!(field(&words(&[50, 0, 9, 1, 2])), "message");
        assert_eq!(field(&words(&[50, 0, 0])), "sender");
        assert_eq!(field(&words(&[50, 0, 0, 0])), "port");
        assert_eq!(field(&words(&[28, 0, 0, 0])), "descriptor");
    }

    #[test]
    fn colours_are_removed_as_the_game_does() {
        for (text, expected) in [
            (&b"0x"[..], &b""[..]),
            (b"a0x12", b"a"),
            (b"0xffffff0x000000", b""),
            (b"0x0xffffffffffffb", b"ffffffffb"),
            (b"10 x0 x", b"10 x0 x"),
        ] {
            assert_eq!(strip_colours(text), expected, "{}", text.escape_ascii());
        }
    }
}
