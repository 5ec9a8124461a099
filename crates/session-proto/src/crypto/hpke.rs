//! The part of HPKE (RFC 9180) that S30 uses: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, base and auth mode,
//! one message per context.
//!
//! The primitives come from the cryptography library; this file only combines them. The crates for HPKE bring a second set of
//! the same primitives, and do not accept an ephemeral key from outside, which the known answers of S30 need.

use super::{PublicKey, StaticKey, hkdf_expand, hkdf_extract};
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_wire::session::TAG;
use zeroize::Zeroize;

/// Whether the sender is authenticated by a static key: the sender's private key when sealing, its public key when opening.
pub(crate) enum HpkeMode<K> {
    Base,
    Auth(K),
}

const VERSION: &[u8] = b"HPKE-v1";
const KEM: &[u8] = b"KEM\x00\x20";
const SUITE: &[u8] = b"HPKE\x00\x20\x00\x01\x00\x03";

/// Seals `message` in place for the holder of `receiver`. `None` if that key is invalid.
pub(crate) fn seal(
    mode: &HpkeMode<&StaticKey>,
    receiver: &PublicKey,
    ephemeral: &StaticKey,
    info: &[u8],
    message: &mut [u8],
    tag: &mut [u8; TAG],
) -> Option<()> {
    let mut dh = DhOutput::new();
    dh.add(ephemeral, receiver)?;
    let (mode, sender) = match mode {
        HpkeMode::Base => (0, None),
        HpkeMode::Auth(key) => {
            dh.add(key, receiver)?;
            (2, Some(key.public()))
        }
    };
    let shared = dh.shared_secret(&ephemeral.public(), receiver, sender.as_ref());
    let (key, nonce) = schedule(mode, shared, info)?;
    let sealed = key.seal_in_place_separate_tag(nonce, Aad::empty(), message).ok()?;
    tag.copy_from_slice(sealed.as_ref());
    Some(())
}

/// Opens `message`, which is as long as `out`, with the private key `receiver`. `None` if it was not sealed for it.
pub(crate) fn open(
    mode: &HpkeMode<&PublicKey>,
    ephemeral: &PublicKey,
    receiver: &StaticKey,
    info: &[u8],
    message: &[u8],
    tag: &[u8; TAG],
    out: &mut [u8],
) -> Option<()> {
    let mut dh = DhOutput::new();
    dh.add(receiver, ephemeral)?;
    let (mode, sender) = match mode {
        HpkeMode::Base => (0, None),
        HpkeMode::Auth(key) => {
            dh.add(receiver, key)?;
            (2, Some(*key))
        }
    };
    let shared = dh.shared_secret(ephemeral, &receiver.public(), sender);
    let (key, nonce) = schedule(mode, shared, info)?;
    key.open_separate_gather(nonce, Aad::empty(), message, tag, out).ok()
}

/// The concatenated results of one key agreement, or of two in auth mode.
struct DhOutput {
    bytes: [u8; 64],
    length: usize,
}

impl DhOutput {
    fn new() -> Self {
        Self { bytes: [0; 64], length: 0 }
    }

    fn add(&mut self, private: &StaticKey, public: &PublicKey) -> Option<()> {
        let mut point = private.agree(public)?;
        // In range: there are at most two agreements.
        self.bytes[self.length..self.length + 32].copy_from_slice(&point);
        self.length += 32;
        point.zeroize();
        Some(())
    }

    /// ExtractAndExpand of the KEM.
    fn shared_secret(mut self, enc: &PublicKey, receiver: &PublicKey, sender: Option<&PublicKey>) -> [u8; 32] {
        let mut prk = labeled_extract(KEM, &[], b"eae_prk", &self.bytes[..self.length]);
        self.bytes.zeroize();
        let sender = sender.map_or(&[][..], |key| key.as_bytes());
        let context = &[enc.as_bytes(), receiver.as_bytes(), sender];
        let shared = labeled_expand(KEM, &prk, b"shared_secret", context, 32);
        prk.zeroize();
        shared
    }
}

/// KeySchedule without a pre-shared key. The base nonce is that of the first message, and there is no second one.
fn schedule(mode: u8, mut shared: [u8; 32], info: &[u8]) -> Option<(LessSafeKey, Nonce)> {
    let psk_id_hash = labeled_extract(SUITE, &[], b"psk_id_hash", &[]);
    let info_hash = labeled_extract(SUITE, &[], b"info_hash", info);
    let context: &[&[u8]] = &[&[mode], &psk_id_hash, &info_hash];
    let mut secret = labeled_extract(SUITE, &shared, b"secret", &[]);
    shared.zeroize();
    let mut key = labeled_expand(SUITE, &secret, b"key", context, 32);
    let nonce = labeled_expand(SUITE, &secret, b"base_nonce", context, 12);
    secret.zeroize();
    let cipher = UnboundKey::new(&CHACHA20_POLY1305, &key).ok().map(LessSafeKey::new);
    key.zeroize();
    Some((cipher?, Nonce::assume_unique_for_key(*nonce.first_chunk()?)))
}

fn labeled_extract(suite: &[u8], salt: &[u8], label: &[u8], ikm: &[u8]) -> [u8; 32] {
    hkdf_extract(salt, &[VERSION, suite, label, ikm])
}

/// The first `length` bytes of the result are the output.
fn labeled_expand(suite: &[u8], prk: &[u8; 32], label: &[u8], info: &[&[u8]], length: u16) -> [u8; 32] {
    let length = length.to_be_bytes();
    let mut parts: [&[u8]; 7] = [&[]; 7];
    parts[..4].copy_from_slice(&[&length, VERSION, suite, label]);
    for (part, info) in parts[4..].iter_mut().zip(info) {
        *part = info;
    }
    hkdf_expand(prk, &parts)
}
