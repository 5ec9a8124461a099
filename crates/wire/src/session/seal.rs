//! Nonce and associated data of an encrypted message (S30).
//!
//! ```text
//! nonce:            0  kind (u8): 0 data, 1 zero-byte filler
//!                   1  zeros (7)
//!                   8  message # (u32)
//! associated data:  0  type (u8)
//!                   1  message # (u32)
//!                   5  index (u8)
//!                   6  UID (u32)
//!                  10  # of bytes (u16), ciphertext and tag
//! ```

use super::{MessageNumber, SlotIndex, Uid, kind};

/// Size in bytes of the tag after the ciphertext.
pub const TAG: usize = 16;

/// The nonce and the associated data of one message. Both sides and both directions use the same layout, although the
/// server's datagrams do not contain the index and the UID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealInput {
    /// Unique for each key, because a message number is used only once.
    pub nonce: [u8; 12],
    /// Bytes that are authenticated but not encrypted.
    pub associated: [u8; 12],
}

impl SealInput {
    /// For a message whose encrypted field has `length` bytes, including the tag.
    pub(super) fn new(number: MessageNumber, index: SlotIndex, uid: Uid, length: usize) -> Self {
        let number = number.get().to_le_bytes();
        let mut nonce = [0; 12];
        nonce[0] = u8::from(length == TAG);
        nonce[8..].copy_from_slice(&number);
        let mut associated = [0; 12];
        associated[0] = kind::DATA_ENCRYPTED;
        associated[1..5].copy_from_slice(&number);
        associated[5] = index.get();
        associated[6..10].copy_from_slice(&uid.get().to_le_bytes());
        // The length fits: the field has at most 496 bytes.
        associated[10..].copy_from_slice(&(length as u16).to_le_bytes());
        Self { nonce, associated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s30_nonce_and_associated_data() {
        let index = SlotIndex::new(3).unwrap();
        let uid = Uid::new(0x0102_0304);
        let data = SealInput::new(MessageNumber::new(0x3fff_ffff), index, uid, 480);
        assert_eq!(data.nonce, [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x3f]);
        assert_eq!(data.associated, [0x55, 0xff, 0xff, 0xff, 0x3f, 3, 4, 3, 2, 1, 0xe0, 0x01]);
        let filler = SealInput::new(MessageNumber::FIRST, index, uid, 16);
        assert_eq!(filler.nonce, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(filler.associated, [0x55, 0, 0, 0, 0, 3, 4, 3, 2, 1, 0x10, 0]);
    }
}
