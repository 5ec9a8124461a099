//! Keys.
//!
//! ```text
//! public key:  base64 of 42 bytes
//!              0  "Ed"
//!              2  key ID (8)
//!             10  Ed25519 public key (32)
//! file:        a line "untrusted comment: ...", and a line with the key
//! ```

use super::signature::{Signature, TrustedComment, hash};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::{fmt, str::FromStr};

const ALGORITHM: &[u8; 2] = b"Ed";
const KEY_ID: usize = 8;
const PUBLIC_KEY: usize = 32;

/// The prefix of the first line of each of minisign's files.
pub(crate) const UNTRUSTED_COMMENT: &str = "untrusted comment: ";

/// A key that signs files. `Debug` hides it.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// The public half of a [`SigningKey`], written as in minisign's `-P`: 56 characters of base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey {
    id: KeyId,
    key: [u8; PUBLIC_KEY],
}

/// Tells keys apart: a signature names the key that made it. It proves nothing. Written as minisign writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId([u8; KEY_ID]);

/// 32 bytes that cannot be used as a signing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these 32 bytes cannot be used as a signing key")]
pub struct InvalidSeed;

/// A text that is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a public key of minisign: 56 characters that begin with RW")]
pub struct InvalidPublicKey;

impl SigningKey {
    /// Makes a key of 32 secret random bytes. Its ID is derived from it, so the seed is all that has to be stored.
    ///
    /// # Errors
    /// If the cryptography library rejects them.
    pub fn from_seed(seed: [u8; 32]) -> Result<Self, InvalidSeed> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| InvalidSeed)?;
        let key: [u8; PUBLIC_KEY] = pair.public_key().as_ref().try_into().map_err(|_| InvalidSeed)?;
        let mut id = [0; KEY_ID];
        id.iter_mut().zip(hash(&key)).for_each(|(byte, hashed)| *byte = hashed);
        Ok(Self { pair, public: PublicKey { id: KeyId(id), key } })
    }

    /// The key with which signatures are verified.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a file.
    #[must_use]
    pub fn sign(&self, message: &[u8], comment: &TrustedComment) -> Signature {
        Signature::new(self.public.id, comment, &hash(message), |bytes| {
            let mut signature = [0; Signature::SIZE];
            // Ed25519 signatures have 64 bytes.
            signature.iter_mut().zip(self.pair.sign(bytes).as_ref()).for_each(|(byte, signed)| *byte = *signed);
            signature
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// The ID of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The key as minisign stores it in a file (`-p`).
    #[must_use]
    pub fn to_file(&self) -> String {
        format!("{UNTRUSTED_COMMENT}minisign public key {}\n{self}\n", self.id)
    }

    /// Reads a key as minisign stores it, or the key alone.
    ///
    /// # Errors
    /// If it is neither.
    pub fn from_file(text: &str) -> Result<Self, InvalidPublicKey> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let key = if first.starts_with(UNTRUSTED_COMMENT) { lines.next().unwrap_or_default() } else { first };
        if lines.any(|line| !line.trim().is_empty()) {
            return Err(InvalidPublicKey);
        }
        key.trim().parse()
    }

    /// Whether this key made a signature of these bytes.
    pub(crate) fn is_valid(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.key).verify(bytes, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode([ALGORITHM.as_slice(), &self.id.0, &self.key].concat()))
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let bytes = STANDARD.decode(text).map_err(|_| InvalidPublicKey)?;
        let rest = bytes.strip_prefix(ALGORITHM).ok_or(InvalidPublicKey)?;
        let (id, key) = rest.split_first_chunk().ok_or(InvalidPublicKey)?;
        Ok(Self { id: KeyId(*id), key: key.try_into().map_err(|_| InvalidPublicKey)? })
    }
}

impl KeyId {
    pub(crate) const SIZE: usize = KEY_ID;

    pub(crate) fn new(bytes: [u8; KEY_ID]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_ID] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that minisign 0.11 made.
    const FILE: &str = "untrusted comment: minisign public key FBD58E0F9AD5E1B0
RWSw4dWaD47V+w9rvl0NvKZ/9lcauIWwZXVtjJ6EKxyjBm17BOn53k8S
";

    #[test]
    fn a_public_key_is_written_as_minisign_writes_it() {
        let key = SigningKey::from_seed([7; 32]).unwrap().public();
        let text = key.to_string();
        assert!(text.len() == 56 && text.starts_with("RW"), "{text}");
        assert_eq!(text.parse(), Ok(key));
        assert_eq!(PublicKey::from_file(&key.to_file()), Ok(key));
        assert_eq!(PublicKey::from_file(&text), Ok(key));
        let of_minisign = PublicKey::from_file(FILE).unwrap();
        assert_eq!(of_minisign.to_file(), FILE);
    }

    #[test]
    fn other_texts_are_no_keys() {
        let key = SigningKey::from_seed([7; 32]).unwrap().public().to_string();
        for text in ["", "RW", &key[1..], &format!("{key}A"), &format!("{key} "), &key.replace("RW", "AA")] {
            assert_eq!(text.parse::<PublicKey>(), Err(InvalidPublicKey), "{text:?}");
        }
        let two = format!("{key}\n{key}\n");
        assert_eq!(PublicKey::from_file(&two), Err(InvalidPublicKey));
    }

    #[test]
    fn debug_hides_the_secret() {
        let key = SigningKey::from_seed([7; 32]).unwrap();
        assert!(format!("{key:?}").contains("SigningKey { public: PublicKey"));
    }
}
