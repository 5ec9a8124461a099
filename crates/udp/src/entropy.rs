//! Unpredictable random bytes from the operating system: the only place of the workspace that reads them.

use std::io;
use thiserror::Error;

/// The operating system gave no random bytes, without which no key, seed or identifier can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the operating system gave no random bytes: {0}")]
pub struct EntropyError(getrandom::Error);

/// Random bytes.
///
/// # Errors
/// If the operating system has none to give.
///
/// ```
/// let key: [u8; 32] = rallypoint_udp::entropy::bytes()?;
/// # Ok::<(), rallypoint_udp::EntropyError>(())
/// ```
pub fn bytes<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(bytes)
}

/// Fills a buffer with random bytes: for secrets, which [`bytes`] would leave copies of.
///
/// # Errors
/// As [`bytes`].
pub fn fill(out: &mut [u8]) -> Result<(), EntropyError> {
    getrandom::fill(out).map_err(EntropyError)
}

/// A random 64-bit number.
///
/// # Errors
/// As [`bytes`].
pub fn u64() -> Result<u64, EntropyError> {
    bytes().map(u64::from_ne_bytes)
}

/// A random 128-bit number.
///
/// # Errors
/// As [`bytes`].
pub fn u128() -> Result<u128, EntropyError> {
    bytes().map(u128::from_ne_bytes)
}

impl From<EntropyError> for io::Error {
    fn from(error: EntropyError) -> Self {
        Self::other(error)
    }
}
