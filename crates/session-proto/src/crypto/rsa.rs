//! RSA-1024 (S30): for compatibility, obsolete, and off by default.
//!
//! A determined attacker can factor 1024 bits. The timing of a private operation may also leak the key (RUSTSEC-2023-0071):
//! here it is the client's key, made for one login and used for at most four fields, and the operation is blinded.

use super::Secret;
use crate::rng::SecretRng;
use rallypoint_wire::session::{KEY_FIELD, Rand};
use rsa::{
    BoxedUint, Oaep, RsaPrivateKey, RsaPublicKey,
    rand_core::{Infallible, TryCryptoRng, TryRng},
    sha2::Sha256,
    traits::PublicKeyParts,
};
use std::fmt;
use zeroize::Zeroizing;

const EXPONENT: u32 = 65_537;

/// Number of fields that cannot be opened after which a key is replaced: an attacker that measures the time of many of them
/// could learn something about the key.
pub(crate) const MAX_FAILURES: u32 = 4;

/// Number of keys that a login uses. Making one takes a while, so a forger must not be able to request any number of them.
pub(crate) const MAX_KEYS: u32 = 3;

/// The client's key pair of one login.
pub(crate) struct RsaKey {
    private: RsaPrivateKey,
    modulus: [u8; KEY_FIELD],
}

impl RsaKey {
    pub fn new(rng: &mut SecretRng) -> Option<Self> {
        Self::from_private(RsaPrivateKey::new(&mut RsaRng(rng), 8 * KEY_FIELD).ok()?)
    }

    fn from_private(private: RsaPrivateKey) -> Option<Self> {
        let modulus = private.n().to_be_bytes();
        let modulus = modulus.last_chunk().copied().filter(|modulus: &[u8; KEY_FIELD]| modulus[0] >= 0x80)?;
        Some(Self { private, modulus })
    }

    /// The key field of a login.
    pub fn modulus(&self) -> &[u8; KEY_FIELD] {
        &self.modulus
    }

    /// Opens the server's key field of a login success. The private operation is blinded with numbers from `rng`, so that its
    /// timing does not depend on the key and the field alone.
    pub fn open_grant(&self, field: &[u8; KEY_FIELD], rng: &mut SecretRng) -> Option<(Secret, Rand)> {
        let plain = self.private.decrypt_blinded(&mut RsaRng(rng), Oaep::<Sha256>::new(), field);
        let plain = Zeroizing::new(plain.ok()?);
        let (opened, rand) = plain.split_first_chunk::<32>()?;
        let mut secret = Secret::default();
        secret.copy_from_slice(opened);
        Some((secret, Rand::new(u64::from_le_bytes(rand.try_into().ok()?))))
    }
}

/// Makes the server's key field of a login success.
pub(crate) fn seal_grant(
    modulus: &[u8; KEY_FIELD],
    secret: &Secret,
    rand: Rand,
    rng: &mut SecretRng,
) -> Option<[u8; KEY_FIELD]> {
    seal(modulus, secret, rand, &mut RsaRng(rng))
}

fn seal(
    modulus: &[u8; KEY_FIELD],
    secret: &Secret,
    rand: Rand,
    rng: &mut impl rsa::rand_core::CryptoRng,
) -> Option<[u8; KEY_FIELD]> {
    let modulus = BoxedUint::from_be_slice(modulus, 8 * KEY_FIELD as u32).ok()?;
    let key = RsaPublicKey::new(modulus, BoxedUint::from(EXPONENT)).ok()?;
    let mut plain = Zeroizing::new([0; 40]);
    plain[..32].copy_from_slice(&secret[..]);
    plain[32..].copy_from_slice(&rand.expose().to_le_bytes());
    key.encrypt(rng, Oaep::<Sha256>::new(), &plain[..]).ok()?.try_into().ok()
}

/// Adapts the generator of this crate to the traits of the RSA library.
struct RsaRng<'a>(&'a mut SecretRng);

impl TryRng for RsaRng<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.0.bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(32) {
            self.0.fill(chunk);
        }
        Ok(())
    }
}

impl TryCryptoRng for RsaRng<'_> {}

impl fmt::Debug for RsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RsaKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn vector() -> impl Fn(&str) -> Vec<u8> {
        let text = include_str!("../../tests/vectors/session-rsa.json");
        let vector: Value = serde_json::from_str(text).unwrap();
        move |name| {
            let text = vector[name].as_str().unwrap().as_bytes();
            text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
        }
    }

    /// A generator that returns the same bytes each time.
    struct Fixed(Vec<u8>);

    impl TryRng for Fixed {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(0)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(0)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.copy_from_slice(&self.0[..bytes.len()]);
            Ok(())
        }
    }

    impl TryCryptoRng for Fixed {}

    #[test]
    fn s30_rsa_fields_match_the_known_answers() {
        let vector = vector();
        let secret = Secret::new(vector("secret").try_into().unwrap());
        let rand = Rand::new(u64::from_be_bytes(vector("rand").try_into().unwrap()));
        let modulus = vector("modulus").try_into().unwrap();
        let field = seal(&modulus, &secret, rand, &mut Fixed(vector("oaep_seed"))).unwrap();
        assert_eq!(field[..], vector("login_field"));

        let number = |name, bits| BoxedUint::from_be_slice(&vector(name), bits).unwrap();
        let p = number("prime_p", 512);
        let q = number("prime_q", 512);
        let key = RsaKey::from_private(RsaPrivateKey::from_p_q(p, q, BoxedUint::from(EXPONENT)).unwrap()).unwrap();
        assert_eq!(key.modulus(), &modulus);
        let mut rng = SecretRng::new([1; 32]);
        let (opened, opened_rand) = key.open_grant(&field, &mut rng).unwrap();
        assert_eq!((*opened, opened_rand), (*secret, rand));
        let mut forged = field;
        forged[77] ^= 1;
        assert!(key.open_grant(&forged, &mut rng).is_none());
    }
}
