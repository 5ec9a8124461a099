//! Channels, and the tokens with which players may join.

use crate::{
    arguments::{self, SizedConfig, milliseconds_or, number_or},
    failure::{Failure, RP_ERROR_NULL_POINTER, guard},
    key::RP_KEY_LENGTH,
    output,
};
use rallypoint_session::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ConnectToken, MessageId, PublicKey, TokenIssuer, TokenKey,
};
use std::ffi::c_char;

/// Every message arrives, in order.
pub const RP_CHANNEL_RELIABLE_ORDERED: u32 = 0;
/// Every message arrives, as soon as it can.
pub const RP_CHANNEL_RELIABLE_UNORDERED: u32 = 1;
/// Only the newest message counts: an older one that is late is dropped.
pub const RP_CHANNEL_SEQUENCED: u32 = 2;
/// A message that is older than `max_age_ms` is dropped.
pub const RP_CHANNEL_EXPIRING: u32 = 3;

/// Maximum number of channels.
pub const RP_MAX_CHANNELS: usize = 32;
/// Maximum length of a connect token in bytes.
pub const RP_MAX_TOKEN: usize = 138;

/// A channel. Its number is its position in the array. Mode, sizes and receipts have to be the same on both sides; the other
/// fields are settings of the side that sends. Set `size` to the size of the structure, in every element of the array; a field
/// that is zero has its default value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_channel {
    /// Size of this structure in bytes.
    pub size: u32,
    /// One of `RP_CHANNEL_*`.
    pub mode: u32,
    /// Maximum length in bytes of a message to the server: up to 16,777,215 in a reliable channel, otherwise 65,536. 0: there
    /// are no messages in this direction.
    pub max_to_server: u32,
    /// Maximum length in bytes of a message to a client, with the limits of `max_to_server`.
    pub max_to_client: u32,
    /// Channels with a lower number are sent first, those with the same number take turns: 1 to 256; default 1 for sequenced and
    /// expiring channels, and 2 for reliable ones.
    pub priority: u32,
    /// Time in milliseconds for which a message of an expiring channel is of use: 1 to 60,000; default 250.
    pub max_age_ms: u32,
    /// Maximum rate in bytes per second: at least 1,000; default 0: unlimited.
    pub rate: u32,
    /// Number of bytes that may wait to be sent to a peer: at least 1,000; default 1,048,576.
    pub queue: u32,
    /// Whether `RP_EVENT_RECEIPT` follows when the other side has read a message. Only in reliable channels.
    pub receipts: u32,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers.
unsafe impl SizedConfig for rp_channel {
    const MIN_SIZE: usize = size_of::<Self>();
}

/// The table of channels, or `None` if there are none.
///
/// # Safety
/// `channels` is null or points to `count` structures, all of the size that the first one says.
pub(crate) unsafe fn table(channels: *const rp_channel, count: u32) -> Result<Option<ChannelTable>, Failure> {
    if count == 0 {
        return Ok(None);
    }
    if channels.is_null() {
        return Err(Failure::new(RP_ERROR_NULL_POINTER, "channels is null"));
    }
    if count as usize > RP_MAX_CHANNELS {
        return Err(Failure::argument(format!("channel_count is {count}: use at most {RP_MAX_CHANNELS}")));
    }
    // SAFETY: the first structure begins with its size, which is that of all.
    let stride = unsafe { channels.cast::<u32>().read_unaligned() } as usize;
    let read = |position: usize| {
        // SAFETY: as promised by the caller: `stride` bytes are read of each.
        unsafe {
            let element = channels.cast::<u8>().add(position * stride).cast::<rp_channel>();
            if element.cast::<u32>().read_unaligned() as usize != stride {
                return Err(Failure::argument(format!("channel {position} has another size than channel 0")));
            }
            channel(&arguments::config(element)?, position)
        }
    };
    let channels = (0..count as usize).map(read).collect::<Result<Vec<_>, _>>()?;
    ChannelTable::new(channels).map(Some).map_err(|error| Failure::argument(error.to_string()))
}

fn channel(raw: &rp_channel, position: usize) -> Result<Channel, Failure> {
    let mode = match raw.mode {
        RP_CHANNEL_RELIABLE_ORDERED => ChannelMode::ReliableOrdered,
        RP_CHANNEL_RELIABLE_UNORDERED => ChannelMode::ReliableUnordered,
        RP_CHANNEL_SEQUENCED => ChannelMode::Sequenced,
        RP_CHANNEL_EXPIRING => ChannelMode::Expiring,
        other => return Err(Failure::argument(format!("channel {position}: mode is {other}: use RP_CHANNEL_*"))),
    };
    let default = Channel::new(mode, 0);
    let priority = match raw.priority {
        0 => default.priority,
        1..=256 => (raw.priority - 1) as u8,
        other => return Err(Failure::argument(format!("channel {position}: priority is {other}: use 1 to 256"))),
    };
    Ok(Channel {
        max_to_server: raw.max_to_server as usize,
        max_to_client: raw.max_to_client as usize,
        priority,
        max_age: milliseconds_or(raw.max_age_ms, default.max_age),
        rate: (raw.rate != 0).then_some(raw.rate),
        queue: number_or(raw.queue, default.queue),
        receipts: raw.receipts != 0,
        ..default
    })
}

/// The number of a channel as a caller passes it.
pub(crate) fn index(channel: u32) -> Result<ChannelIndex, Failure> {
    u8::try_from(channel)
        .ok()
        .and_then(ChannelIndex::new)
        .ok_or_else(|| Failure::argument(format!("channel is {channel}: use 0 to {}", RP_MAX_CHANNELS - 1)))
}

/// Sends a message on a channel with `send`, and writes its number to `message`.
///
/// # Safety
/// `data` points to `length` readable bytes, unless it is null; `message` is null or valid.
pub(crate) unsafe fn send_on(
    channel: u32,
    data: *const u8,
    length: usize,
    message: *mut u64,
    send: impl FnOnce(ChannelIndex, &[u8]) -> Result<MessageId, Failure>,
) -> Result<i32, Failure> {
    let channel = index(channel)?;
    // SAFETY: as promised by the caller.
    let bytes = unsafe { arguments::bytes(data, length) }?;
    let id = send(channel, bytes)?;
    // SAFETY: as promised by the caller.
    unsafe { output::write_optional(message, id.number) };
    Ok(0)
}

/// A token, or `None` if its length is 0.
///
/// # Safety
/// `token` is null or points to `length` readable bytes.
pub(crate) unsafe fn token(token: *const u8, length: u32) -> Result<Option<ConnectToken>, Failure> {
    // SAFETY: as promised by the caller.
    match unsafe { arguments::bytes(token, length as usize) }? {
        [] => Ok(None),
        bytes => Ok(Some(ConnectToken::from_bytes(bytes)?)),
    }
}

/// The key of an account service, or `None` for a null pointer.
///
/// # Safety
/// `key` is null or points to 32 readable bytes.
pub(crate) unsafe fn token_key(key: *const u8) -> Option<TokenKey> {
    // SAFETY: as promised by the caller.
    unsafe { arguments::optional_array(key) }.map(TokenKey::new)
}

unsafe fn issuer(secret_key: *const u8) -> Result<TokenIssuer, Failure> {
    // SAFETY: as promised by the caller.
    let seed = unsafe { arguments::optional_array::<RP_KEY_LENGTH>(secret_key) };
    Ok(TokenIssuer::from_seed(seed.ok_or_else(|| Failure::of(RP_ERROR_NULL_POINTER))?)?)
}

/// The public half of the secret key of an account service, with which servers verify its tokens (`rp_server_config.token_key`).
/// The secret key is any `RP_KEY_LENGTH` random bytes, such as those of `rp_generate_key`. Any thread.
///
/// # Safety
/// `secret_key` is null or points to 32 readable bytes, `token_key` is null or points to 32 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_token_key(secret_key: *const u8, token_key: *mut u8) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        unsafe { output::write(token_key.cast::<[u8; RP_KEY_LENGTH]>(), *issuer(secret_key)?.public().as_bytes()) }?;
        Ok(0)
    })
}

/// Signs a token with which `username` may log in to the server with this public key until `expires`, in seconds since 1970; for
/// an account service. `data` is for the server, at most 64 bytes; anyone who has the token can read it. Returns the length of
/// the token, at most `RP_MAX_TOKEN`. Any thread.
///
/// # Safety
/// `secret_key` and `server_key` are null or point to 32 readable bytes, `username` is null or zero-terminated, `data` points to
/// `length` readable bytes unless it is null, `buffer` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rp_token_issue(
    secret_key: *const u8,
    server_key: *const u8,
    username: *const c_char,
    expires: u64,
    data: *const u8,
    length: usize,
    buffer: *mut u8,
    capacity: usize,
) -> i32 {
    guard(|| {
        // SAFETY: as promised by the caller.
        let (issuer, server, username, data) = unsafe {
            (
                issuer(secret_key)?,
                arguments::optional_array(server_key).ok_or_else(|| Failure::of(RP_ERROR_NULL_POINTER))?,
                arguments::text(username, "username")?,
                arguments::bytes(data, length)?,
            )
        };
        let token = issuer.issue(&PublicKey::new(server), username, expires, data)?;
        // SAFETY: as promised by the caller.
        unsafe { output::copy(token.as_bytes(), buffer, capacity) }?;
        Ok(token.as_bytes().len() as i32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: rp_channel = rp_channel {
        size: size_of::<rp_channel>() as u32,
        mode: RP_CHANNEL_SEQUENCED,
        max_to_server: 100,
        max_to_client: 0,
        priority: 0,
        max_age_ms: 0,
        rate: 0,
        queue: 0,
        receipts: 0,
    };

    fn read(channels: &[rp_channel]) -> Result<Vec<Channel>, String> {
        // SAFETY: the array has this length.
        let table = unsafe { table(channels.as_ptr(), channels.len() as u32) };
        table.map(|table| table.unwrap().iter().map(|(_, channel)| *channel).collect()).map_err(|f| f.text.into_owned())
    }

    #[test]
    fn fields_that_are_zero_have_the_defaults_of_the_mode() {
        let reliable = rp_channel { mode: RP_CHANNEL_RELIABLE_ORDERED, priority: 256, rate: 5_000, ..CHANNEL };
        let channels = read(&[CHANNEL, reliable]).unwrap();
        let default = Channel::new(ChannelMode::Sequenced, 100);
        assert_eq!(channels[0], Channel { max_to_client: 0, ..default });
        assert_eq!((channels[1].priority, channels[1].rate), (255, Some(5_000)));
    }

    #[test]
    fn wrong_tables_are_refused_with_the_channel() {
        let wrong = [
            (rp_channel { mode: 4, ..CHANNEL }, "channel 1: mode is 4: use RP_CHANNEL_*"),
            (rp_channel { priority: 257, ..CHANNEL }, "channel 1: priority is 257: use 1 to 256"),
            (rp_channel { size: 40, ..CHANNEL }, "channel 1 has another size than channel 0"),
            (rp_channel { receipts: 1, ..CHANNEL }, "channel 1: only reliable channels have receipts"),
        ];
        for (channel, text) in wrong {
            assert_eq!(read(&[CHANNEL, channel]).unwrap_err(), text);
        }
        assert_eq!(read(&[CHANNEL; 33]).unwrap_err(), "channel_count is 33: use at most 32");
        // SAFETY: null is allowed.
        let null = unsafe { table(std::ptr::null(), 1) };
        assert_eq!(null.unwrap_err().code, RP_ERROR_NULL_POINTER);
        assert_eq!(index(32).unwrap_err().text, "channel is 32: use 0 to 31");
    }
}
