//! The cipher of an encrypted session, behind two methods so that another implementation can replace it.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_wire::session::{SealInput, TAG};
use std::fmt;

/// Seals and opens messages under one key.
pub(crate) trait Aead {
    /// Encrypts the message in place and writes the tag.
    fn seal(&self, input: &SealInput, message: &mut [u8], tag: &mut [u8; TAG]) -> Result<(), SealError>;

    /// Decrypts into `out`, which is as long as the ciphertext. Returns false if it was not sealed with this key and input.
    fn open(&self, input: &SealInput, ciphertext: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool;
}

/// The cipher failed, which does not happen for messages of these lengths.
#[derive(Debug)]
pub(crate) struct SealError;

/// ChaCha20-Poly1305 with one key, which is wiped when it is dropped.
pub(crate) struct ChaCha(Option<LessSafeKey>);

impl ChaCha {
    pub fn new(key: &[u8; 32]) -> Self {
        // 32 bytes are the key length of the cipher, so there always is a key.
        Self(UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new))
    }
}

impl Aead for ChaCha {
    fn seal(&self, input: &SealInput, message: &mut [u8], tag: &mut [u8; TAG]) -> Result<(), SealError> {
        let key = self.0.as_ref().ok_or(SealError)?;
        let nonce = Nonce::assume_unique_for_key(input.nonce);
        let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(input.associated), message);
        tag.copy_from_slice(sealed.map_err(|_| SealError)?.as_ref());
        Ok(())
    }

    fn open(&self, input: &SealInput, ciphertext: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(input.nonce);
        self.0.as_ref().is_some_and(|key| {
            key.open_separate_gather(nonce, Aad::from(input.associated), ciphertext, tag, out).is_ok()
        })
    }
}

impl fmt::Debug for ChaCha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChaCha(secret)")
    }
}
