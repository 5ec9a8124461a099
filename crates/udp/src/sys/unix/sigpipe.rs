//! The signal for writing to a closed connection.

use std::{mem::MaybeUninit, ptr};

/// Whether writing to a connection that its peer has closed returns an error instead of ending the process. Rust programs
/// ignore SIGPIPE unless they were built not to.
#[must_use]
pub fn is_sigpipe_ignored() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is set, and the one in force is written to a whole sigaction. All zeros are one, too.
    unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
