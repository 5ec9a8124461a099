//! Encryption (S30): how the two sides agree on a secret, and how messages are sealed with it.

mod aead;
mod hpke;
mod key;
#[cfg(feature = "rsa")]
pub(crate) mod rsa;

pub(crate) use aead::{Aead, ChaCha};
pub(crate) use hpke::{Mode, open, seal};
pub use key::{KeyError, PublicKey, StaticKey};

use aws_lc_rs::{digest, hmac};
use rallypoint_wire::session::{KEY_FIELD, Rand, SlotIndex, Uid};
use zeroize::{Zeroize, Zeroizing};

/// What the server seals to the client: from it all keys of a session are made.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// The two keys of a session, one for each direction.
pub(crate) struct SessionKeys {
    pub to_server: ChaCha,
    pub to_client: ChaCha,
}

/// The 80 bytes that are sealed: secret (32), rand (u64), flags (u32, 0), zeros (36).
const SEALED: usize = 80;

/// How long an X25519 key is, and so the first part of the server's field.
const ENC: usize = 32;

impl SessionKeys {
    pub fn new(secret: &Secret) -> Self {
        let mut prk = hkdf_extract(&[], &[&secret[..]]);
        let keys = Self {
            to_server: ChaCha::new(&hkdf_expand(&prk, &[b"c2s"])),
            to_client: ChaCha::new(&hkdf_expand(&prk, &[b"s2c"])),
        };
        prk.zeroize();
        keys
    }
}

/// Who answers a login, and how the answer is protected.
pub(crate) enum Sender<'a> {
    /// Anybody may have answered.
    Base,
    /// The holder of this key answers.
    Auth(&'a StaticKey),
}

/// Makes the server's field of a login success.
pub(crate) fn grant(
    sender: &Sender<'_>,
    client: &PublicKey,
    ephemeral: &StaticKey,
    info: &[u8; 42],
    secret: &Secret,
    rand: Rand,
) -> Option<[u8; KEY_FIELD]> {
    let mut plain = [0; SEALED];
    plain[..32].copy_from_slice(&secret[..]);
    plain[32..40].copy_from_slice(&rand.expose().to_le_bytes());
    let mode = match sender {
        Sender::Base => Mode::Base,
        Sender::Auth(key) => Mode::Auth(*key),
    };
    let mut field = [0; KEY_FIELD];
    field[..ENC].copy_from_slice(ephemeral.public().as_bytes());
    let (message, tag) = field[ENC..].split_last_chunk_mut()?;
    message.copy_from_slice(&plain);
    plain.zeroize();
    seal(&mode, client, ephemeral, info, message, tag)?;
    Some(field)
}

/// Opens the server's field of a login success. Nothing if it was not made for this login by the right server.
pub(crate) fn accept(
    pinned: Option<&PublicKey>,
    client: &StaticKey,
    field: &[u8; KEY_FIELD],
    info: &[u8; 42],
) -> Option<(Secret, Rand)> {
    let (enc, sealed) = field.split_first_chunk::<ENC>()?;
    let (message, tag) = sealed.split_last_chunk()?;
    let mode = pinned.map_or(Mode::Base, Mode::Auth);
    let mut plain = [0; SEALED];
    open(&mode, &PublicKey::new(*enc), client, info, message, tag, &mut plain)?;
    let secret = Secret::new(*plain.first_chunk()?);
    let rand = Rand::new(u64::from_le_bytes(*plain[32..].first_chunk()?));
    // The flags are for later revisions: a server that sets one means something that this client does not know.
    let known = plain[40..].iter().all(|&byte| byte == 0);
    plain.zeroize();
    known.then_some((secret, rand))
}

/// What binds the sealed secret to one login and one slot.
pub(crate) fn info(login: &[u8], index: SlotIndex, uid: Uid) -> [u8; 42] {
    rallypoint_wire::session::hpke_info(&sha256(login), index, uid)
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

/// HKDF-Extract of RFC 5869.
pub(crate) fn hkdf_extract(salt: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    hmac_sha256(salt, parts)
}

/// The first block of HKDF-Expand of RFC 5869; nothing here needs more than its 32 bytes.
pub(crate) fn hkdf_expand(prk: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, prk));
    info.iter().for_each(|part| context.update(part));
    context.update(&[1]);
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

#[cfg(test)]
mod tests;
