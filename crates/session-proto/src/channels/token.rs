//! Connect tokens: the game's account service signs who may log in, and a server verifies it without asking the service
//! (W113).
//!
//! ```text
//! token:       0  version (u8): 1
//!              1  expiry, in seconds since 1970 (u64)
//!              9  length of the data (u8): at most 64
//!             10  data
//!              …  signature (64)
//! signed:         "rallypoint token 1", server's static key (32), expiry (u64), length of the username (u8), username,
//!                 length of the data (u8), data
//! ```
//!
//! Username and server key are not in the token: both sides know them. A token is as good as a password until it expires, so
//! it is sent only in a session whose server the client has verified.

use crate::{KeyError, PublicKey};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::{fmt, str::FromStr, time::Instant};
use zeroize::Zeroize;

const VERSION: u8 = 1;
const CONTEXT: &[u8] = b"rallypoint token 1";
const SIGNATURE: usize = 64;
const HEADER: usize = 10;

/// Maximum length of the data in a token.
const MAX_DATA: usize = 64;

/// The signing key of an account service.
///
/// ```
/// use rallypoint_session_proto::{PublicKey, TokenIssuer, TokenVerifier, WallClock};
/// use std::time::Instant;
///
/// // The seed is secret and comes from a secure random generator.
/// let issuer = TokenIssuer::from_seed([7; 32])?;
/// let server = PublicKey::new([1; 32]);
/// let token = issuer.issue(&server, "alice", 1_700_000_060, b"account 17")?;
///
/// let clock = WallClock { at: Instant::now(), unix_seconds: 1_700_000_000 };
/// let verifier = TokenVerifier { issuer: issuer.public(), clock };
/// let claims = verifier.verify(clock.at, &server, "alice", token.as_bytes())?;
/// assert_eq!(claims.data, b"account 17");
/// assert!(verifier.verify(clock.at, &server, "mallory", token.as_bytes()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenIssuer(Ed25519KeyPair);

/// The public half of a [`TokenIssuer`]: an Ed25519 key. Written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenKey([u8; 32]);

/// A token as the client sends it. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectToken(Vec<u8>);

/// The claims of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenClaims {
    /// When it expires, in seconds since 1970.
    pub expires: u64,
    /// Data that the account service added, for example an account number.
    pub data: Vec<u8>,
}

/// The time of day at an instant: the state machines have no clock of their own.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// An instant.
    pub at: Instant,
    /// Seconds since 1970 at that instant.
    pub unix_seconds: u64,
}

/// The key and the clock with which a server verifies tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenVerifier {
    /// The key of the account service.
    pub issuer: TokenKey,
    /// The time of day.
    pub clock: WallClock,
}

/// Why a token is not accepted, or cannot be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The server requires a token.
    #[error("this server requires a connect token: sign in to the game's account service")]
    Missing,
    /// The client has not verified the server, so its token may have been stolen.
    #[error("a connect token needs a session with a pinned server key")]
    NotPinned,
    /// The bytes are not a token.
    #[error("the connect token is malformed")]
    Malformed,
    /// It was issued for another server, another username, or by another service.
    #[error("the connect token is not valid for this server and username")]
    Invalid,
    /// It has expired.
    #[error("the connect token has expired: sign in again")]
    Expired,
    /// The data or the username is too long.
    #[error("a token carries at most 64 bytes of data and 127 bytes of username")]
    TooLong,
    /// The seed cannot be used as a key.
    #[error("these 32 bytes cannot be used as a signing key")]
    Key,
}

impl TokenIssuer {
    /// Makes a key of 32 secret random bytes.
    ///
    /// # Errors
    /// If the cryptography library rejects them.
    pub fn from_seed(mut seed: [u8; 32]) -> Result<Self, TokenError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map(Self).map_err(|_| TokenError::Key);
        seed.zeroize();
        pair
    }

    /// The key that servers verify tokens with.
    #[must_use]
    pub fn public(&self) -> TokenKey {
        let mut bytes = [0; 32];
        let public = self.0.public_key().as_ref();
        // Ed25519 keys have 32 bytes.
        bytes.iter_mut().zip(public).for_each(|(byte, public)| *byte = *public);
        TokenKey(bytes)
    }

    /// Signs a token with which `username` may log in to the server with this static key, until `expires` (seconds since
    /// 1970). `data` is for the server, at most 64 bytes; anyone who has the token can read it.
    ///
    /// # Errors
    /// If the username or the data is too long.
    pub fn issue(
        &self,
        server: &PublicKey,
        username: &str,
        expires: u64,
        data: &[u8],
    ) -> Result<ConnectToken, TokenError> {
        let signed = signed_bytes(server, username, expires, data).ok_or(TokenError::TooLong)?;
        let mut token = vec![VERSION];
        token.extend_from_slice(&expires.to_le_bytes());
        token.push(data.len() as u8);
        token.extend_from_slice(data);
        token.extend_from_slice(self.0.sign(&signed).as_ref());
        Ok(ConnectToken(token))
    }
}

impl TokenKey {
    /// Takes the bytes of a key.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl ConnectToken {
    /// Takes the bytes that the account service returned.
    ///
    /// # Errors
    /// If they are not a token. The signature is verified by the server.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, TokenError> {
        let bytes = bytes.into();
        parse(&bytes).map(|_| ()).ok_or(TokenError::Malformed)?;
        Ok(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TokenVerifier {
    /// Verifies a token.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn verify(
        &self,
        now: Instant,
        server: &PublicKey,
        username: &str,
        token: &[u8],
    ) -> Result<TokenClaims, TokenError> {
        if token.is_empty() {
            return Err(TokenError::Missing);
        }
        let (expires, data, signature) = parse(token).ok_or(TokenError::Malformed)?;
        let signed = signed_bytes(server, username, expires, data).ok_or(TokenError::Malformed)?;
        let key = UnparsedPublicKey::new(&ED25519, self.issuer.0);
        key.verify(&signed, signature).map_err(|_| TokenError::Invalid)?;
        let elapsed = now.saturating_duration_since(self.clock.at).as_secs();
        if self.clock.unix_seconds.saturating_add(elapsed) >= expires {
            return Err(TokenError::Expired);
        }
        Ok(TokenClaims { expires, data: data.to_vec() })
    }
}

/// Expiry, data and signature.
fn parse(token: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (header, rest) = token.split_first_chunk::<HEADER>()?;
    let [version, expires @ .., length] = header;
    let (data, signature) = rest.split_at_checked(usize::from(*length))?;
    let is_valid = *version == VERSION && data.len() <= MAX_DATA && signature.len() == SIGNATURE;
    is_valid.then(|| (u64::from_le_bytes(*expires), data, signature))
}

fn signed_bytes(server: &PublicKey, username: &str, expires: u64, data: &[u8]) -> Option<Vec<u8>> {
    if username.len() > 127 || data.len() > MAX_DATA {
        return None;
    }
    let mut bytes = CONTEXT.to_vec();
    bytes.extend_from_slice(server.as_bytes());
    bytes.extend_from_slice(&expires.to_le_bytes());
    bytes.push(username.len() as u8);
    bytes.extend_from_slice(username.as_bytes());
    bytes.push(data.len() as u8);
    bytes.extend_from_slice(data);
    Some(bytes)
}

impl fmt::Display for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&PublicKey::new(self.0), f)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TokenKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        text.parse::<PublicKey>().map(|key| Self(*key.as_bytes()))
    }
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenIssuer(secret, public {})", self.public())
    }
}

impl fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectToken({} bytes, secret)", self.0.len())
    }
}
