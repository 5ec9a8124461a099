//! Versions of the library and of its interface.

use std::ffi::c_char;

/// Version of the interface that this header describes. It changes when a program that was compiled with an older header could
/// no longer use the library; functions and fields at the end of structures are added without changing it.
pub const RP_ABI_VERSION: u32 = 1;

/// The version of the interface that the loaded library has: compare it with `RP_ABI_VERSION` before anything else is called.
/// Never fails. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rp_abi_version() -> u32 {
    RP_ABI_VERSION
}

/// The version of the library, such as "0.1.0". The text is static. Never fails. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rp_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
