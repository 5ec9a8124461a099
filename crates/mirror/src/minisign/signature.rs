//! Signatures.
//!
//! ```text
//! untrusted comment: ...
//! base64 of "ED", key ID (8), signature of the BLAKE2b-512 hash of the file (64)
//! trusted comment: timestamp:1800000000<tab>file:servers.json<tab>hashed
//! base64 of the signature of: the signature above (64), the trusted comment without its prefix
//! ```

use super::{
    blake2b,
    key::{KeyId, PublicKey, UNTRUSTED_COMMENT},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::{fmt, str::FromStr};

/// The algorithm of a file that was hashed first: what minisign writes since 0.10.
const ALGORITHM: &[u8; 2] = b"ED";
const TRUSTED_COMMENT: &str = "trusted comment: ";

/// Maximum lengths of the comments in bytes: those of minisign.
const MAX_UNTRUSTED: usize = 1_024;
const MAX_TRUSTED: usize = 8_192;

/// The untrusted comment of signatures of this crate.
const COMMENT: &str = "signature by rallypoint; verify with minisign -V";

/// A signature, written as four lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Anyone can change it.
    untrusted_comment: String,
    key_id: KeyId,
    signature: [u8; Self::SIZE],
    trusted_comment: String,
    global_signature: [u8; Self::SIZE],
}

/// The signed comment: what was signed, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedComment {
    /// When it was signed, in seconds since 1970.
    pub timestamp: u64,
    /// The name of the file, without tabs and line breaks.
    pub file: String,
}

/// Why a signature is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The text is not a signature.
    #[error("it is not a signature of minisign")]
    Malformed,
    /// It was made with another key.
    #[error("it is signed with the key {found}, not with {expected}")]
    OtherKey {
        /// The key that it names.
        found: KeyId,
        /// The key that was expected.
        expected: KeyId,
    },
    /// The file, its comment or the signature was changed.
    #[error("its signature is not valid: it was changed, or is damaged")]
    Invalid,
}

/// BLAKE2b-512.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 64] {
    blake2b::hash(bytes)
}

impl Signature {
    pub(crate) const SIZE: usize = 64;

    /// Makes a signature of a hash with a function that signs.
    pub(crate) fn new(
        key_id: KeyId,
        comment: &TrustedComment,
        hash: &[u8],
        sign: impl Fn(&[u8]) -> [u8; Self::SIZE],
    ) -> Self {
        let signature = sign(hash);
        let trusted_comment = comment.to_string();
        let global_signature = sign(&[&signature, trusted_comment.as_bytes()].concat());
        Self { untrusted_comment: COMMENT.into(), key_id, signature, trusted_comment, global_signature }
    }

    /// The ID of the key that made the signature, as the file states it.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// Verifies that a key signed this message, and returns what was signed with it.
    ///
    /// # Errors
    /// If the key is another one, the signature is not valid, or the comment does not name a time and a file.
    pub fn verify(&self, key: &PublicKey, message: &[u8]) -> Result<TrustedComment, SignatureError> {
        if self.key_id != key.id() {
            return Err(SignatureError::OtherKey { found: self.key_id, expected: key.id() });
        }
        let signed_comment = [&self.signature, self.trusted_comment.as_bytes()].concat();
        if !key.is_valid(&signed_comment, &self.global_signature) || !key.is_valid(&hash(message), &self.signature) {
            return Err(SignatureError::Invalid);
        }
        self.trusted_comment.parse()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { untrusted_comment, key_id, signature, trusted_comment, global_signature } = self;
        let signature = STANDARD.encode([ALGORITHM.as_slice(), key_id.as_bytes(), signature].concat());
        writeln!(f, "{UNTRUSTED_COMMENT}{untrusted_comment}")?;
        writeln!(f, "{signature}")?;
        writeln!(f, "{TRUSTED_COMMENT}{trusted_comment}")?;
        writeln!(f, "{}", STANDARD.encode(global_signature))
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        read(text).ok_or(SignatureError::Malformed)
    }
}

fn read(text: &str) -> Option<Signature> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let comment = |line: &str, prefix, max| {
        let comment: &str = line.strip_prefix(prefix)?;
        (comment.len() <= max && !comment.contains('\r')).then(|| comment.to_owned())
    };
    let untrusted_comment = comment(lines.next()?, UNTRUSTED_COMMENT, MAX_UNTRUSTED)?;
    let signature = STANDARD.decode(lines.next()?).ok()?;
    let trusted_comment = comment(lines.next()?, TRUSTED_COMMENT, MAX_TRUSTED)?;
    let global_signature = STANDARD.decode(lines.next()?).ok()?;
    if lines.next().is_some() {
        return None;
    }
    let (key_id, signature) = signature.strip_prefix(ALGORITHM)?.split_first_chunk::<{ KeyId::SIZE }>()?;
    Some(Signature {
        untrusted_comment,
        key_id: KeyId::new(*key_id),
        signature: signature.try_into().ok()?,
        trusted_comment,
        global_signature: global_signature.try_into().ok()?,
    })
}

impl fmt::Display for TrustedComment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timestamp, file } = self;
        write!(f, "timestamp:{timestamp}\tfile:{file}\thashed")
    }
}

impl FromStr for TrustedComment {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let field = |name| text.split('\t').find_map(|field| field.strip_prefix(name)).ok_or(SignatureError::Malformed);
        let timestamp = field("timestamp:")?.parse().map_err(|_| SignatureError::Malformed)?;
        Ok(Self { timestamp, file: field("file:")?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minisign::SigningKey;

    fn comment() -> TrustedComment {
        TrustedComment { timestamp: 1_800_000_000, file: "servers.json".into() }
    }

    #[test]
    fn what_was_signed_is_verified() {
        let key = SigningKey::from_seed([1; 32]).unwrap();
        let text = key.sign(b"message", &comment()).to_string();
        assert_eq!(text.lines().count(), 4);
        let signature: Signature = text.parse().unwrap();
        assert_eq!(signature.to_string(), text);
        assert_eq!(signature.verify(&key.public(), b"message"), Ok(comment()));
    }

    /// A file that contained "hello" and a line break, signed by minisign 0.11.
    #[test]
    fn what_minisign_signed_is_verified() {
        let text = "untrusted comment: made by minisign 0.11
RUSw4dWaD47V+1aAU7cyCRU3DNpkmhGuQvJfIgXmSEr/V/whLcWu79oSl8XbHLVhZ7JCxrZUPqy9xCKsnlg5iSlLEZVyoPndGAE=
trusted comment: timestamp:1800000000\tfile:m\thashed
Y6/3PV/oYF0eMRmrbRGre8K/xcYsRnyHUE5A3lLpaMmt355T7D4mi9xivZjktfvTZFi9vxvEF5YwtXUgW73jDg==
";
        let key = "RWSw4dWaD47V+w9rvl0NvKZ/9lcauIWwZXVtjJ6EKxyjBm17BOn53k8S".parse().unwrap();
        let signature: Signature = text.parse().unwrap();
        let expected = TrustedComment { timestamp: 1_800_000_000, file: "m".into() };
        assert_eq!(signature.verify(&key, b"hello\n"), Ok(expected));
        assert_eq!(signature.verify(&key, b"hello"), Err(SignatureError::Invalid));
    }

    #[test]
    fn any_change_is_noticed() {
        let key = SigningKey::from_seed([1; 32]).unwrap();
        let other = SigningKey::from_seed([2; 32]).unwrap();
        let good = key.sign(b"message", &comment());
        assert_eq!(good.verify(&key.public(), b"massage"), Err(SignatureError::Invalid));
        let expected = SignatureError::OtherKey { found: key.public().id(), expected: other.public().id() };
        assert_eq!(good.verify(&other.public(), b"message"), Err(expected));
        let later = Signature { trusted_comment: comment().to_string().replace("18000", "18001"), ..good.clone() };
        assert_eq!(later.verify(&key.public(), b"message"), Err(SignatureError::Invalid));
        let mut forged = good.clone();
        forged.signature[5] ^= 1;
        assert_eq!(forged.verify(&key.public(), b"message"), Err(SignatureError::Invalid));
        // Another key that claims the same ID.
        let claimed = Signature { key_id: other.public().id(), ..good };
        assert_eq!(claimed.verify(&other.public(), b"message"), Err(SignatureError::Invalid));
    }

    #[test]
    fn other_texts_are_no_signatures() {
        let good = SigningKey::from_seed([1; 32]).unwrap().sign(b"message", &comment()).to_string();
        let without_end = good.trim_end();
        let five_lines = format!("{good}\n");
        let pure = good.replace("\nRU", "\nRW");
        let long = good.replace("signature by", &"x".repeat(MAX_UNTRUSTED));
        let carriage_returns = good.replace('\n', "\r\n");
        for text in ["", "\n\n\n\n", without_end, &five_lines, &good[1..], &pure, &long, &carriage_returns] {
            assert!(text != good, "the test changes something");
            assert_eq!(text.parse::<Signature>(), Err(SignatureError::Malformed), "{text:?}");
        }
    }
}
