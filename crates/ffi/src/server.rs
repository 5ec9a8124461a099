//! The session server.

use crate::{
    arguments::{self, SizedConfig, items, number_or},
    channels::{self, rp_channel},
    client::{RP_ENCRYPTION_DEFAULT, RP_ENCRYPTION_PLAIN, RP_ENCRYPTION_REQUIRED, connection_config, layer},
    event::{self, PendingEvent, rp_event},
    failure::{Failure, RP_ERROR_NOT_FOUND, RP_ERROR_UNKNOWN_PLAYER, guard},
    handle_table::{HandleTable, Kind},
    output,
    player_table::PlayerTable,
    server_info::{self, rp_server_info},
    stats::rp_stats,
};
use rallypoint_session::{
    ChannelIndex, EncryptionPolicy, EndpointConfig, Layer, MessageId, ONLY_CHANNEL, PlayerId, PolledServer,
    ServerEvent, ServerOptions, StaticKey,
};
use std::{collections::HashMap, ffi::c_char, mem::offset_of, time::Duration};

/// Handle of a session server.
pub type rp_server = u64;

/// Settings of a server. Set `size` to the size of the structure; a field that is zero has its default value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_server_config {
    /// Size of this structure in bytes.
    pub size: u32,
    /// One of `RP_ENCRYPTION_*`.
    pub encryption: u32,
    /// Addresses to listen on, separated by commas, at most one IPv4 and one IPv6 address; port 0 is a free port. Default
    /// "0.0.0.0:45555,[::]:45555".
    pub listen: *const c_char,
    /// The game that a login has to name, at most 127 bytes. Required.
    pub game: *const c_char,
    /// The secret key by which clients recognise this server, `RP_KEY_LENGTH` bytes. May be null.
    pub secret_key: *const u8,
    /// Maximum number of players: 1 to 255; default 64.
    pub max_players: u32,
    /// Maximum number of players from one address: 1 to 255; default 32.
    pub max_per_address: u32,
    /// As in `rp_client_config`.
    pub window: u32,
    /// As in `rp_client_config`.
    pub unordered: u32,
    /// As in `rp_client_config`.
    pub idle_timeout_ms: u32,
    /// As in `rp_client_config`.
    pub max_stream_message: u32,
    /// The channels, the same as the clients': an array of `channel_count`. Without them, all messages are reliable, and
    /// `rp_server_send` sends them.
    pub channels: *const rp_channel,
    /// Number of channels: 1 to `RP_MAX_CHANNELS`; 0: none.
    pub channel_count: u32,
    /// Whether `RP_EVENT_LOGIN_REQUEST` is raised for each player, and the game decides. It needs `channels`.
    pub decides_logins: u32,
    /// The channel of players whose client has no channels, plus 1: reliable and ordered. Default 0: such players are refused.
    pub plain_channel: u32,
    /// Not used.
    pub reserved: u32,
    /// The key of the game's account service, `RP_KEY_LENGTH` bytes: only players with a valid token may join. It needs
    /// `channels` and `secret_key`. May be null.
    pub token_key: *const u8,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers and pointers that may be null.
unsafe impl SizedConfig for rp_server_config {
    const MIN_SIZE: usize = offset_of!(Self, channels);
}

#[derive(Debug)]
struct Server {
    server: PolledServer,
    has_channels: bool,
    players: PlayerTable,
    /// The data in the tokens of players, from their login request on.
    token_data: HashMap<PlayerId, Vec<u8>>,
    pending: PendingEvent,
}

static SERVERS: HandleTable<Server> = HandleTable::new(Kind::Server);

/// Opens the sockets of a server; players can log in from then on. The handle is written to `server`. Any thread.
///
/// # Safety
/// Texts are zero-terminated; pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_bind(config: *const rp_server_config, server: *mut rp_server) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller. The result is checked before there is a handle that could not be returned.
        let options = unsafe {
            output::write(server, 0)?;
            options(&arguments::config(config)?)?
        };
        let object = Server {
            has_channels: matches!(options.endpoint.layer, Layer::Channels(_)),
            server: PolledServer::bind(options)?,
            players: PlayerTable::new(),
            token_data: HashMap::new(),
            pending: PendingEvent::default(),
        };
        let handle = SERVERS.insert(object)?;
        // SAFETY: as above.
        unsafe { output::write(server, handle) }?;
        Ok(0)
    })
}

unsafe fn options(config: &rp_server_config) -> Result<ServerOptions, Failure> {
    // SAFETY: as promised by the caller of `rp_server_bind`.
    let (game, listen, key) = unsafe {
        (
            arguments::text(config.game, "game")?,
            arguments::optional_text(config.listen)?,
            arguments::optional_array(config.secret_key),
        )
    };
    let default = EndpointConfig::for_game(game);
    let encryption = match config.encryption {
        RP_ENCRYPTION_DEFAULT => EncryptionPolicy::Either,
        RP_ENCRYPTION_PLAIN => EncryptionPolicy::Plain,
        RP_ENCRYPTION_REQUIRED => EncryptionPolicy::Encrypted,
        other => return Err(Failure::argument(format!("encryption is {other}: use RP_ENCRYPTION_*"))),
    };
    let endpoint = EndpointConfig {
        encryption,
        static_key: key.map(StaticKey::from_bytes).transpose()?,
        max_players: number_or(config.max_players, default.max_players),
        max_per_address: number_or(config.max_per_address, default.max_per_address),
        connection: connection_config(config.window, config.unordered, config.idle_timeout_ms),
        ..default
    };
    let mut options = ServerOptions::from(endpoint);
    if let Some(listen) = listen {
        let parse = |item: &str| {
            item.parse().map_err(|_| {
                Failure::argument(format!("listen: {item:?} is not an address with a port, such as 0.0.0.0:45555"))
            })
        };
        options.listen = items(listen).map(parse).collect::<Result<_, _>>()?;
    }
    // SAFETY: as above.
    let (layer, token_key) = unsafe {
        (
            layer(config.max_stream_message, config.channels, config.channel_count)?,
            channels::token_key(config.token_key),
        )
    };
    options.endpoint.layer = layer;
    let needs_channels = token_key.is_some() || config.decides_logins != 0 || config.plain_channel != 0;
    if needs_channels && !matches!(options.endpoint.layer, Layer::Channels(_)) {
        return Err(Failure::argument("token_key, decides_logins and plain_channel need channels"));
    }
    options.endpoint.decides_logins = config.decides_logins != 0;
    options.endpoint.plain_channel = config.plain_channel.checked_sub(1).map(channels::index).transpose()?;
    Ok(match token_key {
        Some(key) => options.tokens(key),
        None => options,
    })
}

/// Receives datagrams, handles timers, and sends what is due. Call it once per frame. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_server_poll(server: rp_server) -> i32 {
    guard(|| SERVERS.run(server, |object| object.server.poll()))
}

/// Waits until a datagram arrives, a timer expires, or this many milliseconds have passed, for loops without frames; then call
/// `rp_server_poll`. Blocks. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_server_wait(server: rp_server, timeout_ms: u32) -> i32 {
    guard(|| SERVERS.run(server, |object| object.server.wait(Duration::from_millis(timeout_ms.into()))))
}

/// Sends the messages passed to `rp_server_send` now and not with the next `rp_server_poll`. Call it at the end of a frame. Any
/// thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_server_flush(server: rp_server) -> i32 {
    guard(|| SERVERS.run(server, |object| object.server.flush()))
}

/// Sends a message to a player, reliably. `RP_ERROR_UNKNOWN_PLAYER`; otherwise as `rp_client_send`. Any thread, one at a time.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_send(server: rp_server, player: u32, data: *const u8, length: usize) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let message = unsafe { arguments::bytes(data, length) }?;
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            object.send(player, message).map(|()| 0)
        })
    })
}

/// Sends a message to a player on a channel. `RP_ERROR_UNKNOWN_PLAYER`; otherwise as `rp_client_send_on`. Any thread, one at a
/// time.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null; `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_send_on(
    server: rp_server,
    player: u32,
    channel: u32,
    data: *const u8,
    length: usize,
    message: *mut u64,
) -> i32 {
    guard(|| {
        let send = |channel, bytes: &[u8]| {
            SERVERS.with(server, |object| {
                let player = object.player(player)?;
                object.send_on(player, channel, bytes)
            })
        };
        // SAFETY: as promised by the caller.
        unsafe { channels::send_on(channel, data, length, message, send) }
    })
}

/// Sends a message of a caller that does not know whether the server has channels.
pub(crate) fn send_to_player(server: rp_server, player: u32, channel: ChannelIndex, message: &[u8]) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            let channel = if object.has_channels { channel } else { ONLY_CHANNEL };
            object.server.send(player, channel, message)?;
            Ok(0)
        })
    })
}

/// Sends a message on a channel to all players, which share one copy of it. Returns the number of recipients: a player whose
/// queue is full misses it. Any thread, one at a time.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_broadcast(server: rp_server, channel: u32, data: *const u8, length: usize) -> i32 {
    guard(|| {
        let channel = channels::index(channel)?;
        // SAFETY: as promised by the caller.
        let bytes = unsafe { arguments::bytes(data, length) }?;
        SERVERS.with(server, |object| object.broadcast(channel, bytes))
    })
}

/// Accepts a player after `RP_EVENT_LOGIN_REQUEST`; `RP_EVENT_CONNECTED` follows. `rp_server_disconnect` refuses it, with a
/// reason. `RP_ERROR_UNKNOWN_PLAYER` if there is no such request, or no longer. Any thread, one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn rp_server_accept(server: rp_server, player: u32) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            object.check_channels()?;
            let is_accepted = object.server.accept_login(player);
            if is_accepted { Ok(0) } else { Err(Failure::of(RP_ERROR_UNKNOWN_PLAYER)) }
        })
    })
}

/// The data that the game's account service has put into a player's token, from `RP_EVENT_LOGIN_REQUEST` on. Returns its length,
/// 0 to 64; `RP_ERROR_NOT_FOUND` if there is no token. Any thread, one at a time.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_token_data(server: rp_server, player: u32, buffer: *mut u8, capacity: usize) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            let data = object.token_data.get(&player);
            let data = data.ok_or_else(|| Failure::new(RP_ERROR_NOT_FOUND, "the player has no token"))?;
            // SAFETY: as promised by the caller.
            unsafe { output::copy(data, buffer, capacity) }?;
            Ok(data.len() as i32)
        })
    })
}

/// Takes the next event: as `rp_client_next_event`. Any thread, one at a time.
///
/// # Safety
/// `event` is null or valid, `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_next_event(
    server: rp_server,
    event: *mut rp_event,
    buffer: *mut u8,
    capacity: usize,
) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            object.fill_pending();
            // SAFETY: as promised by the caller.
            unsafe { object.pending.deliver(event, buffer, capacity) }
        })
    })
}

impl Server {
    fn player(&self, number: u32) -> Result<PlayerId, Failure> {
        self.players.player(number).ok_or_else(|| Failure::of(RP_ERROR_UNKNOWN_PLAYER))
    }

    fn check_channels(&self) -> Result<(), Failure> {
        if self.has_channels {
            return Ok(());
        }
        Err(Failure::argument("this server has no channels: set rp_server_config.channels"))
    }

    fn send(&mut self, player: PlayerId, message: &[u8]) -> Result<(), Failure> {
        if self.has_channels {
            return Err(Failure::argument("this server has channels: use rp_server_send_on"));
        }
        self.server.send(player, ONLY_CHANNEL, message)?;
        Ok(())
    }

    fn send_on(&mut self, player: PlayerId, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, Failure> {
        self.check_channels()?;
        Ok(self.server.send(player, channel, message)?)
    }

    /// Returns the number of recipients.
    fn broadcast(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<i32, Failure> {
        self.check_channels()?;
        Ok(i32::try_from(self.server.broadcast(channel, message)).unwrap_or(i32::MAX))
    }

    fn fill_pending(&mut self) {
        let Self { server, players, token_data, pending, .. } = self;
        while !pending.is_some()
            && let Some(event) = server.next_event()
        {
            match event {
                ServerEvent::Message { player, channel, bytes } => {
                    pending.set_message(players.number(player), channel, bytes);
                }
                ServerEvent::Connected(new) => {
                    let number = players.insert(new.player);
                    pending.set_text(event::RP_EVENT_CONNECTED, number, 0, &new.username);
                }
                ServerEvent::LoginRequest(request) => {
                    let number = players.insert(request.new.player);
                    token_data.extend(request.token.map(|claims| (request.new.player, claims.data)));
                    pending.set_text(event::RP_EVENT_LOGIN_REQUEST, number, 0, &request.new.username);
                }
                ServerEvent::Receipt(player, id) => pending.set_receipt(players.number(player), id),
                ServerEvent::Writable(player) => {
                    pending.set_text(event::RP_EVENT_WRITABLE, players.number(player), 0, "");
                }
                ServerEvent::Closing(player) => {
                    pending.set_text(event::RP_EVENT_CLOSING, players.number(player), 0, "");
                }
                ServerEvent::Moved(player, addr) => {
                    pending.set_text(event::RP_EVENT_MOVED, players.number(player), 0, &addr.to_string());
                }
                ServerEvent::Disconnected(player, reason) => {
                    let number = players.remove(player);
                    token_data.remove(&player);
                    let code = event::disconnect_code(&reason);
                    pending.set_text(event::RP_EVENT_DISCONNECTED, number, code, &reason.to_string());
                }
                // Events of features that this interface does not have.
                _ => {}
            }
        }
    }
}

/// Ends a player's session with a reason, which may be null; `RP_EVENT_DISCONNECTED` follows. Any thread, one at a time.
///
/// # Safety
/// `reason` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_disconnect(server: rp_server, player: u32, reason: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let reason = unsafe { arguments::optional_text(reason) }?.unwrap_or_default();
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            object.server.disconnect(player, reason);
            Ok(0)
        })
    })
}

/// Statistics of a player's connection. Any thread, one at a time.
///
/// # Safety
/// `stats` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_stats(server: rp_server, player: u32, stats: *mut rp_stats) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            let known = object.server.stats(player).zip(object.server.max_message(player));
            let (current, max_message) = known.ok_or_else(|| Failure::of(RP_ERROR_UNKNOWN_PLAYER))?;
            // SAFETY: as promised by the caller.
            unsafe { rp_stats::new(&current, max_message).write(stats) }
        })
    })
}

/// A player's address as a zero-terminated text, at most 64 bytes. Returns its length. Any thread, one at a time.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_player_address(
    server: rp_server,
    player: u32,
    buffer: *mut c_char,
    capacity: usize,
) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let player = object.player(player)?;
            let connection = object.server.connection(player);
            let addr = connection.ok_or_else(|| Failure::of(RP_ERROR_UNKNOWN_PLAYER))?.peer();
            // SAFETY: as promised by the caller.
            unsafe { output::copy_text(&addr.to_string(), buffer, capacity) }
        })
    })
}

/// The address that the server listens on, with its actual port, as a zero-terminated text; `index` is 0 or 1. Returns its
/// length. Any thread, one at a time.
///
/// # Safety
/// `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_local_address(
    server: rp_server,
    index: u32,
    buffer: *mut c_char,
    capacity: usize,
) -> i32 {
    guard(|| {
        SERVERS.with(server, |object| {
            let addrs = object.server.local_addrs();
            let addr = addrs.get(index as usize).ok_or_else(|| Failure::argument("there is no such address"))?;
            // SAFETY: as promised by the caller.
            unsafe { output::copy_text(&addr.to_string(), buffer, capacity) }
        })
    })
}

/// Sets what queries are answered with. Any thread, one at a time.
///
/// # Safety
/// `info` is null or points to as many bytes as its field `size` says; texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_server_set_info(server: rp_server, info: *const rp_server_info) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let info = unsafe { server_info::read(&arguments::config(info)?) }?;
        SERVERS.run(server, |object| object.server.set_info(&info))
    })
}

/// Frees the server, without a farewell to the players: `rp_server_disconnect` comes first. The handle is not valid any more.
/// Any thread; if another one is using the server, it is freed when that call ends.
#[unsafe(no_mangle)]
pub extern "C" fn rp_server_close(server: rp_server) -> i32 {
    guard(|| SERVERS.remove(server).map(|_| 0))
}
