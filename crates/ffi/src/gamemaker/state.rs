//! The state of a thread: its open objects, the event that it took last; and the two functions of every step.

use crate::{
    announcer::{rp_announcer_close, rp_announcer_next_event, rp_announcer_poll},
    client::{rp_client_close, rp_client_flush, rp_client_next_event, rp_client_poll},
    event::rp_event,
    failure::{Failure, RP_ERROR_BUFFER_TOO_SMALL, RP_ERROR_INVALID_HANDLE, RP_ERROR_PANIC, guard, rp_last_error},
    handle_table::Kind,
    scan::{rp_scan_close, rp_scan_next},
    scan_record::rp_scan_record,
    server::{rp_server_close, rp_server_flush, rp_server_next_event, rp_server_poll},
};
use rallypoint_session::ChannelIndex;
use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// The state of a thread.
#[derive(Default)]
pub(super) struct State {
    /// Everything that this thread has opened and not closed.
    handles: Vec<u64>,
    /// The event that was taken last, and its message or text.
    pub(super) event: rp_event,
    pub(super) bytes: Vec<u8>,
    /// The record of a scan that was taken last, by the names of its fields.
    pub(super) numbers: Vec<(&'static str, i32)>,
    pub(super) texts: Vec<(&'static str, String)>,
    /// The channel of messages that are sent.
    pub(super) channel: ChannelIndex,
    /// Bytes of a message that is being written.
    pub(super) written: Vec<u8>,
    /// The text that was returned last.
    text: CString,
}

/// Calls a function with the state of this thread; a panic becomes an error code.
pub(super) fn with(call: impl FnOnce(&mut State) -> i32) -> f64 {
    // The state is gone while the thread ends.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let result =
            STATE.try_with(|state| state.try_borrow_mut().map_or(RP_ERROR_PANIC, |mut state| call(&mut state)));
        result.unwrap_or_else(|_| fail(RP_ERROR_INVALID_HANDLE))
    }));
    f64::from(result.unwrap_or(RP_ERROR_PANIC))
}

/// Runs a function that returns a text, which is kept until the next one. Zero bytes are left out.
pub(super) fn with_text(call: impl FnOnce(&mut State) -> Vec<u8>) -> *const c_char {
    let result = catch_unwind(AssertUnwindSafe(|| {
        STATE.try_with(|state| {
            let Ok(mut state) = state.try_borrow_mut() else { return c"".as_ptr() };
            let mut text = call(&mut state);
            text.retain(|byte| *byte != 0);
            state.text = CString::new(text).unwrap_or_default();
            state.text.as_ptr()
        })
    }));
    result.ok().and_then(Result::ok).unwrap_or(c"".as_ptr())
}

/// Keeps a new handle, or passes on why there is none.
pub(super) fn opened(result: i32, handle: u64) -> f64 {
    if result < 0 {
        return result.into();
    }
    with(|state| {
        state.handles.push(handle);
        0
    });
    // Exact: handles are below 2^53.
    handle as f64
}

/// The handle in a double; 0, which is never valid, for what cannot be one.
pub(super) fn handle(value: f64) -> u64 {
    if value.fract() == 0.0 { value as u64 } else { 0 }
}

/// The non-negative number in a double, without its fraction. The name is for the error.
pub(super) fn number(name: &str, value: f64) -> Result<u32, Failure> {
    // Not a number compares as false.
    if value > -1.0 && value < f64::from(u32::MAX) + 1.0 {
        return Ok(value as u32);
    }
    Err(Failure::argument(format!("{name} is {value}: use 0 to {}", u32::MAX)))
}

/// The player in a double; 0, which no player has, for what cannot be one.
pub(super) fn player(value: f64) -> u32 {
    number("player", value).unwrap_or(0)
}

/// The code of a failure of this layer, whose sentence becomes the last error.
pub(super) fn fail(code: i32) -> i32 {
    guard(|| Err(Failure::of(code)))
}

/// Receives and sends for everything that this thread has opened. Call it once per step. Returns the number of open objects.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_handle_io() -> f64 {
    with(|state| {
        for handle in &state.handles {
            match Kind::of(*handle) {
                Some(Kind::Client) => {
                    rp_client_flush(*handle);
                    rp_client_poll(*handle);
                }
                Some(Kind::Server) => {
                    rp_server_flush(*handle);
                    rp_server_poll(*handle);
                }
                Some(Kind::Announcer) => {
                    rp_announcer_poll(*handle);
                }
                // A scan works when its events are taken.
                Some(Kind::Scan) | None => {}
            }
        }
        i32::try_from(state.handles.len()).unwrap_or(i32::MAX)
    })
}

/// Takes the next event of a client, server, announcer or scan. Returns its kind: `RP_EVENT_*`, or `RP_SCAN_*` for a scan; 1 for
/// an announcer, whose events are texts for a log. 0 if there is none, for a scan -100 if there is none yet. Other negative
/// numbers are `RP_ERROR_*`.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_next_event(object: f64) -> f64 {
    /// There is nothing yet.
    const NOT_YET: i32 = -100;
    let handle = handle(object);
    with(|state| match Kind::of(handle) {
        Some(kind @ (Kind::Client | Kind::Server)) => {
            let result = state.retry_with_larger_buffer(|state| {
                let event = &raw mut state.event;
                let buffer = state.bytes.as_mut_ptr();
                let capacity = state.bytes.len();
                // SAFETY: the event and the buffer belong to the state.
                unsafe {
                    match kind {
                        Kind::Client => rp_client_next_event(handle, event, buffer, capacity),
                        _ => rp_server_next_event(handle, event, buffer, capacity),
                    }
                }
            });
            if result == 1 { state.event.kind.cast_signed() } else { result }
        }
        Some(Kind::Announcer) => {
            let result = state.retry_with_larger_buffer(|state| {
                // SAFETY: the buffer belongs to the state.
                unsafe { rp_announcer_next_event(handle, state.bytes.as_mut_ptr().cast(), state.bytes.len()) }
            });
            let length = state.bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
            state.event = rp_event { length: u32::try_from(length).unwrap_or(0), ..rp_event::default() };
            result
        }
        Some(Kind::Scan) => match state.next_record(handle) {
            0 => NOT_YET,
            1 => state.event.kind.cast_signed(),
            error => error,
        },
        None => fail(RP_ERROR_INVALID_HANDLE),
    })
}

/// Closes a client, server, announcer or scan. An announcer unregisters its server; players of a server are not told.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_close(object: f64) -> f64 {
    let handle = handle(object);
    with(|state| {
        state.handles.retain(|open| *open != handle);
        match Kind::of(handle) {
            Some(Kind::Client) => rp_client_close(handle),
            Some(Kind::Server) => rp_server_close(handle),
            Some(Kind::Announcer) => rp_announcer_close(handle),
            Some(Kind::Scan) => rp_scan_close(handle),
            None => fail(RP_ERROR_INVALID_HANDLE),
        }
    })
}

/// The sentence about the last error.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_error() -> *const c_char {
    with_text(|_| {
        let mut text = vec![0; 512];
        // SAFETY: the buffer has this length.
        let length = unsafe { rp_last_error(text.as_mut_ptr().cast(), text.len()) };
        text.truncate(length.min(text.len() - 1));
        text
    })
}

impl State {
    fn retry_with_larger_buffer(&mut self, call: impl Fn(&mut Self) -> i32) -> i32 {
        const FIRST: usize = 2048;
        const LARGEST: usize = 1 << 28;
        self.bytes.resize(self.bytes.len().max(FIRST), 0);
        loop {
            let result = call(self);
            let needed = (self.event.length as usize + 1).max(self.bytes.len() * 2);
            if result != RP_ERROR_BUFFER_TOO_SMALL || needed > LARGEST {
                return result;
            }
            self.bytes.resize(needed, 0);
        }
    }

    /// Takes the next record of a scan. Its name is the text of the event.
    fn next_record(&mut self, handle: u64) -> i32 {
        let mut record = rp_scan_record::EMPTY;
        self.event = rp_event::default();
        let mut buffer = std::mem::take(&mut self.bytes);
        let mut result;
        loop {
            buffer.resize((buffer.len() * 2).clamp(4096, 1 << 24), 0);
            // SAFETY: the record and the buffer are as large as they say.
            result = unsafe { rp_scan_next(handle, &raw mut record, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            if result != RP_ERROR_BUFFER_TOO_SMALL || buffer.len() == 1 << 24 {
                break;
            }
        }
        if result == 1 {
            let text = |text: *const c_char| {
                // SAFETY: the record points to zero-terminated texts in the buffer.
                unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
            };
            self.numbers = vec![
                ("target", i32::try_from(record.target).unwrap_or(i32::MAX)),
                ("players", record.players),
                ("max_players", record.max_players),
                ("bots", record.bots),
                ("password", record.password),
                ("ping_us", record.ping_us),
            ];
            self.texts = vec![
                ("address", text(record.address)),
                ("name", text(record.name)),
                ("game", text(record.game)),
                ("mode", text(record.mode)),
                ("map", text(record.map)),
                ("version", text(record.version)),
                ("player_names", text(record.player_names)),
                ("error", text(record.error)),
            ];
            self.event.kind = record.kind;
        }
        buffer.truncate(4096);
        self.bytes = buffer;
        result
    }
}
