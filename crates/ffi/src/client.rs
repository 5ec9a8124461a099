//! The session client.

use crate::{
    arguments::{self, SizedConfig, milliseconds_or, number_or},
    channels::{self, rp_channel},
    event::{self, PendingEvent, rp_event},
    failure::{Failure, RP_ERROR_NOT_CONNECTED, guard},
    handle_table::{HandleTable, Kind},
    output,
    stats::rp_stats,
};
use rallypoint_session::{
    ChannelIndex, ClientConfig, ClientEvent, ClientOptions, ConnectionConfig, Encryption, Layer, MessageId,
    ONLY_CHANNEL, PolledClient, PublicKey,
};
use std::{ffi::c_char, mem::offset_of, time::Duration};

/// Handle of a session client.
pub type rp_client = u64;

/// Client: against eavesdroppers. Server: plain and encrypted logins are accepted.
pub const RP_ENCRYPTION_DEFAULT: u32 = 0;
/// No encryption: every host on the path can read the messages.
pub const RP_ENCRYPTION_PLAIN: u32 = 1;
/// Only encrypted sessions.
pub const RP_ENCRYPTION_REQUIRED: u32 = 2;

/// The login is not finished, or another one follows.
pub const RP_STATE_CONNECTING: i32 = 1;
/// Messages can be sent.
pub const RP_STATE_CONNECTED: i32 = 2;
/// The client is closed for good: when the events are read, there will be no further ones.
pub const RP_STATE_CLOSED: i32 = 3;

/// Settings of a client. Set `size` to the size of the structure; a field that is zero has its default value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_client_config {
    /// Size of this structure in bytes.
    pub size: u32,
    /// One of `RP_ENCRYPTION_*`.
    pub encryption: u32,
    /// The player's name, 1 to 127 bytes. Required.
    pub username: *const c_char,
    /// The game, at most 127 bytes. Required.
    pub game: *const c_char,
    /// The server's public key, `RP_KEY_LENGTH` bytes: no other server is accepted. May be null.
    pub server_key: *const u8,
    /// Time in milliseconds after which an unanswered login fails: 500 to 60,000; default 5,000.
    pub login_timeout_ms: u32,
    /// Whether to log in again when the connection is lost, or the server is full.
    pub reconnect: u32,
    /// Maximum number of unacknowledged messages, the same on both sides: 64 to 16,384; default 4,096.
    pub window: u32,
    /// Whether messages are delivered on arrival instead of in order.
    pub unordered: u32,
    /// Time in milliseconds without a datagram after which the session ends: 3,000 to 300,000; default 10,000.
    pub idle_timeout_ms: u32,
    /// Maximum length of a message in bytes if messages may be longer than a datagram, the same on both sides; default 0: a
    /// message has to fit into a datagram, at most about 480 bytes (`rp_stats.max_message`).
    pub max_stream_message: u32,
    /// The channels, the same as the server's: an array of `channel_count`. Without them, all messages are reliable, and
    /// `rp_client_send` sends them.
    pub channels: *const rp_channel,
    /// Number of channels: 1 to `RP_MAX_CHANNELS`; 0: none.
    pub channel_count: u32,
    /// Length of `token` in bytes.
    pub token_length: u32,
    /// The token of the game's account service, if the server requires one. It needs `channels` and `server_key`.
    pub token: *const u8,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers and pointers that may be null.
unsafe impl SizedConfig for rp_client_config {
    const MIN_SIZE: usize = offset_of!(Self, channels);
}

#[derive(Debug)]
struct Client {
    client: PolledClient,
    has_channels: bool,
    pending: PendingEvent,
}

static CLIENTS: HandleTable<Client> = HandleTable::new(Kind::Client);

/// Starts to log in to a server, such as "play.example.org:45555"; `RP_EVENT_CONNECTED` or `RP_EVENT_LOGIN_FAILED` follows.
/// Blocks while a name is resolved. The handle is written to `client`. Any thread.
///
/// # Safety
/// Texts are zero-terminated; pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_client_connect(
    server: *const c_char,
    config: *const rp_client_config,
    client: *mut rp_client,
) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let (server, options) = unsafe {
            let config = arguments::config(config)?;
            (arguments::text(server, "the server")?, options(&config)?)
        };
        // SAFETY: as above. Checked before there is a handle that could not be returned.
        unsafe { output::write(client, 0) }?;
        let has_channels = matches!(options.client.layer, Layer::Channels(_));
        let client_object =
            Client { client: PolledClient::connect(server, options)?, has_channels, pending: PendingEvent::default() };
        let handle = CLIENTS.insert(client_object)?;
        // SAFETY: as above.
        unsafe { output::write(client, handle) }?;
        Ok(0)
    })
}

unsafe fn options(config: &rp_client_config) -> Result<ClientOptions, Failure> {
    // SAFETY: as promised by the caller of `rp_client_connect`.
    let (username, game, key) = unsafe {
        (
            arguments::text(config.username, "username")?,
            arguments::text(config.game, "game")?,
            arguments::optional_array(config.server_key),
        )
    };
    let default = ClientConfig::new(username, game);
    let encryption = match (config.encryption, key) {
        (RP_ENCRYPTION_DEFAULT | RP_ENCRYPTION_REQUIRED, Some(key)) => Encryption::Pinned(PublicKey::new(key)),
        (RP_ENCRYPTION_DEFAULT | RP_ENCRYPTION_REQUIRED, None) => Encryption::Encrypted,
        (RP_ENCRYPTION_PLAIN, None) => Encryption::Plain,
        (RP_ENCRYPTION_PLAIN, Some(_)) => return Err(Failure::argument("a server key needs encryption")),
        (other, _) => return Err(Failure::argument(format!("encryption is {other}: use RP_ENCRYPTION_*"))),
    };
    let client = ClientConfig {
        encryption,
        login_timeout: milliseconds_or(config.login_timeout_ms, default.login_timeout),
        reconnect: config.reconnect != 0,
        connection: connection_config(config.window, config.unordered, config.idle_timeout_ms),
        ..default
    };
    let mut options = ClientOptions::from(client);
    // SAFETY: as above.
    (options.client.layer, options.client.token) = unsafe {
        (
            layer(config.max_stream_message, config.channels, config.channel_count)?,
            channels::token(config.token, config.token_length)?,
        )
    };
    if options.client.token.is_some() && !matches!(options.client.layer, Layer::Channels(_)) {
        return Err(Failure::argument("a token needs channels"));
    }
    Ok(options)
}

/// What sessions carry.
///
/// # Safety
/// `channels` points to `channel_count` channels, or is null.
pub(crate) unsafe fn layer(
    max_stream_message: u32,
    channels: *const rp_channel,
    channel_count: u32,
) -> Result<Layer, Failure> {
    // SAFETY: as promised by the caller.
    let table = unsafe { channels::table(channels, channel_count) }?;
    match (table, max_stream_message) {
        (None, 0) => Ok(Layer::Messages),
        (None, max_message) => Ok(Layer::Stream { max_message: max_message as usize, is_named: true }),
        (Some(table), 0) => Ok(Layer::Channels(table)),
        (Some(_), _) => {
            Err(Failure::argument("a session has either a stream or channels, whose messages may be long as well"))
        }
    }
}

pub(crate) fn connection_config(window: u32, unordered: u32, idle_timeout_ms: u32) -> ConnectionConfig {
    let default = ConnectionConfig::default();
    let idle_timeout = milliseconds_or(idle_timeout_ms, default.idle_timeout);
    ConnectionConfig {
        window: number_or(window, default.window),
        ordered: unordered == 0,
        idle_timeout,
        keepalive: default.keepalive.min(idle_timeout / 3),
        ..default
    }
}

/// Receives datagrams, handles timers, and sends what is due. Call it once per frame. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_poll(client: rp_client) -> i32 {
    guard(|| CLIENTS.run(client, |object| object.client.poll()))
}

/// Waits until a datagram arrives, a timer expires, or this many milliseconds have passed, for loops without frames; then call
/// `rp_client_poll`. Blocks. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_wait(client: rp_client, timeout_ms: u32) -> i32 {
    guard(|| CLIENTS.run(client, |object| object.client.wait(Duration::from_millis(timeout_ms.into()))))
}

/// Sends the messages passed to `rp_client_send` now and not with the next `rp_client_poll`. Call it at the end of a frame. Any
/// thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_flush(client: rp_client) -> i32 {
    guard(|| CLIENTS.run(client, |object| object.client.flush()))
}

/// Sends a message, reliably. `RP_ERROR_WOULD_BLOCK` if the window is full, `RP_ERROR_TOO_LARGE`, `RP_ERROR_NOT_CONNECTED`. Any
/// thread, one at a time.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_client_send(client: rp_client, data: *const u8, length: usize) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let message = unsafe { arguments::bytes(data, length) }?;
        CLIENTS.with(client, |object| object.send(message).map(|()| 0))
    })
}

/// Sends a message on a channel. Its number, by which `RP_EVENT_RECEIPT` names it, is written to `message`, which may be null.
/// `RP_ERROR_WOULD_BLOCK` if the queue of the channel is full, `RP_ERROR_TOO_LARGE`, `RP_ERROR_NOT_CONNECTED`. Any thread, one at
/// a time.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null; `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_client_send_on(
    client: rp_client,
    channel: u32,
    data: *const u8,
    length: usize,
    message: *mut u64,
) -> i32 {
    guard(|| {
        let send = |channel, bytes: &[u8]| CLIENTS.with(client, |object| object.send_on(channel, bytes));
        // SAFETY: as promised by the caller.
        unsafe { channels::send_on(channel, data, length, message, send) }
    })
}

/// Sends a message of a caller that does not know whether the client has channels.
pub(crate) fn send_to_server(client: rp_client, channel: ChannelIndex, message: &[u8]) -> i32 {
    guard(|| {
        CLIENTS.with(client, |object| {
            let channel = if object.has_channels { channel } else { ONLY_CHANNEL };
            object.client.send(channel, message)?;
            Ok(0)
        })
    })
}

/// Takes the next event. Returns 1 if there is one, 0 if not. Its message or text is copied into `buffer`, with a zero byte
/// behind it if there is room. `RP_ERROR_BUFFER_TOO_SMALL`: `event->length` says how much is needed, and the event is kept. Any
/// thread, one at a time.
///
/// # Safety
/// `event` is null or valid, `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_client_next_event(
    client: rp_client,
    event: *mut rp_event,
    buffer: *mut u8,
    capacity: usize,
) -> i32 {
    guard(|| {
        CLIENTS.with(client, |object| {
            object.fill_pending();
            // SAFETY: as promised by the caller.
            unsafe { object.pending.deliver(event, buffer, capacity) }
        })
    })
}

impl Client {
    fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        if self.has_channels {
            return Err(Failure::argument("this client has channels: use rp_client_send_on"));
        }
        self.client.send(ONLY_CHANNEL, message)?;
        Ok(())
    }

    fn send_on(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, Failure> {
        if !self.has_channels {
            return Err(Failure::argument("this client has no channels: use rp_client_send"));
        }
        Ok(self.client.send(channel, message)?)
    }

    fn fill_pending(&mut self) {
        let Self { client, pending, .. } = self;
        while !pending.is_some()
            && let Some(event) = client.next_event()
        {
            match event {
                ClientEvent::Message { channel, bytes } => pending.set_message(0, channel, bytes),
                ClientEvent::Connected => pending.set_text(event::RP_EVENT_CONNECTED, 0, 0, ""),
                ClientEvent::Writable => pending.set_text(event::RP_EVENT_WRITABLE, 0, 0, ""),
                ClientEvent::Closing => pending.set_text(event::RP_EVENT_CLOSING, 0, 0, ""),
                ClientEvent::Disconnected(reason) => {
                    let code = event::disconnect_code(&reason);
                    pending.set_text(event::RP_EVENT_DISCONNECTED, 0, code, &reason.to_string());
                }
                ClientEvent::LoginFailed(error) => {
                    let code = event::login_code(&error);
                    pending.set_text(event::RP_EVENT_LOGIN_FAILED, 0, code, &error.to_string());
                }
                ClientEvent::Receipt(id) => pending.set_receipt(0, id),
                // Events of features that this interface does not have.
                _ => {}
            }
        }
    }
}

/// One of `RP_STATE_*`. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_state(client: rp_client) -> i32 {
    guard(|| {
        CLIENTS.with(client, |object| {
            Ok(match &object.client {
                client if client.is_connected() => RP_STATE_CONNECTED,
                client if client.is_closed() => RP_STATE_CLOSED,
                _ => RP_STATE_CONNECTING,
            })
        })
    })
}

/// 1 if the server has acknowledged every message that was sent, 0 if not. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_is_delivered(client: rp_client) -> i32 {
    guard(|| CLIENTS.with(client, |object| Ok(object.client.is_delivered().into())))
}

/// Statistics of the connection. `RP_ERROR_NOT_CONNECTED` if there is none. Any thread, one at a time.
///
/// # Safety
/// `stats` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_client_stats(client: rp_client, stats: *mut rp_stats) -> i32 {
    guard(|| {
        CLIENTS.with(client, |Client { client, .. }| {
            let known = client.stats().zip(client.max_message());
            let (current, max_message) = known.ok_or_else(|| Failure::of(RP_ERROR_NOT_CONNECTED))?;
            // SAFETY: as promised by the caller.
            unsafe { rp_stats::new(&current, max_message).write(stats) }
        })
    })
}

/// Ends the session: the messages that are left are delivered, then the server is told. Call `rp_client_poll` until
/// `rp_client_state` is `RP_STATE_CLOSED`: it takes a moment. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_disconnect(client: rp_client) -> i32 {
    guard(|| CLIENTS.run(client, |object| object.client.close()))
}

/// Frees the client. If its session has not ended, the server is told, and messages that are left are lost:
/// `rp_client_disconnect` comes first. The handle is not valid any more.
/// Any thread; if another one is using the client, it is freed when that call ends.
#[unsafe(no_mangle)]
pub extern "C" fn rp_client_close(client: rp_client) -> i32 {
    guard(|| CLIENTS.remove(client).map(|_| 0))
}
