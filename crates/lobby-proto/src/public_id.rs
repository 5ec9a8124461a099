//! Public IDs of servers.

use rallypoint_wire::lobby::ServerId;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::{fmt, hash::Hasher, str::FromStr};
use thiserror::Error;

/// The public identifier of a server: a keyed hash of its secret ID (L13).
///
/// ```
/// use rallypoint_lobby_proto::PublicId;
///
/// let id: PublicId = "000102030405060708090a0b0c0d0e0f".parse()?;
/// assert_eq!(id.as_bytes()[15], 15);
/// assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0e0f");
/// # Ok::<(), rallypoint_lobby_proto::ParsePublicIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicId([u8; 16]);

/// A text that is not a [`PublicId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the public ID of a server has 32 hexadecimal digits")]
pub struct ParsePublicIdError;

impl PublicId {
    pub(crate) fn of(id: ServerId, key: &[u8; 16]) -> Self {
        let mut hasher = SipHasher24::new_with_key(key);
        hasher.write(id.expose());
        Self(hasher.finish128().as_bytes())
    }

    /// The ID with these bytes, which came from [`as_bytes`](Self::as_bytes).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, for storage.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicId({self})")
    }
}

impl FromStr for PublicId {
    type Err = ParsePublicIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        number.map(|number| Self(number.to_be_bytes())).ok_or(ParsePublicIdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_ids_parse_what_they_display_and_nothing_else() {
        let id = PublicId::of(ServerId::from_bytes([7; 16]), &[1; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "7", "+0000000000000000000000000000000", "g0000000000000000000000000000000"] {
            assert_eq!(wrong.parse::<PublicId>(), Err(ParsePublicIdError), "{wrong}");
        }
    }
}
