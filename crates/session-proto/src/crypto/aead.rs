//! The ciphers of an encrypted session.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_wire::session::{SealInput, TAG};
use std::fmt;

/// The cipher that seals the messages of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cipher {
    /// ChaCha20-Poly1305 (S30), which every peer supports.
    ChaCha20Poly1305,
    /// AES-256-GCM (W84), a third of the time on processors with instructions for AES; used if both sides have them.
    Aes256Gcm,
}

/// The cipher failed, which does not happen for messages of these lengths.
#[derive(Debug)]
pub(crate) struct SealError;

/// A cipher with one key, which is wiped when it is dropped: seals or opens the messages of one direction.
pub(crate) struct MessageKey(Option<LessSafeKey>);

impl Cipher {
    /// Whether this machine has instructions for AES-GCM. Without them it would be slower than ChaCha20-Poly1305.
    pub(crate) fn has_aes_instructions() -> bool {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
        return false;
    }
}

impl MessageKey {
    pub fn new(cipher: Cipher, key: &[u8; 32]) -> Self {
        let algorithm = match cipher {
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Cipher::Aes256Gcm => &AES_256_GCM,
        };
        // 32 bytes are the key length of both ciphers, so there always is a key.
        Self(UnboundKey::new(algorithm, key).ok().map(LessSafeKey::new))
    }

    /// Encrypts the message in place and writes the tag.
    pub fn seal(&self, input: &SealInput, message: &mut [u8], tag: &mut [u8; TAG]) -> Result<(), SealError> {
        let key = self.0.as_ref().ok_or(SealError)?;
        let nonce = Nonce::assume_unique_for_key(input.nonce);
        let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(input.associated), message);
        tag.copy_from_slice(sealed.map_err(|_| SealError)?.as_ref());
        Ok(())
    }

    /// Decrypts into `out`, which is as long as the ciphertext. Returns false if it was not sealed with this key and input.
    pub fn open(&self, input: &SealInput, ciphertext: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(input.nonce);
        self.0.as_ref().is_some_and(|key| {
            key.open_separate_gather(nonce, Aad::from(input.associated), ciphertext, tag, out).is_ok()
        })
    }
}

impl fmt::Debug for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageKey(secret)")
    }
}
