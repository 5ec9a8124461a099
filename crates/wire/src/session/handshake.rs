//! The 128-byte key field of a login with encryption, and the HPKE info that binds the reply to the login (S30).
//!
//! ```text
//! the client's field, modern suite:  0  00
//!                                    1  01 base, 02 auth: the client pins the server's static key;
//!                                       11, 12: the same with a cookie (W83)
//!                                    2  X25519 public key (32)
//!                                   34  first 8 bytes of SHA-256 of the pinned key; zeros in base mode
//!                                   42  cookie (16) if there is one
//!                                       zeros
//! RSA-1024:                          0  modulus as big-endian octets: odd, and its top bit is set
//!
//! the server's field, cookie (W83):  0  zeros (32): no X25519 key
//!                                   32  first 16 bytes of SHA-256 of the login datagram
//!                                   48  cookie (16)
//!                                   64  ff (64)
//!
//! HPKE info:                         0  "003/1"
//!                                    5  SHA-256 of the login datagram (32)
//!                                   37  index (u8)
//!                                   38  UID (u32)
//! ```

use super::{SlotIndex, Uid};
use crate::{DecodeError, DecodeErrorKind, Reader};

/// Size in bytes of the two key fields of the document.
pub const KEY_FIELD: usize = 128;

const BASE: u8 = 0x01;
const AUTH: u8 = 0x02;

/// Set in the suite of a field with a cookie.
const HAS_COOKIE: u8 = 0x10;

/// Size in bytes of a cookie.
const COOKIE: usize = 16;

/// Position of the cookie in the client's field.
const COOKIE_AT: usize = 42;

/// The key that a client offers, which also selects the encryption suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOffer<'a> {
    /// The modern suite, without authentication of the server.
    Base {
        /// Ephemeral X25519 public key of the client.
        public: &'a [u8; 32],
    },
    /// The modern suite; the client accepts only the server with the pinned key.
    Auth {
        /// Ephemeral X25519 public key of the client.
        public: &'a [u8; 32],
        /// The first 8 bytes of SHA-256 of the static key that the client expects.
        pin: [u8; 8],
    },
    /// RSA-1024, obsolete.
    Rsa {
        /// The modulus, big-endian; the exponent is 65537.
        modulus: &'a [u8; KEY_FIELD],
    },
}

impl<'a> KeyOffer<'a> {
    /// Parses the field of a login. An error is the reason of a bad login.
    ///
    /// # Errors
    /// If the suite is unknown, reserved bytes are not zero, or an RSA modulus is even or short.
    pub fn parse(field: &'a [u8; KEY_FIELD]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(field);
        if reader.u8("public key")? != 0 {
            return match field {
                [0x80..=0xff, .., last] if last % 2 == 1 => Ok(Self::Rsa { modulus: field }),
                _ => Err(DecodeError::new("public key", DecodeErrorKind::Invalid)),
            };
        }
        let suite = reader.u8("encryption suite")?;
        let has_cookie = suite & HAS_COOKIE != 0;
        let public = reader.array("public key")?;
        let pin = *reader.array("pinned key")?;
        let offer = match suite & !HAS_COOKIE {
            BASE if pin == [0; 8] => Self::Base { public },
            BASE => return Err(DecodeError::new("pinned key", DecodeErrorKind::Invalid)),
            AUTH => Self::Auth { public, pin },
            _ => return Err(DecodeError::new("encryption suite", DecodeErrorKind::Unknown)),
        };
        if has_cookie {
            reader.array::<COOKIE>("cookie")?;
        }
        if reader.take_rest().iter().any(|&byte| byte != 0) {
            return Err(DecodeError::new("public key", DecodeErrorKind::Invalid));
        }
        Ok(offer)
    }

    /// The key field for a login.
    #[must_use]
    pub fn to_field(&self) -> [u8; KEY_FIELD] {
        let (suite, public, pin) = match *self {
            Self::Base { public } => (BASE, public, [0; 8]),
            Self::Auth { public, pin } => (AUTH, public, pin),
            Self::Rsa { modulus } => return *modulus,
        };
        let mut field = [0; KEY_FIELD];
        field[1] = suite;
        field[2..34].copy_from_slice(public);
        field[34..42].copy_from_slice(&pin);
        field
    }
}

/// Bytes by which a client shows that it receives what is sent to its address: the server sends them, and the client repeats its
/// login with them (W83).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginCookie(pub [u8; COOKIE]);

impl LoginCookie {
    /// The cookie of a login's key field that [`KeyOffer::parse`] accepts.
    #[must_use]
    pub fn of_login(field: &[u8; KEY_FIELD]) -> Option<Self> {
        let has_cookie = field[0] == 0 && field[1] & HAS_COOKIE != 0;
        has_cookie.then(|| field[COOKIE_AT..].first_chunk().copied().map(Self)).flatten()
    }

    /// Adds the cookie to a login's key field of the modern suite, or replaces the one that it has.
    pub fn add_to_login(self, field: &mut [u8; KEY_FIELD]) {
        field[1] |= HAS_COOKIE;
        field[COOKIE_AT..COOKIE_AT + COOKIE].copy_from_slice(&self.0);
    }
}

/// A server's key field with a cookie instead of a secret. A client that does not know it cannot open it, and ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieReply {
    /// The first 16 bytes of SHA-256 of the login datagram, which only its receiver knows.
    pub login: [u8; 16],
    /// The cookie for the address of the login.
    pub cookie: LoginCookie,
}

impl CookieReply {
    /// Parses the key field of a login success. `None` if it contains a sealed secret, or is invalid.
    #[must_use]
    pub fn parse(field: &[u8; KEY_FIELD]) -> Option<Self> {
        let (zeros, rest) = field.split_first_chunk::<32>()?;
        let (login, rest) = rest.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let is_valid = *zeros == [0; 32] && rest.iter().all(|byte| *byte == 0xff);
        is_valid.then_some(Self { login: *login, cookie: LoginCookie(*cookie) })
    }

    /// The key field. Its end contains no zero byte, so that the reply is never read as a login by another server (S17).
    #[must_use]
    pub fn to_field(&self) -> [u8; KEY_FIELD] {
        let mut field = [0xff; KEY_FIELD];
        field[..32].fill(0);
        field[32..48].copy_from_slice(&self.login);
        field[48..64].copy_from_slice(&self.cookie.0);
        field
    }
}

/// The HPKE info: it binds the encrypted secret to this login and slot, so that a reply cannot be used for another.
#[must_use]
pub fn hpke_info(login_sha256: &[u8; 32], index: SlotIndex, uid: Uid) -> [u8; 42] {
    let mut info = [0; 42];
    info[..5].copy_from_slice(b"003/1");
    info[5..37].copy_from_slice(login_sha256);
    info[37] = index.get();
    info[38..].copy_from_slice(&uid.get().to_le_bytes());
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s30_a_key_offer_round_trips() {
        for offer in [
            KeyOffer::Base { public: &[7; 32] },
            KeyOffer::Auth { public: &[7; 32], pin: [9; 8] },
            KeyOffer::Auth { public: &[0; 32], pin: [0; 8] },
            KeyOffer::Rsa { modulus: &[0x81; 128] },
        ] {
            assert_eq!(KeyOffer::parse(&offer.to_field()), Ok(offer));
        }
    }

    #[test]
    fn s30_every_reserved_byte_is_checked() {
        let base = KeyOffer::Base { public: &[7; 32] }.to_field();
        let auth = KeyOffer::Auth { public: &[7; 32], pin: [9; 8] }.to_field();
        for (field, zeros) in [(base, 34..128), (auth, 42..128)] {
            for at in zeros {
                let mut wrong = field;
                wrong[at] = 1;
                assert_eq!(KeyOffer::parse(&wrong).unwrap_err().kind, DecodeErrorKind::Invalid);
            }
        }
    }

    #[test]
    fn w83_a_cookie_is_added_to_an_offer_which_stays_the_same() {
        let cookie = LoginCookie([5; 16]);
        for offer in [KeyOffer::Base { public: &[7; 32] }, KeyOffer::Auth { public: &[7; 32], pin: [9; 8] }] {
            let mut field = offer.to_field();
            assert_eq!(LoginCookie::of_login(&field), None);
            for cookie in [LoginCookie([6; 16]), cookie] {
                cookie.add_to_login(&mut field);
                assert_eq!(LoginCookie::of_login(&field), Some(cookie));
                assert_eq!(KeyOffer::parse(&field), Ok(offer));
            }
            for at in 58..128 {
                let mut wrong = field;
                wrong[at] = 1;
                assert_eq!(KeyOffer::parse(&wrong).unwrap_err().kind, DecodeErrorKind::Invalid);
            }
        }
        assert_eq!(LoginCookie::of_login(&[0x91; 128]), None, "a modulus");
    }

    #[test]
    fn w83_a_cookie_reply_round_trips() {
        let reply = CookieReply { login: [3; 16], cookie: LoginCookie([5; 16]) };
        let field = reply.to_field();
        assert_eq!(CookieReply::parse(&field), Some(reply));
        for at in (0..32).chain(64..128) {
            let mut wrong = field;
            wrong[at] = 1;
            assert_eq!(CookieReply::parse(&wrong), None);
        }
    }

    #[test]
    fn s30_unknown_suites_and_weak_moduli_are_rejected() {
        let mut field = KeyOffer::Base { public: &[7; 32] }.to_field();
        for suite in [0, 3, 0xff] {
            field[1] = suite;
            assert_eq!(KeyOffer::parse(&field), Err(DecodeError::new("encryption suite", DecodeErrorKind::Unknown)));
        }
        let invalid = Err(DecodeError::new("public key", DecodeErrorKind::Invalid));
        let mut even = [0x81; 128];
        let mut short = [0x81; 128];
        even[127] = 0x80;
        short[0] = 0x7f;
        assert_eq!(KeyOffer::parse(&even), invalid);
        assert_eq!(KeyOffer::parse(&short), invalid);
    }
}
