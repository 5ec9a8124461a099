//! Quake 3: messages between servers, clients and their master (dpmaster, port 27950). All are "out of band".
//!
//! ```text
//! server → master   heartbeat TAG\n                                             a server announces itself, or ends
//! master → server   getinfo CHALLENGE
//! server → master   infoResponse\n\key\value\key\value…                         see `query::quake3`; with the challenge
//! client → master   getservers [GAME] PROTOCOL [empty] [full]
//! master → client   getserversResponse entry…                                   several datagrams, the last ends with EOT
//! client → master   getserversExt GAME PROTOCOL [empty] [full] [ipv4] [ipv6]
//! master → client   getserversExtResponse entry…
//! ```
//!
//! Every message begins with four bytes ff. An entry is `\`, an IPv4 address and a port, or `/`, an IPv6 address and a port, in
//! network byte order; the end is `\EOT` and three zero bytes.

mod server_list;

pub use server_list::{END, MAX_LIST_DATAGRAM, emit_entry, servers};

use crate::{
    DecodeError, DecodeErrorKind,
    query::quake3::{InfoString, Response},
};

/// UDP port of a master.
pub const PORT: u16 = 27_950;

/// Length of the longest message to a master that is parsed, in bytes.
pub const MAX_MESSAGE: usize = 2_048;

const OUT_OF_BAND: &[u8; 4] = b"\xff\xff\xff\xff";

/// Maximum length of the tag of a heartbeat, and of the name of a game, in bytes.
const MAX_NAME: usize = 64;

/// A message to a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterMessage<'a> {
    /// A server announces itself. The tag names its family of games: `QuakeArena-1`, `DarkPlaces`.
    Heartbeat(&'a [u8]),
    /// A server describes itself, in reply to `getinfo`.
    InfoResponse(InfoString<'a>),
    /// A client requests the servers of a game.
    ListRequest(ListRequest<'a>),
}

/// A request for the servers of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest<'a> {
    /// Whether it is `getserversExt`, whose reply can contain IPv6 addresses.
    pub is_extended: bool,
    /// The name of the game; `None` in requests of old clients, which only name a protocol.
    pub game: Option<&'a [u8]>,
    /// The version of the game's protocol.
    pub protocol: u32,
    /// Whether empty servers are requested too.
    pub empty: bool,
    /// Whether full servers are requested too.
    pub full: bool,
    /// Whether IPv4 addresses are requested.
    pub ipv4: bool,
    /// Whether IPv6 addresses are requested.
    pub ipv6: bool,
}

/// The command of an out-of-band message, and what follows it.
///
/// The command ends before the first white space or backslash. It is not part of what follows.
pub fn parse_out_of_band(bytes: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let error = |field, kind| Err(DecodeError::new(field, kind));
    if bytes.len() > MAX_MESSAGE {
        return error("message", DecodeErrorKind::TooLong);
    }
    let Some(message) = bytes.strip_prefix(OUT_OF_BAND) else {
        let is_cut = OUT_OF_BAND.starts_with(bytes);
        return error("out-of-band mark", if is_cut { DecodeErrorKind::Truncated } else { DecodeErrorKind::Unknown });
    };
    let end = message.iter().position(|byte| *byte <= b' ' || *byte == b'\\').unwrap_or(message.len());
    if end == 0 {
        return error("command", DecodeErrorKind::Missing);
    }
    Ok(message.split_at(end))
}

impl<'a> MasterMessage<'a> {
    /// Parses a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (command, rest) = parse_out_of_band(bytes)?;
        match command {
            b"heartbeat" => name(rest.trim_ascii(), "heartbeat tag").map(Self::Heartbeat),
            b"infoResponse" => match Response::parse(bytes)? {
                Response::Info(info) => Ok(Self::InfoResponse(info)),
                Response::Status(_) => Err(DecodeError::new("command", DecodeErrorKind::Unknown)),
            },
            b"getservers" => ListRequest::parse(rest, false).map(Self::ListRequest),
            b"getserversExt" => ListRequest::parse(rest, true).map(Self::ListRequest),
            _ => Err(DecodeError::new("command", DecodeErrorKind::Unknown)),
        }
    }
}

impl<'a> ListRequest<'a> {
    fn parse(arguments: &'a [u8], is_extended: bool) -> Result<Self, DecodeError> {
        let mut words = arguments.split(|byte| *byte <= b' ').filter(|word| !word.is_empty()).peekable();
        let game = match words.peek() {
            Some(word) if !is_extended && is_number(word) => None,
            Some(word) => {
                let game = name(word, "game name")?;
                words.next();
                Some(game)
            }
            None => return Err(DecodeError::new("protocol", DecodeErrorKind::Missing)),
        };
        let protocol = words.next().ok_or(DecodeError::new("protocol", DecodeErrorKind::Missing))?;
        let protocol = number(protocol).ok_or(DecodeError::new("protocol", DecodeErrorKind::Invalid))?;
        let mut request = Self { is_extended, game, protocol, empty: false, full: false, ipv4: false, ipv6: false };
        for word in words {
            match word {
                b"empty" => request.empty = true,
                b"full" => request.full = true,
                b"ipv4" => request.ipv4 = is_extended,
                b"ipv6" => request.ipv6 = is_extended,
                // Further filters, such as gametype=1, are for masters that know them.
                _ => {}
            }
        }
        if !request.ipv4 && !request.ipv6 {
            request.ipv4 = true;
            request.ipv6 = is_extended;
        }
        Ok(request)
    }

    /// The beginning of every datagram of the reply.
    #[must_use]
    pub const fn reply_header(&self) -> &'static [u8] {
        if self.is_extended { b"\xff\xff\xff\xffgetserversExtResponse" } else { b"\xff\xff\xff\xffgetserversResponse" }
    }
}

/// A name of printable ASCII.
fn name<'a>(text: &'a [u8], field: &'static str) -> Result<&'a [u8], DecodeError> {
    match text {
        [] => Err(DecodeError::new(field, DecodeErrorKind::Missing)),
        _ if text.len() > MAX_NAME => Err(DecodeError::new(field, DecodeErrorKind::TooLong)),
        _ if !text.iter().all(u8::is_ascii_graphic) => Err(DecodeError::new(field, DecodeErrorKind::Invalid)),
        _ => Ok(text),
    }
}

fn is_number(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit)
}

fn number(word: &[u8]) -> Option<u32> {
    core::str::from_utf8(word).ok().filter(|word| is_number(word.as_bytes()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_messages_are_parsed() {
        let heartbeat = b"\xff\xff\xff\xffheartbeat QuakeArena-1\n";
        assert_eq!(MasterMessage::parse(heartbeat), Ok(MasterMessage::Heartbeat(b"QuakeArena-1")));
        let reply: &[u8] = b"\xff\xff\xff\xffinfoResponse\n\\voip\\opus\\g_needpass\\0\\pure\\1\\gametype\\0\
            \\sv_maxclients\\8\\g_humanplayers\\0\\clients\\0\\mapname\\oa_dm1\\hostname\\captest\\protocol\\71\
            \\gamename\\Quake3Arena\\challenge\\ch4ll001";
        let Ok(MasterMessage::InfoResponse(info)) = MasterMessage::parse(reply) else { panic!("it is captured") };
        assert_eq!((info.get("challenge"), info.get("MapName")), (Some(&b"ch4ll001"[..]), Some(&b"oa_dm1"[..])));
        let list = |text: &'static [u8]| match MasterMessage::parse(text) {
            Ok(MasterMessage::ListRequest(request)) => request,
            other => panic!("{other:?}"),
        };
        let expected = ListRequest {
            is_extended: false,
            game: None,
            protocol: 71,
            empty: true,
            full: true,
            ipv4: true,
            ipv6: false,
        };
        assert_eq!(list(b"\xff\xff\xff\xffgetservers 71 empty full"), expected);
        assert_eq!(list(b"\xff\xff\xff\xffgetservers 71 empty full\n"), expected);
        let named = list(b"\xff\xff\xff\xffgetservers OpenArenaTest 72 full");
        assert_eq!((named.game, named.protocol, named.empty), (Some(&b"OpenArenaTest"[..]), 72, false));
        let extended = list(b"\xff\xff\xff\xffgetserversExt Quake3Arena 71 empty full ipv6");
        assert_eq!((extended.ipv4, extended.ipv6, extended.is_extended), (false, true, true));
    }

    #[test]
    fn malformed_messages_name_what_is_wrong() {
        for (bytes, expected) in [
            (&b""[..], "truncated in out-of-band mark"),
            (b"\xff\xff", "truncated in out-of-band mark"),
            (b"heartbeat DarkPlaces\n", "unknown out-of-band mark"),
            (b"\xff\xff\xff\xff", "no command"),
            (b"\xff\xff\xff\xffgetstatus", "unknown command"),
            (b"\xff\xff\xff\xffheartbeat\n", "no heartbeat tag"),
            (b"\xff\xff\xff\xffheartbeat a\x01b\n", "heartbeat tag is not valid"),
            (b"\xff\xff\xff\xffgetservers", "no protocol"),
            (b"\xff\xff\xff\xffgetservers game empty full\n", "protocol is not valid"),
            (b"\xff\xff\xff\xffgetserversExt 71", "no protocol"),
            (b"\xff\xff\xff\xffgetservers 99999999999", "protocol is not valid"),
            (b"\xff\xff\xff\xffinfoResponse\n", "no settings"),
            (b"\xff\xff\xff\xffinfoResponse\nkey\\value", "settings is not valid"),
            (&[0xff; MAX_MESSAGE + 1], "too long: message"),
        ] {
            let error = MasterMessage::parse(bytes).unwrap_err();
            assert_eq!(alloc::string::ToString::to_string(&error), expected, "{bytes:?}");
        }
    }
}
