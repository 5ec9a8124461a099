//! Telling the messages apart, in each of the two directions.
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
use crate::{DecodeError, Reader, Reason};
use alloc::vec::Vec;

/// The client's disconnect: the one message whose first byte is not its type (S8).
const DISCONNECT: [u8; 5] = [0x8d, 0xef, 0x02, 0xd2, 0x00];

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDatagram<'a> {
    /// What kind of server is this? One byte and no more (S2).
    Query,
    /// Who plays here? One byte and no more (S2).
    QueryPlayers,
    /// Let me in.
    Login(Login<'a>),
    /// A message of a plain session.
    Data(ClientData<'a>),
    /// A message of an encrypted session.
    EncryptedData(ClientSealed<'a>),
    /// The client goes.
    Disconnect,
    /// What both sides send.
    Control(Control<'a>),
}

/// What a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDatagram<'a> {
    /// One of the seven parts of the answer to a query.
    Info(Info<'a>),
    /// A team, in the answer to a query for players.
    Team(Team<'a>),
    /// A player, in the answer to a query for players.
    Player(Player<'a>),
    /// The client is let in.
    LoginSuccess(LoginSuccess<'a>),
    /// The client is not let in, for this reason.
    BadLogin(Text<'a>),
    /// A message of a plain session.
    Data(ServerData<'a>),
    /// A message of an encrypted session.
    EncryptedData(ServerSealed<'a>),
    /// The client has to go, for this reason.
    Disconnect(Text<'a>),
    /// What both sides send.
    Control(Control<'a>),
}

impl<'a> ClientDatagram<'a> {
    /// Reads what a client sent.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (kind, reader) = start(bytes)?;
        match kind {
            kind::DATA => ClientData::parse(reader).map(Self::Data),
            kind::DATA_ENCRYPTED => ClientSealed::parse(reader).map(Self::EncryptedData),
            kind::QUERY => reader.finish("query").map(|()| Self::Query),
            kind::QUERY_PLAYERS => reader.finish("query players").map(|()| Self::QueryPlayers),
            kind::LOGIN | kind::LOGIN_ENCRYPTED => Login::parse(kind, reader).map(Self::Login),
            // Its five bytes are always the same, and no type is 8d: so no other message can look like it (S8).
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
    /// Reads what a server sent.
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

/// The first byte, and a reader behind it.
#[inline]
fn start(bytes: &[u8]) -> Result<(u8, Reader<'_>), DecodeError> {
    let Some((&kind, rest)) = bytes.split_first() else {
        return Err(DecodeError::new("datagram", Reason::Empty));
    };
    if bytes.len() > MAX_DATAGRAM {
        return Err(DecodeError::new("datagram", Reason::TooLong));
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
    fn s8_the_clients_disconnect_is_told_apart_by_all_its_bytes() {
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
        assert_eq!(ClientDatagram::parse(&info), Err(DecodeError::new("query", Reason::TrailingBytes)));
        let team = b"\x88\x00\x00\x00\x00\x00";
        assert_eq!(ClientDatagram::parse(team), Err(DecodeError::new("query players", Reason::TrailingBytes)));
    }

    #[test]
    fn s1_508_bytes_are_the_most() {
        for length in 1..=600 {
            let mut reason = [b'x'; 600];
            reason[0] = kind::DISCONNECT;
            let parsed = ServerDatagram::parse(&reason[..length]);
            assert_eq!(parsed.is_ok(), length <= MAX_DATAGRAM, "{length}");
        }
    }
}
