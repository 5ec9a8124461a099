//! Logins and their success.
//!
//! ```text
//! client to server:
//! login: <u8: 0b00000011><u8: protocol revision><char[0..127]: username><char: 0><char[0..127]: game>
//! login with encryption: <u8: 0b00001111><u8: protocol revision><u8[128]: public key><char[0..127]: username>
//!                        <char: 0><char[0..127]: game>
//!
//! server to client:
//! login success: <u8: 0b00000011><u8: index><u32: UID><u64: rand>
//! login with encryption success: <u8: 0b00001111><u8: index><u32: UID><u8[128]: symmetric key encrypted using
//!                                public key from client>
//! ```

use super::{KEY_FIELD, MAX_LOGIN_TEXT, Name, Rand, SlotIndex, Text, Uid, kind};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// A login request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// Protocol revision of the client.
    pub revision: u8,
    /// The client's key if it requests encryption: see [`KeyOffer::parse`](super::KeyOffer::parse).
    pub key: Option<&'a [u8; KEY_FIELD]>,
    /// Username of the player.
    pub username: Name<'a, MAX_LOGIN_TEXT>,
    /// ID of the game, which extends to the end of the datagram (S4).
    pub game: Text<'a, MAX_LOGIN_TEXT>,
}

/// The server accepts a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginSuccess<'a> {
    /// The player's slot.
    pub index: SlotIndex,
    /// UID of the session in that slot.
    pub uid: Uid,
    /// The secret that protects the session.
    pub grant: Grant<'a>,
}

/// The secret that protects a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant<'a> {
    /// A random number, sent in plain text.
    Plain(Rand),
    /// An encrypted secret that only the client can decrypt.
    Encrypted(&'a [u8; KEY_FIELD]),
}

impl<'a> Login<'a> {
    pub(super) fn parse(kind: u8, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            revision: reader.u8("protocol revision")?,
            key: if kind == kind::LOGIN_ENCRYPTED { Some(reader.array("public key")?) } else { None },
            username: Name::parse_until_nul(&mut reader, "username")?,
            game: Text::parse(&mut reader, "game")?,
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(if self.key.is_some() { kind::LOGIN_ENCRYPTED } else { kind::LOGIN });
        writer.u8(self.revision);
        if let Some(key) = self.key {
            writer.bytes(key);
        }
        writer.bytes(self.username.as_bytes());
        writer.u8(0);
        writer.bytes(self.game.as_bytes());
    }

    /// The username and the game, if they are valid: UTF-8 without control characters, and a username that is not empty (S3).
    /// The error is the reason of a bad login.
    ///
    /// # Errors
    /// If one of them is invalid.
    pub fn check(&self) -> Result<(&'a str, &'a str), DecodeError> {
        if self.username.is_empty() {
            return Err(DecodeError::new("username", DecodeErrorKind::Empty));
        }
        Ok((self.username.check("username")?, self.game.check("game")?))
    }
}

impl<'a> LoginSuccess<'a> {
    pub(super) fn parse(kind: u8, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let success = Self {
            index: SlotIndex::parse(&mut reader)?,
            uid: Uid::parse(&mut reader)?,
            grant: match kind {
                kind::LOGIN_ENCRYPTED => Grant::Encrypted(reader.array("symmetric key")?),
                _ => Grant::Plain(Rand::parse(&mut reader)?),
            },
        };
        reader.finish("login success")?;
        Ok(success)
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(match self.grant {
            Grant::Plain(_) => kind::LOGIN,
            Grant::Encrypted(_) => kind::LOGIN_ENCRYPTED,
        });
        self.index.emit(&mut writer);
        self.uid.emit(&mut writer);
        match self.grant {
            Grant::Plain(rand) => rand.emit(&mut writer),
            Grant::Encrypted(key) => writer.bytes(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ClientDatagram, *};
    use alloc::string::ToString;

    #[test]
    fn s3_a_login_with_invalid_text_still_parses() {
        for (bytes, error) in [
            (&b"\x03\x00\x00game"[..], "empty username"),
            (b"\x03\x00Zo\xeb\x00game", "username is not valid"),
            (b"\x03\x00a\x1bb\x00game", "username is not valid"),
            (b"\x03\x00alice\x00ga\x00me", "game is not valid"),
            (b"\x03\x00alice\x00\xff", "game is not valid"),
        ] {
            let Ok(ClientDatagram::Login(login)) = ClientDatagram::parse(bytes) else { panic!("{bytes:?}") };
            assert_eq!(login.check().unwrap_err().to_string(), error);
        }
        let Ok(ClientDatagram::Login(login)) = ClientDatagram::parse(b"\x03\x00alice\x00") else { panic!() };
        assert_eq!(login.check(), Ok(("alice", "")));
    }

    #[test]
    fn s17_a_login_success_is_never_parsed_as_a_login() {
        let uid = Uid::from_random([1; 4]).unwrap();
        let rand = Rand::from_random([0xff; 8]).unwrap();
        let mut bytes = Vec::new();
        LoginSuccess { index: SlotIndex::new(0).unwrap(), uid, grant: Grant::Plain(rand) }.emit(&mut bytes);
        assert_eq!(ClientDatagram::parse(&bytes), Err(DecodeError::new("username", DecodeErrorKind::Truncated)));
    }
}
