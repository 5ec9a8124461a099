//! The 128-byte key field of a login with encryption, and the HPKE info that binds the reply to the login (S30).
//!
//! ```text
//! the client's field, modern suite:  0  00
//!                                    1  01 base, 02 auth: the client pins the server's static key
//!                                    2  X25519 public key (32)
//!                                   34  first 8 bytes of SHA-256 of the pinned key; zeros in base mode
//!                                   42  zeros
//! RSA-1024:                          0  modulus as big-endian octets: odd, and its top bit is set
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

const BASE: u8 = 1;
const AUTH: u8 = 2;

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
        let public = reader.array("public key")?;
        let pin = *reader.array("pinned key")?;
        let offer = match suite {
            BASE if pin == [0; 8] => Self::Base { public },
            BASE => return Err(DecodeError::new("pinned key", DecodeErrorKind::Invalid)),
            AUTH => Self::Auth { public, pin },
            _ => return Err(DecodeError::new("encryption suite", DecodeErrorKind::Unknown)),
        };
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
