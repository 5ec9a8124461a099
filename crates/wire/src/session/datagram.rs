//! The messages of each direction.
//!
//! ```text
//! client to server:
//! query: <u8: 0b10000000>
//! query players: <u8: 0b10001000>
//! disconnect: <u32: CRC32><u8: 0b00000000>           always 8d ef 02 d2 00 (S7)
//!
//! server to client:
//! bad login: <u8: 0b11000000><char[0..507]: reason>
//! disconnect: <u8: 0b00000000><char[0..507]: reason>
//! ```

use super::{
    ClientData, ClientSealed, Control, Info, Login, LoginSuccess, MAX_DATAGRAM, Player, ServerData, ServerSealed, Team,
    Text, kind,
};
use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// The client's disconnect: the only message whose first byte is not its type (S8).
const DISCONNECT: [u8; 5] = [0x8d, 0xef, 0x02, 0xd2, 0x00];

/// A datagram from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDatagram<'a> {
    /// Query for the description of the server: exactly one byte (S2).
    Query,
    /// Query for teams and players: exactly one byte (S2).
    QueryPlayers,
    /// Request to join.
    Login(Login<'a>),
    /// A message of a plain session.
    Data(ClientData<'a>),
    /// A message of an encrypted session.
    EncryptedData(ClientSealed<'a>),
    /// The client leaves.
    Disconnect,
    /// A message that both sides send.
    Control(Control<'a>),
}

/// A datagram from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDatagram<'a> {
    /// One of the seven parts of the reply to a query.
    Info(Info<'a>),
    /// A team, in the reply to a query for players.
    Team(Team<'a>),
    /// A player, in the reply to a query for players.
    Player(Player<'a>),
    /// The login is accepted.
    LoginSuccess(LoginSuccess<'a>),
    /// The login is rejected for this reason.
    BadLogin(Text<'a>),
    /// A message of a plain session.
    Data(ServerData<'a>),
    /// A message of an encrypted session.
    EncryptedData(ServerSealed<'a>),
    /// The server ends the session for this reason.
    Disconnect(Text<'a>),
    /// A message that both sides send.
    Control(Control<'a>),
}

impl<'a> ClientDatagram<'a> {
    /// Parses a datagram from a client.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (kind, reader) = start(bytes)?;
        match kind {
            kind::DATA => ClientData::parse(reader).map(Self::Data),
            kind::DATA_ENCRYPTED => ClientSealed::parse(reader).map(Self::EncryptedData),
            kind::QUERY => reader.finish("query").map(|()| Self::Query),
            kind::QUERY_PLAYERS => reader.finish("query players").map(|()| Self::QueryPlayers),
            kind::LOGIN | kind::LOGIN_ENCRYPTED => Login::parse(kind, reader).map(Self::Login),
            // Its five bytes are constant, and no type is 8d: no other message can be mistaken for it (S8).
            _ if bytes == DISCONNECT => Ok(Self::Disconnect),
            _ => Control::parse(kind, reader).map(Self::Control),
        }
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Query => out.push(kind::QUERY),
            Self::QueryPlayers => out.push(kind::QUERY_PLAYERS),
            Self::Login(login) => login.emit(out),
            Self::Data(data) => data.emit(out),
            Self::EncryptedData(data) => data.emit(out),
            Self::Disconnect => out.extend_from_slice(&DISCONNECT),
            Self::Control(control) => control.emit(out),
        }
    }
}

impl<'a> ServerDatagram<'a> {
    /// Parses a datagram from a server.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (kind, mut reader) = start(bytes)?;
        match kind {
            kind::DATA => ServerData::parse(reader).map(Self::Data),
            kind::DATA_ENCRYPTED => ServerSealed::parse(reader).map(Self::EncryptedData),
            kind::INFO_1..=kind::INFO_7 => Info::parse(kind, reader).map(Self::Info),
            kind::PLAYER_INFO_1 => Team::parse(reader).map(Self::Team),
            kind::PLAYER_INFO_2 => Player::parse(reader).map(Self::Player),
            kind::LOGIN | kind::LOGIN_ENCRYPTED => LoginSuccess::parse(kind, reader).map(Self::LoginSuccess),
            kind::BAD_LOGIN => Text::parse(&mut reader, "reason").map(Self::BadLogin),
            kind::DISCONNECT => Text::parse(&mut reader, "reason").map(Self::Disconnect),
            _ => Control::parse(kind, reader).map(Self::Control),
        }
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Info(info) => info.emit(out),
            Self::Team(team) => team.emit(out),
            Self::Player(player) => player.emit(out),
            Self::LoginSuccess(success) => success.emit(out),
            Self::BadLogin(reason) => emit_reason(kind::BAD_LOGIN, *reason, out),
            Self::Data(data) => data.emit(out),
            Self::EncryptedData(data) => data.emit(out),
            Self::Disconnect(reason) => emit_reason(kind::DISCONNECT, *reason, out),
            Self::Control(control) => control.emit(out),
        }
    }
}

/// The first byte, and a reader for the bytes after it.
#[inline]
fn start(bytes: &[u8]) -> Result<(u8, Reader<'_>), DecodeError> {
    let Some((&kind, rest)) = bytes.split_first() else {
        return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
    };
    if bytes.len() > MAX_DATAGRAM {
        return Err(DecodeError::new("datagram", DecodeErrorKind::TooLong));
    }
    Ok((kind, Reader::new(rest)))
}

fn emit_reason(kind: u8, reason: Text<'_>, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(reason.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_the_clients_disconnect_is_recognized_by_all_its_bytes() {
        assert_eq!(DISCONNECT[..4], crc32fast::hash(&[0]).to_le_bytes());
        assert_eq!(ClientDatagram::parse(&DISCONNECT), Ok(ClientDatagram::Disconnect));
        for bit in 0..40 {
            let mut other = DISCONNECT;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(ClientDatagram::parse(&other), Ok(ClientDatagram::Disconnect));
        }
        assert!(ClientDatagram::parse(&DISCONNECT[..4]).is_err());
        assert!(ClientDatagram::parse(&[&DISCONNECT[..], &[0]].concat()).is_err());
        assert!(ClientDatagram::parse(&[0]).is_err());
    }

    #[test]
    fn s2_a_reflected_info_is_not_a_query() {
        let mut info = Vec::new();
        ServerDatagram::parse(&[0x80; 13]).unwrap().emit(&mut info);
        assert_eq!(ClientDatagram::parse(&info), Err(DecodeError::new("query", DecodeErrorKind::TrailingBytes)));
        let team = b"\x88\x00\x00\x00\x00\x00";
        assert_eq!(ClientDatagram::parse(team), Err(DecodeError::new("query players", DecodeErrorKind::TrailingBytes)));
    }

    #[test]
    fn s1_a_datagram_has_at_most_508_bytes() {
        for length in 1..=600 {
            let mut reason = [b'x'; 600];
            reason[0] = kind::DISCONNECT;
            let parsed = ServerDatagram::parse(&reason[..length]);
            assert_eq!(parsed.is_ok(), length <= MAX_DATAGRAM, "{length}");
        }
    }
}
