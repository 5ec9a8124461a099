//! Error codes, the last error of a thread, and the barrier for panics.

use rallypoint_announce::{AnnounceError, AnnounceStartError};
use rallypoint_query::ScanError;
use rallypoint_session::{ConnectError, EntropyError, KeyError, SendError, SetupError, TokenError};
use std::{
    borrow::Cow,
    cell::RefCell,
    ffi::{CStr, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Success.
pub const RP_OK: i32 = 0;
/// A pointer is null that must not be.
pub const RP_ERROR_NULL_POINTER: i32 = -1;
/// The handle was closed, belongs to an object of another kind, or never existed.
pub const RP_ERROR_INVALID_HANDLE: i32 = -2;
/// The buffer is too small. Nothing is lost: the call can be repeated with a larger one.
pub const RP_ERROR_BUFFER_TOO_SMALL: i32 = -3;
/// A text is not UTF-8.
pub const RP_ERROR_INVALID_TEXT: i32 = -4;
/// A setting or an argument is out of range: `rp_last_error` names it.
pub const RP_ERROR_INVALID_ARGUMENT: i32 = -5;
/// Another thread is using the object at this moment.
pub const RP_ERROR_BUSY: i32 = -6;
/// A defect of the library. The object cannot be used any more and should be closed.
pub const RP_ERROR_PANIC: i32 = -7;
/// Too many objects are open.
pub const RP_ERROR_LIMIT: i32 = -8;
/// The system refused a socket, a thread or random bytes.
pub const RP_ERROR_SYSTEM: i32 = -9;
/// A name has no address.
pub const RP_ERROR_NOT_FOUND: i32 = -10;
/// The send window, or the queue of the channel, is full: `RP_EVENT_WRITABLE` follows when there is room again.
pub const RP_ERROR_WOULD_BLOCK: i32 = -11;
/// The message is longer than a message may be, or empty.
pub const RP_ERROR_TOO_LARGE: i32 = -12;
/// There is no session, or it is being closed.
pub const RP_ERROR_NOT_CONNECTED: i32 = -13;
/// The player does not exist, or no longer.
pub const RP_ERROR_UNKNOWN_PLAYER: i32 = -14;

const TEXTS: [&CStr; 15] = [
    c"success",
    c"a pointer is null",
    c"the handle is not valid",
    c"the buffer is too small",
    c"the text is not UTF-8",
    c"an argument is out of range",
    c"another thread is using the object",
    c"a defect of the library",
    c"too many objects are open",
    c"the system refused a socket, a thread or random bytes",
    c"the name has no address",
    c"the send window is full",
    c"the message is too long, or empty",
    c"not connected",
    c"no such player",
];

thread_local! {
    static LAST_ERROR: RefCell<Cow<'static, str>> = const { RefCell::new(Cow::Borrowed("")) };
}

/// The sentence about the last error of this thread, as a zero-terminated text that is cut off if the buffer is too small.
/// Returns the length of the whole text without the zero byte; with a null pointer or a capacity of 0, that is all it does.
/// Successful calls do not change the last error. Never fails. Any thread.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_last_error(buffer: *mut c_char, capacity: usize) -> usize {
    // The text is gone while the thread ends.
    let copy = || {
        LAST_ERROR.try_with(|text| {
            let text = text.borrow();
            if !buffer.is_null() && capacity > 0 {
                let length = crate::output::floor_char_boundary(&text, capacity - 1);
                // SAFETY: the caller has `capacity` bytes there, and `length` is smaller.
                unsafe {
                    std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
                    buffer.add(length).write(0);
                }
            }
            text.len()
        })
    };
    catch_unwind(AssertUnwindSafe(copy)).ok().and_then(Result::ok).unwrap_or(0)
}

/// What an error code means in general. The text is static; it is never null. Never fails. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rp_error_text(code: i32) -> *const c_char {
    let index = code.checked_neg().and_then(|code| usize::try_from(code).ok());
    index.and_then(|index| TEXTS.get(index)).unwrap_or(&c"an unknown error").as_ptr()
}

/// Why a call failed: its code, and a sentence for `rp_last_error`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(code: i32, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(RP_ERROR_INVALID_ARGUMENT, text)
    }

    /// A failure that needs no more words than its code.
    pub(crate) fn of(code: i32) -> Self {
        let index = usize::try_from(-code).unwrap_or_default();
        Self::new(code, TEXTS.get(index).and_then(|text| text.to_str().ok()).unwrap_or_default())
    }
}

/// Runs the body of an exported function: its value, or the code of its failure, which becomes the last error of this thread.
pub(crate) fn guard(call: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Failure::of(RP_ERROR_PANIC)));
    result.unwrap_or_else(|Failure { code, text }| {
        // A thread that is ending has no last error any more; a panic here would end the process.
        let _ = LAST_ERROR.try_with(|last| last.replace(text));
        code
    })
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            // Ordinary in a game that sends much: no text is built for it.
            SendError::WouldBlock => Self::of(RP_ERROR_WOULD_BLOCK),
            SendError::TooLarge { .. } | SendError::Empty => Self::new(RP_ERROR_TOO_LARGE, error.to_string()),
            SendError::UnknownPlayer => Self::of(RP_ERROR_UNKNOWN_PLAYER),
            SendError::NoChannel => Self::argument(error.to_string()),
            _ => Self::new(RP_ERROR_NOT_CONNECTED, error.to_string()),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let code = match error {
            SetupError::Bind(_) | SetupError::Entropy(_) => RP_ERROR_SYSTEM,
            _ => RP_ERROR_INVALID_ARGUMENT,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Setup(error) => error.into(),
            _ => Self::new(RP_ERROR_NOT_FOUND, error.to_string()),
        }
    }
}

impl From<AnnounceStartError> for Failure {
    fn from(error: AnnounceStartError) -> Self {
        let code = match error {
            AnnounceStartError::Bind(_) | AnnounceStartError::Entropy(_) | AnnounceStartError::Thread(_) => {
                RP_ERROR_SYSTEM
            }
            _ => RP_ERROR_INVALID_ARGUMENT,
        };
        Self::new(code, error.to_string())
    }
}

impl From<AnnounceError> for Failure {
    fn from(error: AnnounceError) -> Self {
        Self::argument(error.to_string())
    }
}

impl From<ScanError> for Failure {
    fn from(error: ScanError) -> Self {
        let code = if matches!(error, ScanError::Config(_)) { RP_ERROR_INVALID_ARGUMENT } else { RP_ERROR_SYSTEM };
        Self::new(code, error.to_string())
    }
}

impl From<EntropyError> for Failure {
    fn from(error: EntropyError) -> Self {
        Self::new(RP_ERROR_SYSTEM, error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::argument(error.to_string())
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::argument(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(RP_ERROR_SYSTEM, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        let mut buffer = [0; 128];
        // SAFETY: the buffer has the length that is passed.
        let length = unsafe { rp_last_error(buffer.as_mut_ptr().cast(), buffer.len()) };
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_panic_becomes_an_error_code() {
        assert_eq!(guard(|| panic!("a defect")), RP_ERROR_PANIC);
        assert_eq!(last_error(), "a defect of the library");
    }

    #[test]
    fn the_last_error_is_kept_until_the_next_one() {
        assert_eq!(guard(|| Err(Failure::argument("window is 3: use 64 to 16384"))), RP_ERROR_INVALID_ARGUMENT);
        assert_eq!(guard(|| Ok(7)), 7);
        assert_eq!(last_error(), "window is 3: use 64 to 16384");
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(last_error(), "")).join()).unwrap();
    }

    #[test]
    fn a_text_that_does_not_fit_is_cut_off_between_characters() {
        guard(|| Err(Failure::argument("aä")));
        let mut buffer = [b'x'; 4];
        // SAFETY: the buffer is longer than the capacities that are passed.
        let lengths = [0, 1, 3].map(|capacity| unsafe { rp_last_error(buffer.as_mut_ptr().cast(), capacity) });
        assert_eq!((lengths, buffer), ([3; 3], *b"a\0xx"));
        // SAFETY: as above; a null pointer is allowed.
        assert_eq!(unsafe { rp_last_error(std::ptr::null_mut(), 4) }, 3);
    }

    #[test]
    fn every_code_has_a_text() {
        let text = |code| {
            // SAFETY: the function returns static texts.
            unsafe { CStr::from_ptr(rp_error_text(code)) }.to_str().unwrap()
        };
        assert_eq!(text(RP_ERROR_UNKNOWN_PLAYER), "no such player");
        for code in [1, -15, i32::MAX, i32::MIN] {
            assert_eq!(text(code), "an unknown error");
        }
    }
}
