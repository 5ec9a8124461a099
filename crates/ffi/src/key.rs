//! Static keys of servers.

use crate::{
    arguments,
    failure::{Failure, RP_ERROR_NULL_POINTER, guard},
    output,
};
use rallypoint_session::{StaticKey, generate_static_key};

/// Length of secret and public keys in bytes.
pub const RP_KEY_LENGTH: usize = 32;

/// Generates a secret key for a server, of `RP_KEY_LENGTH` bytes. Store it where only the server can read it. Any thread.
///
/// # Safety
/// `secret_key` is null or points to 32 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_generate_key(secret_key: *mut u8) -> i32 {
    guard(|| {
        let key = generate_static_key()?;
        // SAFETY: as promised by the caller.
        unsafe { output::write(secret_key.cast::<[u8; RP_KEY_LENGTH]>(), *key.expose()) }?;
        Ok(0)
    })
}

/// The public half of a secret key: clients that know it accept no other server. Any thread.
///
/// # Safety
/// `secret_key` is null or points to 32 readable bytes, `public_key` is null or points to 32 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_public_key(secret_key: *const u8, public_key: *mut u8) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let secret = unsafe { arguments::optional_array::<RP_KEY_LENGTH>(secret_key) };
        let key = StaticKey::from_bytes(secret.ok_or_else(|| Failure::of(RP_ERROR_NULL_POINTER))?)?;
        // SAFETY: as promised by the caller.
        unsafe { output::write(public_key.cast::<[u8; RP_KEY_LENGTH]>(), *key.public().as_bytes()) }?;
        Ok(0)
    })
}
