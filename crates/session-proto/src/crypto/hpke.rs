//! The part of HPKE (RFC 9180) that S30 uses: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, base and auth mode,
//! one message per context.
//!
//! The primitives come from the cryptography library; this file only combines them. The crates for HPKE bring a second set of
//! the same primitives, and do not accept an ephemeral key from outside, which the known answers of S30 need.

use super::{PublicKey, Secret, StaticKey, hkdf_expand, hkdf_extract};
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_wire::session::TAG;
use zeroize::Zeroizing;

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
    associated: &[u8],
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
    let (key, nonce) = schedule(mode, &shared, info).cipher()?;
    let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(associated), message).ok()?;
    tag.copy_from_slice(sealed.as_ref());
    Some(())
}

/// Opens `message`, which is as long as `out`, with the private key `receiver`. `None` if it was not sealed for it.
#[expect(clippy::too_many_arguments, reason = "they are the inputs of the RFC's function")]
pub(crate) fn open(
    mode: &HpkeMode<&PublicKey>,
    ephemeral: &PublicKey,
    receiver: &StaticKey,
    info: &[u8],
    associated: &[u8],
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
    let (key, nonce) = schedule(mode, &shared, info).cipher()?;
    key.open_separate_gather(nonce, Aad::from(associated), message, tag, out).ok()
}

/// The concatenated results of one key agreement, or of two in auth mode.
struct DhOutput {
    bytes: Zeroizing<[u8; 64]>,
    length: usize,
}

impl DhOutput {
    fn new() -> Self {
        Self { bytes: Zeroizing::new([0; 64]), length: 0 }
    }

    fn add(&mut self, private: &StaticKey, public: &PublicKey) -> Option<()> {
        let point = private.agree(public)?;
        // In range: there are at most two agreements.
        self.bytes[self.length..self.length + 32].copy_from_slice(&point[..]);
        self.length += 32;
        Some(())
    }

    /// ExtractAndExpand of the KEM.
    fn shared_secret(&self, enc: &PublicKey, receiver: &PublicKey, sender: Option<&PublicKey>) -> Secret {
        let prk = labeled_extract(KEM, &[], b"eae_prk", &self.bytes[..self.length]);
        let sender = sender.map_or(&[][..], |key| key.as_bytes());
        let context = &[enc.as_bytes(), receiver.as_bytes(), sender];
        labeled_expand(KEM, &prk, b"shared_secret", context, 32)
    }
}

/// The result of KeySchedule: the key, and a nonce in the first 12 bytes of the other. The base nonce is that of the first
/// message, and there is no second one.
struct KeySchedule {
    key: Secret,
    base_nonce: Secret,
}

impl KeySchedule {
    fn cipher(&self) -> Option<(LessSafeKey, Nonce)> {
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, &self.key[..]).ok().map(LessSafeKey::new);
        Some((cipher?, Nonce::assume_unique_for_key(*self.base_nonce.first_chunk()?)))
    }
}

/// KeySchedule without a pre-shared key.
fn schedule(mode: u8, shared: &Secret, info: &[u8]) -> KeySchedule {
    let psk_id_hash = labeled_extract(SUITE, &[], b"psk_id_hash", &[]);
    let info_hash = labeled_extract(SUITE, &[], b"info_hash", info);
    let context: &[&[u8]] = &[&[mode], &psk_id_hash[..], &info_hash[..]];
    let secret = labeled_extract(SUITE, &shared[..], b"secret", &[]);
    KeySchedule {
        key: labeled_expand(SUITE, &secret, b"key", context, 32),
        base_nonce: labeled_expand(SUITE, &secret, b"base_nonce", context, 12),
    }
}

fn labeled_extract(suite: &[u8], salt: &[u8], label: &[u8], ikm: &[u8]) -> Secret {
    hkdf_extract(salt, &[VERSION, suite, label, ikm])
}

/// The first `length` bytes of the result are the output.
fn labeled_expand(suite: &[u8], prk: &Secret, label: &[u8], info: &[&[u8]], length: u16) -> Secret {
    let length = length.to_be_bytes();
    let mut parts: [&[u8]; 7] = [&[]; 7];
    parts[..4].copy_from_slice(&[&length, VERSION, suite, label]);
    for (part, info) in parts[4..].iter_mut().zip(info) {
        *part = info;
    }
    hkdf_expand(prk, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The vectors of RFC 9180 for this suite, every intermediate value included.
    #[test]
    fn s30_the_vectors_of_rfc_9180_are_reproduced() {
        let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/hpke-rfc9180.json")).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 2, "base and auth mode");
        for case in cases {
            let bytes = |name: &str| -> Vec<u8> {
                let digits = case[name].as_str().unwrap().as_bytes();
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                digits.chunks(2).map(byte).collect()
            };
            let private = |name| StaticKey::from_bytes(bytes(name).try_into().unwrap()).unwrap();
            let ephemeral = private("skEm");
            let receiver = private("skRm");
            assert_eq!(ephemeral.public().as_bytes()[..], bytes("enc"));
            assert_eq!(receiver.public().as_bytes()[..], bytes("pkRm"));
            let is_auth = case["mode"] == 2;
            let sender = is_auth.then(|| private("skSm"));
            let sender_public = sender.as_ref().map(StaticKey::public);

            let mut dh = DhOutput::new();
            dh.add(&ephemeral, &receiver.public()).unwrap();
            if let Some(sender) = &sender {
                dh.add(sender, &receiver.public()).unwrap();
            }
            let shared = dh.shared_secret(&ephemeral.public(), &receiver.public(), sender_public.as_ref());
            assert_eq!(shared[..], bytes("shared_secret"));
            let keys = schedule(if is_auth { 2 } else { 0 }, &shared, &bytes("info"));
            assert_eq!(keys.key[..], bytes("key"));
            assert_eq!(keys.base_nonce[..12], bytes("base_nonce"));

            let mode = sender.as_ref().map_or(HpkeMode::Base, HpkeMode::Auth);
            let mut message = bytes("pt");
            let mut tag = [0; TAG];
            let associated = bytes("aad");
            seal(&mode, &receiver.public(), &ephemeral, &bytes("info"), &associated, &mut message, &mut tag).unwrap();
            message.extend(tag);
            assert_eq!(message, bytes("ct"));

            let mode = sender_public.as_ref().map_or(HpkeMode::Base, HpkeMode::Auth);
            let (sealed, tag) = message.split_last_chunk().unwrap();
            let mut opened = vec![0; sealed.len()];
            let enc = ephemeral.public();
            open(&mode, &enc, &receiver, &bytes("info"), &associated, sealed, tag, &mut opened).unwrap();
            assert_eq!(opened, bytes("pt"));
        }
    }
}
