//! A signature and what it signs in one file.

use super::{PublicKey, Signature, SignatureError, TrustedComment};

/// Maximum length of a signature in bytes: its two comments and a kilobyte for the rest.
const MAX_SIGNATURE: usize = 10 << 10;

/// A file that begins with its signature: the four lines of the signature, and then the message.
///
/// Two files that a cache has fetched at different times do not match. `head -n 4` and `tail -n +5` make what minisign needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedFile<'a> {
    /// The signature, which is not verified yet.
    pub signature: Signature,
    /// The signed content.
    pub message: &'a [u8],
}

impl<'a> SignedFile<'a> {
    /// Splits a file into signature and message.
    ///
    /// # Errors
    /// If it does not begin with a signature.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SignatureError> {
        let start = &bytes[..bytes.len().min(MAX_SIGNATURE)];
        let mut line_ends = start.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1);
        let end = line_ends.nth(3).ok_or(SignatureError::Malformed)?;
        let (signature, message) = bytes.split_at(end);
        let signature = std::str::from_utf8(signature).map_err(|_| SignatureError::Malformed)?;
        Ok(Self { signature: signature.parse()?, message })
    }

    /// Verifies the signature, and returns what was signed with the message.
    ///
    /// # Errors
    /// As [`Signature::verify`].
    pub fn verify(&self, key: &PublicKey) -> Result<TrustedComment, SignatureError> {
        self.signature.verify(key, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minisign::SigningKey;

    #[test]
    fn the_message_can_contain_anything() {
        let key = SigningKey::from_seed([1; 32]).unwrap();
        let comment = TrustedComment { timestamp: 7, file: "f".into() };
        for message in [&b""[..], b"\n", b"a\nb\n", &[0xff; 100_000]] {
            let file = [key.sign(message, &comment).to_string().as_bytes(), message].concat();
            let signed = SignedFile::parse(&file).unwrap();
            assert_eq!((signed.message, signed.verify(&key.public())), (message, Ok(comment.clone())));
            assert!(SignedFile::parse(&file[..file.len() - message.len() - 1]).is_err(), "the signature is cut off");
        }
        assert_eq!(SignedFile::parse(&[b'\n'; 8]), Err(SignatureError::Malformed));
        assert_eq!(SignedFile::parse(&[b'x'; 1 << 20]), Err(SignatureError::Malformed));
    }
}
