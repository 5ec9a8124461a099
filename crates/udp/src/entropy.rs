//! Randomness that nobody can guess, from the system.

/// Random bytes.
///
/// # Panics
/// If the system has no randomness to give. There is nothing sensible to go on with then.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// A random number.
#[must_use]
pub fn number() -> u64 {
    u64::from_ne_bytes(bytes())
}
