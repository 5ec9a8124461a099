//! Encryption (S30): agreement on a secret, and the keys that are derived from it.

mod aead;
mod hpke;
mod key;
#[cfg(feature = "rsa")]
pub(crate) mod rsa;

pub use aead::Cipher;
pub(crate) use aead::MessageKey;
pub(crate) use hpke::HpkeMode;
pub use key::{KeyError, PublicKey, StaticKey};

use aws_lc_rs::{digest, hmac};
use rallypoint_wire::session::{KEY_FIELD, MAX_ENCRYPTED_TO_SERVER, Rand, SealInput, SlotIndex, Uid};
use zeroize::Zeroizing;

/// 32 secret bytes: the secret that the server seals to the client, and everything that is derived from it. They are wiped
/// when they are dropped, and unlike an array they are not copied by accident.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// The two keys of a session, one for each direction.
pub(crate) struct SessionKeys {
    pub to_server: MessageKey,
    pub to_client: MessageKey,
}

/// Length of the sealed plaintext: secret (32), rand (u64), flags (u32, 0), zeros (36).
const SEALED: usize = 80;

/// Length of an X25519 key, and so of the first part of the server's field.
const ENC: usize = 32;

/// Maximum length of what an HMAC is computed of: a step of HPKE with the results of two key agreements, its labels, and an info of
/// 42 bytes takes less.
const MAX_HMAC_INPUT: usize = 192;

/// Maximum number of parts of an info: that of a step of HPKE.
const MAX_INFO_PARTS: usize = 7;

/// Names the keys of messages from the client to the server.
const TO_SERVER: &[u8] = b"c2s";

impl SessionKeys {
    pub fn new(cipher: Cipher, secret: &Secret) -> Self {
        let prk = hkdf_extract(&[], &[&secret[..]]);
        Self { to_server: message_key(cipher, &prk, TO_SERVER), to_client: message_key(cipher, &prk, b"s2c") }
    }
}

fn message_key(cipher: Cipher, prk: &Secret, direction: &[u8]) -> MessageKey {
    let suffix: &[u8] = match cipher {
        Cipher::ChaCha20Poly1305 => b"",
        Cipher::Aes256Gcm => b" aes-256-gcm",
    };
    MessageKey::new(cipher, &hkdf_expand(prk, &[direction, suffix]))
}

/// The first of these ciphers that opens a message to the server (W84). Nothing is derived that this does not take, because
/// everyone who logs in can send any number of messages that none of them opens.
pub(crate) fn opening_cipher(ciphers: &[Cipher], secret: &Secret, input: &SealInput, message: &[u8]) -> Option<Cipher> {
    let (sealed, tag) = message.split_last_chunk()?;
    let mut opened = [0; MAX_ENCRYPTED_TO_SERVER];
    let opened = opened.get_mut(..sealed.len())?;
    let prk = hkdf_extract(&[], &[&secret[..]]);
    ciphers.iter().copied().find(|&cipher| message_key(cipher, &prk, TO_SERVER).open(input, sealed, tag, opened))
}

/// The rand by which a server offers AES-256-GCM (W84). Document 003 has no use for the rand of an encrypted session, and a
/// client that does not know the offer sees a random number without a zero byte, as S17 requires.
pub(crate) fn aes_offer(secret: &Secret) -> Rand {
    let block = hkdf_expand(&hkdf_extract(&[], &[&secret[..]]), &[b"aes-256-gcm"]);
    let mut bytes = [0; 8];
    for (out, byte) in bytes.iter_mut().zip(&block[..]) {
        *out = if *byte == 0 { 0xff } else { *byte };
    }
    Rand::new(u64::from_le_bytes(bytes))
}

/// Makes the server's key field of a login success: the secret and the rand, sealed to the client's key. In
/// [`HpkeMode::Auth`] the field proves that it comes from the holder of the static key. `None` if the client's key is
/// invalid.
pub(crate) fn seal_grant(
    mode: &HpkeMode<&StaticKey>,
    client: &PublicKey,
    ephemeral: &StaticKey,
    info: &[u8; 42],
    secret: &Secret,
    rand: Rand,
) -> Option<[u8; KEY_FIELD]> {
    // The secret is written to the place where it is sealed, so that no copy of it remains.
    let mut field = Zeroizing::new([0; KEY_FIELD]);
    field[..ENC].copy_from_slice(ephemeral.public().as_bytes());
    let (message, tag) = field[ENC..].split_last_chunk_mut()?;
    message[..32].copy_from_slice(&secret[..]);
    message[32..40].copy_from_slice(&rand.expose().to_le_bytes());
    hpke::seal(mode, client, ephemeral, info, &[], message, tag)?;
    Some(*field)
}

/// Opens the server's key field of a login success. `None` if it was not made for this login by the right server.
pub(crate) fn open_grant(
    pinned: Option<&PublicKey>,
    client: &StaticKey,
    field: &[u8; KEY_FIELD],
    info: &[u8; 42],
) -> Option<(Secret, Rand)> {
    let (enc, sealed) = field.split_first_chunk::<ENC>()?;
    let (message, tag) = sealed.split_last_chunk()?;
    let mode = pinned.map_or(HpkeMode::Base, HpkeMode::Auth);
    let mut plain = Zeroizing::new([0; SEALED]);
    hpke::open(&mode, &PublicKey::new(*enc), client, info, &[], message, tag, &mut plain[..])?;
    let mut secret = Secret::default();
    secret.copy_from_slice(&plain[..32]);
    let rand = Rand::new(u64::from_le_bytes(*plain[32..].first_chunk()?));
    // The flags belong to later revisions: a server that sets one means something that this client does not know.
    let is_known = plain[40..].iter().all(|&byte| byte == 0);
    is_known.then_some((secret, rand))
}

/// The HPKE info that binds the sealed secret to one login and one slot.
pub(crate) fn hpke_info(login: &[u8], index: SlotIndex, uid: Uid) -> [u8; 42] {
    rallypoint_wire::session::hpke_info(&sha256(login), index, uid)
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

/// The HMAC of the concatenated parts, of at most [`MAX_HMAC_INPUT`] bytes.
///
/// The library returns the HMAC of several parts in a `Tag`, which is `Copy` and therefore not wiped. So the parts are put
/// together, and the result is written to where it is wiped.
pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> Secret {
    let mut input = Zeroizing::new([0; MAX_HMAC_INPUT]);
    let mut length = 0;
    for part in parts {
        // In range: all parts have a fixed or a bounded length.
        input[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut out = Secret::default();
    let signed = hmac::sign_to_buffer(&key, &input[..length], &mut out[..]);
    // It fails only if the output is too short. A secret of zeros would be worse than a panic.
    assert!(signed.is_ok(), "the HMAC of {length} bytes failed");
    out
}

/// HKDF-Extract of RFC 5869.
pub(crate) fn hkdf_extract(salt: &[u8], parts: &[&[u8]]) -> Secret {
    hmac_sha256(salt, parts)
}

/// The first block of HKDF-Expand of RFC 5869: no key here is longer than its 32 bytes.
pub(crate) fn hkdf_expand(prk: &Secret, info: &[&[u8]]) -> Secret {
    let mut parts: [&[u8]; MAX_INFO_PARTS + 1] = [&[]; MAX_INFO_PARTS + 1];
    // In range: no caller has more parts.
    parts[..info.len()].copy_from_slice(info);
    parts[info.len()] = &[1];
    hmac_sha256(&prk[..], &parts[..=info.len()])
}

#[cfg(test)]
mod tests;
