//! Sessions: connecting, hosting, messages.

use super::state::{fail, handle, number, opened, player, with, with_text};
use crate::{
    arguments::{self, SizedConfig},
    channels::{
        self, RP_CHANNEL_EXPIRING, RP_CHANNEL_RELIABLE_ORDERED, RP_CHANNEL_RELIABLE_UNORDERED, RP_CHANNEL_SEQUENCED,
        rp_channel,
    },
    client::{self, rp_client_config, rp_client_connect, rp_client_disconnect, rp_client_state},
    event::RP_EVENT_MESSAGE,
    failure::{
        Failure, RP_ERROR_BUFFER_TOO_SMALL, RP_ERROR_INVALID_HANDLE, RP_ERROR_NULL_POINTER, RP_ERROR_TOO_LARGE, guard,
    },
    handle_table::Kind,
    output,
    server::{self, rp_server_bind, rp_server_config, rp_server_disconnect},
};
use rallypoint_session::ChannelIndex;
use std::{
    ffi::{CStr, CString, c_char},
    ptr::null,
};

/// Maximum length in bytes of a message in a channel: the largest that every mode allows.
const MAX_IN_CHANNEL: u32 = 65_536;

/// Maximum length of a message that is written byte by byte.
const MAX_WRITTEN: usize = 1 << 20;

/// Logs in to a server, such as "play.example.org:45555". Returns a handle or an error; `RP_EVENT_CONNECTED` or
/// `RP_EVENT_LOGIN_FAILED` follows.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_connect(server: *const c_char, username: *const c_char, game: *const c_char) -> f64 {
    // SAFETY: texts are as the caller promises.
    unsafe { connect(server, username, game, &[]) }
}

/// Logs in to a server with these channels: as `rpgm_connect`. `channels` is the same text as the server's, see
/// `rpgm_host_channels`.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_connect_channels(
    server: *const c_char,
    username: *const c_char,
    game: *const c_char,
    channels: *const c_char,
) -> f64 {
    // SAFETY: texts are as the caller promises.
    with_channels(channels, |channels| unsafe { connect(server, username, game, channels) })
}

unsafe fn connect(server: *const c_char, username: *const c_char, game: *const c_char, channels: &[rp_channel]) -> f64 {
    let config = rp_client_config {
        username,
        game,
        channels: channels.as_ptr(),
        channel_count: channels.len() as u32,
        ..rp_client_config::zeroed()
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
    // SAFETY: the text is as the caller promises.
    unsafe { host(port, game, max_players, &[]) }
}

/// Opens a server with channels: as `rpgm_host`. `channels` names the mode of each, separated by commas: "reliable", "unordered",
/// "sequenced" or "expiring". A channel's number is its position, from 0. Messages have up to 65,536 bytes.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_host_channels(
    port: f64,
    game: *const c_char,
    max_players: f64,
    channels: *const c_char,
) -> f64 {
    // SAFETY: texts are as the caller promises.
    with_channels(channels, |channels| unsafe { host(port, game, max_players, channels) })
}

unsafe fn host(port: f64, game: *const c_char, max_players: f64, channels: &[rp_channel]) -> f64 {
    let mut server = 0;
    let result = guard(|| {
        let port = number("port", port)?;
        let listen = CString::new(format!("0.0.0.0:{port},[::]:{port}")).unwrap_or_default();
        let config = rp_server_config {
            listen: listen.as_ptr(),
            game,
            max_players: number("max_players", max_players)?,
            channels: channels.as_ptr(),
            channel_count: channels.len() as u32,
            ..rp_server_config::zeroed()
        };
        // SAFETY: texts are as the caller promises.
        Ok(unsafe { rp_server_bind(&raw const config, &raw mut server) })
    });
    opened(result, server)
}

/// Opens something with the channels that a text describes, or returns what is wrong with that.
fn with_channels(text: *const c_char, open: impl FnOnce(&[rp_channel]) -> f64) -> f64 {
    let mut channels = Vec::new();
    let result = guard(|| {
        // SAFETY: as promised by the caller of the function.
        channels = parse_channels(unsafe { arguments::text(text, "channels") }?)?;
        Ok(0)
    });
    if result < 0 { result.into() } else { open(&channels) }
}

fn parse_channels(text: &str) -> Result<Vec<rp_channel>, Failure> {
    let channel = |(position, mode)| {
        let mode = match mode {
            "reliable" => RP_CHANNEL_RELIABLE_ORDERED,
            "unordered" => RP_CHANNEL_RELIABLE_UNORDERED,
            "sequenced" => RP_CHANNEL_SEQUENCED,
            "expiring" => RP_CHANNEL_EXPIRING,
            other => {
                let names = "reliable, unordered, sequenced or expiring";
                return Err(Failure::argument(format!("channel {position} is {other:?}: use {names}")));
            }
        };
        Ok(rp_channel { mode, max_to_server: MAX_IN_CHANNEL, max_to_client: MAX_IN_CHANNEL, ..rp_channel::zeroed() })
    };
    let channels = arguments::items(text).enumerate().map(channel).collect::<Result<Vec<_>, _>>()?;
    if channels.is_empty() { Err(Failure::argument("channels is empty: name the mode of each")) } else { Ok(channels) }
}

/// Selects the channel on which this thread sends from now on, 0 at first. Objects without channels do not use it.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_set_channel(channel: f64) -> f64 {
    with(|state| {
        guard(|| {
            state.channel = channels::index(number("channel", channel)?)?;
            Ok(0)
        })
    })
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
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    with(|state| send(state.channel, object, player, bytes))
}

/// Sends this many bytes of a buffer, whose address engines pass as a `char*`: `buffer_get_address` in GameMaker Studio.
///
/// # Safety
/// `data` is null or points to that many readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_send_buffer(object: f64, player: f64, data: *const c_char, length: f64) -> f64 {
    with(|state| {
        guard(|| {
            // SAFETY: as promised by the caller.
            let bytes = unsafe { arguments::bytes(data.cast(), number("length", length)? as usize) }?;
            Ok(send(state.channel, object, player, bytes))
        })
    })
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
        send(state.channel, object, player, &message)
    })
}

fn send(channel: ChannelIndex, object: f64, player: f64, message: &[u8]) -> i32 {
    let handle = handle(object);
    match Kind::of(handle) {
        Some(Kind::Client) => client::send_to_server(handle, channel, message),
        Some(Kind::Server) => server::send_to_player(handle, self::player(player), channel, message),
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

/// The channel of the message that was taken last; 0 if the event is no message, or the session has no channels.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_event_channel() -> f64 {
    with(|state| if state.event.kind == RP_EVENT_MESSAGE { state.event.code.cast_signed() } else { 0 })
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
