//! The secret that all nodes of a cluster share.

use aws_lc_rs::hmac;
use std::fmt;
use thiserror::Error;

/// Minimum length of a secret, in bytes.
const MIN_LENGTH: usize = 16;

/// Maximum length of a secret, in bytes.
const MAX_LENGTH: usize = 1_024;

/// The secret that all nodes of a cluster share. The key of the public IDs is derived from it, so that a server has the same
/// public ID at every node and its own ID never leaves the node that received it (L13).
///
/// ```
/// use rallypoint_cluster::ClusterSecret;
///
/// let secret = ClusterSecret::new("correct horse battery staple")?;
/// assert_eq!(format!("{secret:?}"), "ClusterSecret(hidden)");
/// # Ok::<(), rallypoint_cluster::SecretError>(())
/// ```
#[derive(Clone)]
pub struct ClusterSecret(hmac::Key);

/// Why a text is not accepted as a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the cluster's secret must have {MIN_LENGTH} to {MAX_LENGTH} bytes: create one with \"openssl rand -hex 32\"")]
pub struct SecretError;

impl ClusterSecret {
    /// A secret from a text; spaces and line breaks around it are ignored.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        let is_valid = (MIN_LENGTH..=MAX_LENGTH).contains(&text.len());
        is_valid.then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()))).ok_or(SecretError)
    }

    /// The key of the public IDs.
    #[must_use]
    pub fn public_id_key(&self) -> [u8; 16] {
        self.derive(b"rallypoint public IDs")
    }

    /// A value in the store by which nodes with another secret are recognised. It does not reveal the secret.
    #[must_use]
    pub fn check_value(&self) -> [u8; 16] {
        self.derive(b"rallypoint secret check")
    }

    fn derive(&self, purpose: &[u8]) -> [u8; 16] {
        let tag = hmac::sign(&self.0, purpose);
        let mut key = [0; 16];
        key.copy_from_slice(&tag.as_ref()[..16]);
        key
    }
}

/// Compares derived values, so that the time does not depend on the secrets.
impl PartialEq for ClusterSecret {
    fn eq(&self, other: &Self) -> bool {
        self.check_value() == other.check_value()
    }
}

impl Eq for ClusterSecret {}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_the_secret_and_on_the_purpose() {
        let one = ClusterSecret::new("a secret of at least 16 bytes\n").unwrap();
        let other = ClusterSecret::new("another secret of 16 bytes").unwrap();
        assert_eq!(one.public_id_key(), ClusterSecret::new("a secret of at least 16 bytes").unwrap().public_id_key());
        assert_ne!(one.public_id_key(), other.public_id_key());
        assert_ne!(one.public_id_key(), one.check_value());
    }

    #[test]
    fn short_and_long_secrets_are_refused() {
        assert_eq!(ClusterSecret::new("short").unwrap_err(), SecretError);
        assert_eq!(ClusterSecret::new(&"x".repeat(1_025)).unwrap_err(), SecretError);
        assert_eq!(ClusterSecret::new(&format!("  {}  ", "x".repeat(15))).unwrap_err(), SecretError);
    }
}
