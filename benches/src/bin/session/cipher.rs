//! The cipher of a session alone, with nothing around it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_session_proto::ConnectionConfig;

/// Bytes of a message.
const SIZE: usize = 400;

/// Seals a message of 400 bytes `count` times, with nothing around it.
pub fn seal(count: u64) {
    let key = key();
    let mut message = vec![7; SIZE];
    for number in 0..count {
        let tag = key.seal_in_place_separate_tag(nonce(number), Aad::from([7; 12]), &mut message);
        std::hint::black_box(tag.is_ok());
    }
}

/// Opens a message of 400 bytes `count` times, with nothing around it.
pub fn open(count: u64) {
    let key = key();
    let mut message = vec![7; SIZE];
    let tag = key.seal_in_place_separate_tag(nonce(1), Aad::from([7; 12]), &mut message).expect("a tag");
    let mut out = vec![0; SIZE];
    for _ in 0..count {
        let opened = key.open_separate_gather(nonce(1), Aad::from([7; 12]), &message, tag.as_ref(), &mut out);
        assert!(opened.is_ok());
    }
}

/// The name of the cipher that sessions use on this machine (W84).
pub fn name() -> &'static str {
    if ConnectionConfig::default().aes_256_gcm { "AES-256-GCM" } else { "ChaCha20-Poly1305" }
}

fn key() -> LessSafeKey {
    let cipher = if ConnectionConfig::default().aes_256_gcm { &AES_256_GCM } else { &CHACHA20_POLY1305 };
    LessSafeKey::new(UnboundKey::new(cipher, &[7; 32]).expect("32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
