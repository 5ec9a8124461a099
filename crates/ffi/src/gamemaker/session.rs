//! Sessions: connecting, hosting, messages.

use super::state::{fail, handle, number, opened, player, with, with_text};
use crate::{
    client::{rp_client_config, rp_client_connect, rp_client_disconnect, rp_client_send, rp_client_state},
    failure::{
        Failure, RP_ERROR_BUFFER_TOO_SMALL, RP_ERROR_INVALID_HANDLE, RP_ERROR_NULL_POINTER, RP_ERROR_TOO_LARGE, guard,
    },
    handle_table::Kind,
    output,
    server::{rp_server_bind, rp_server_config, rp_server_disconnect, rp_server_send},
};
use std::{
    ffi::{CStr, CString, c_char},
    ptr::null,
};

/// Maximum length of a message that is written byte by byte.
const MAX_WRITTEN: usize = 1 << 20;

/// Logs in to a server, such as "play.example.org:45555". Returns a handle or an error; `RP_EVENT_CONNECTED` or
/// `RP_EVENT_LOGIN_FAILED` follows.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_connect(server: *const c_char, username: *const c_char, game: *const c_char) -> f64 {
    let config = rp_client_config {
        size: size_of::<rp_client_config>() as u32,
        encryption: 0,
        username,
        game,
        server_key: null(),
        login_timeout_ms: 0,
        reconnect: 0,
        window: 0,
        unordered: 0,
        idle_timeout_ms: 0,
        max_stream_message: 0,
        channels: null(),
        channel_count: 0,
        token_length: 0,
        token: null(),
    };
    let mut client = 0;
    // SAFETY: texts are as the caller promises.
    let result = unsafe { rp_client_connect(server, &raw const config, &raw mut client) };
    opened(result, client)
}

/// Opens a server on this port, for this game. Returns a handle or an error.
///
/// # Safety
/// `game` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_host(port: f64, game: *const c_char, max_players: f64) -> f64 {
    let mut server = 0;
    let result = guard(|| {
        let port = number("port", port)?;
        let listen = CString::new(format!("0.0.0.0:{port},[::]:{port}")).unwrap_or_default();
        let config = rp_server_config {
            size: size_of::<rp_server_config>() as u32,
            encryption: 0,
            listen: listen.as_ptr(),
            game,
            secret_key: null(),
            max_players: number("max_players", max_players)?,
            max_per_address: 0,
            window: 0,
            unordered: 0,
            idle_timeout_ms: 0,
            max_stream_message: 0,
            channels: null(),
            channel_count: 0,
            decides_logins: 0,
            plain_channel: 0,
            reserved: 0,
            token_key: null(),
        };
        // SAFETY: texts are as the caller promises.
        Ok(unsafe { rp_server_bind(&raw const config, &raw mut server) })
    });
    opened(result, server)
}

/// One of `RP_STATE_*`, for a client.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_state(client: f64) -> f64 {
    rp_client_state(handle(client)).into()
}

/// Sends a text, to a player of a server, or to the server of a client (then `player` is 0). It leaves with the next
/// `rpgm_handle_io`.
///
/// # Safety
/// `text` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_send_text(object: f64, player: f64, text: *const c_char) -> f64 {
    if text.is_null() {
        return fail(RP_ERROR_NULL_POINTER).into();
    }
    // SAFETY: as promised by the caller.
    send(object, player, unsafe { CStr::from_ptr(text) }.to_bytes()).into()
}

/// Sends this many bytes of a buffer, whose address engines pass as a `char*`: `buffer_get_address` in GameMaker Studio.
///
/// # Safety
/// `data` is null or points to that many readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_send_buffer(object: f64, player: f64, data: *const c_char, length: f64) -> f64 {
    let call = || {
        // SAFETY: as promised by the caller.
        let bytes = unsafe { crate::arguments::bytes(data.cast(), number("length", length)? as usize) }?;
        Ok(send(object, player, bytes))
    };
    guard(call).into()
}

/// Adds a byte, 0 to 255, to the message that is being written, for engines without buffers.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_write_byte(value: f64) -> f64 {
    with(|state| {
        guard(|| {
            let byte = number("value", value)?;
            let byte = u8::try_from(byte).map_err(|_| Failure::argument(format!("value is {value}: use 0 to 255")))?;
            if state.written.len() == MAX_WRITTEN {
                return Err(Failure::of(RP_ERROR_TOO_LARGE));
            }
            state.written.push(byte);
            Ok(0)
        })
    })
}

/// Sends the message that was written, and begins a new one.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_send_written(object: f64, player: f64) -> f64 {
    with(|state| {
        let message = std::mem::take(&mut state.written);
        send(object, player, &message)
    })
}

fn send(object: f64, player: f64, message: &[u8]) -> i32 {
    let handle = handle(object);
    // SAFETY: the pointer and the length are those of a slice.
    match Kind::of(handle) {
        Some(Kind::Client) => unsafe { rp_client_send(handle, message.as_ptr(), message.len()) },
        Some(Kind::Server) => unsafe { rp_server_send(handle, self::player(player), message.as_ptr(), message.len()) },
        _ => fail(RP_ERROR_INVALID_HANDLE),
    }
}

/// Ends the session of a player, or of a client (then `player` is 0).
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_disconnect(object: f64, player: f64) -> f64 {
    let handle = handle(object);
    let result = match Kind::of(handle) {
        Some(Kind::Client) => rp_client_disconnect(handle),
        // SAFETY: the reason may be null.
        Some(Kind::Server) => unsafe { rp_server_disconnect(handle, self::player(player), null()) },
        _ => fail(RP_ERROR_INVALID_HANDLE),
    };
    result.into()
}

/// The player of the event that was taken last.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_player() -> f64 {
    let mut player = 0;
    with(|state| {
        player = state.event.player;
        0
    });
    player.into()
}

/// The reason of the event that was taken last: one of `RP_REASON_*`, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_code() -> f64 {
    with(|state| state.event.code.cast_signed())
}

/// The length of the message or text of the event that was taken last.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_length() -> f64 {
    with(|state| state.event.length.cast_signed())
}

/// The message or text of the event that was taken last, as a text.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_text() -> *const c_char {
    with_text(|state| state.bytes.get(..state.event.length as usize).unwrap_or_default().to_vec())
}

/// A byte of the message of the event that was taken last; -1 beyond its end.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_byte(index: f64) -> f64 {
    with(|state| {
        let message = state.bytes.get(..state.event.length as usize).unwrap_or_default();
        let index = number("index", index).ok().and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| message.get(index)).map_or(-1, |byte| i32::from(*byte))
    })
}

/// Copies the message of the event that was taken last into a buffer. Returns its length or an error.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_event_copy(buffer: *mut c_char, capacity: f64) -> f64 {
    with(|state| {
        let message = state.bytes.get(..state.event.length as usize).unwrap_or_default();
        guard(|| {
            if message.len() > number("capacity", capacity)? as usize {
                return Err(Failure::of(RP_ERROR_BUFFER_TOO_SMALL));
            }
            // SAFETY: as promised by the caller.
            unsafe { output::copy(message, buffer.cast(), message.len()) }?;
            Ok(state.event.length.cast_signed())
        })
    })
}
