//! X25519 keys: the static key of a server, and the ephemeral keys of a login.

use super::{Secret, sha256};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use std::{fmt, str::FromStr, sync::Arc};
use zeroize::Zeroize;

/// The public half of a key: a server publishes it (`x-session-key`, E2), and a client pins it. Written as 64 hex digits.
///
/// ```
/// use rallypoint_session_proto::{KeyError, PublicKey};
///
/// let key: PublicKey = "a".repeat(64).parse()?;
/// assert_eq!(key.as_bytes(), &[0xaa; 32]);
/// assert_eq!("abc".parse::<PublicKey>(), Err(KeyError::NotHex));
/// # Ok::<(), KeyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// A private X25519 key with its public half. `Debug` hides it, and it is wiped when it is dropped.
///
/// ```
/// use rallypoint_session_proto::{EndpointConfig, StaticKey};
///
/// // The bytes must come from a secure random generator: `rallypoint_session::generate_static_key` uses that of the system.
/// # let bytes = [7; 32];
/// let key = StaticKey::from_bytes(bytes)?;
/// println!("clients pin {}", key.public());
/// let config = EndpointConfig { static_key: Some(key), ..EndpointConfig::for_game("tag") };
/// # let _ = config;
/// # Ok::<(), rallypoint_session_proto::KeyError>(())
/// ```
#[derive(Clone)]
pub struct StaticKey {
    private: Arc<PrivateKey>,
    public: PublicKey,
    bytes: Secret,
}

/// Why a text or bytes cannot be used as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not 64 hex digits.
    #[error("a key has 64 hex digits")]
    NotHex,
    /// The cryptography library rejects the bytes.
    #[error("these 32 bytes cannot be used as a key: generate a new one")]
    Rejected,
}

impl PublicKey {
    /// Takes the bytes of a key as they were received.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 bytes of the SHA-256 of the key, by which a login names the server that it expects.
    pub(crate) fn pin(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = sha256(&self.0);
        [a, b, c, d, e, f, g, h]
    }
}

impl StaticKey {
    /// Makes a key of 32 secret random bytes.
    ///
    /// # Errors
    /// If the cryptography library rejects them, which it does not for any 32 bytes today.
    pub fn from_bytes(mut bytes: [u8; 32]) -> Result<Self, KeyError> {
        let secret = Secret::new(bytes);
        bytes.zeroize();
        Self::from_secret(secret)
    }

    pub(crate) fn from_secret(bytes: Secret) -> Result<Self, KeyError> {
        let private = PrivateKey::from_private_key(&X25519, &bytes[..]).map_err(|_| KeyError::Rejected)?;
        let public = private.compute_public_key().map_err(|_| KeyError::Rejected)?;
        let public = PublicKey(public.as_ref().try_into().map_err(|_| KeyError::Rejected)?);
        Ok(Self { private: Arc::new(private), public, bytes })
    }

    /// The secret bytes. Store them where only the server can read them.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The public half.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The shared secret of this key and a public one; `None` if the public one makes it zero.
    pub(crate) fn agree(&self, public: &PublicKey) -> Option<Secret> {
        let theirs = UnparsedPublicKey::new(&X25519, public.0);
        let mut shared = Secret::default();
        let agreed: Result<(), ()> = agree(&self.private, theirs, (), |point| {
            shared.copy_from_slice(point.get(..32).ok_or(())?);
            Ok(())
        });
        let is_zero = shared.iter().fold(0, |any, byte| any | byte) == 0;
        agreed.ok().filter(|()| !is_zero).map(|()| shared)
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKey(secret, public {})", self.public)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(KeyError::NotHex);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            // `chunks(2)` of 64 digits yields pairs only.
            let nibble = |digit: u8| char::from(digit).to_digit(16).ok_or(KeyError::NotHex);
            *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
        }
        Ok(Self(bytes))
    }
}
