//! Events of clients and servers.

use crate::{
    failure::{Failure, RP_ERROR_NULL_POINTER},
    output,
};
use rallypoint_session::{ChannelIndex, DisconnectReason, LoginError, MessageId};

/// Client: the login succeeded. Server: a player has logged in; the buffer has the player's name.
pub const RP_EVENT_CONNECTED: u32 = 1;
/// A message: the buffer has its bytes, and `code` is its channel.
pub const RP_EVENT_MESSAGE: u32 = 2;
/// There is room again after `RP_ERROR_WOULD_BLOCK`.
pub const RP_EVENT_WRITABLE: u32 = 3;
/// The other side seems to have ended the session: `RP_EVENT_DISCONNECTED` follows, or the session continues.
pub const RP_EVENT_CLOSING: u32 = 4;
/// The session has ended: `code` and the text in the buffer say why. The text may come from the network.
pub const RP_EVENT_DISCONNECTED: u32 = 5;
/// Client: the login failed: `code` and the text in the buffer say why. The text may come from the network.
pub const RP_EVENT_LOGIN_FAILED: u32 = 6;
/// Server: a player has a new address, which the buffer has as a text.
pub const RP_EVENT_MOVED: u32 = 7;
/// Server with `rp_server_config.decides_logins`: a player wants to join; the buffer has the player's name. Call
/// `rp_server_accept`, or `rp_server_disconnect` with a reason.
pub const RP_EVENT_LOGIN_REQUEST: u32 = 8;
/// The other side has read a message of a channel with receipts: `code` is the channel, and the buffer has the number that
/// `rp_client_send_on` or `rp_server_send_on` has returned, a `uint64_t` of 8 bytes.
pub const RP_EVENT_RECEIPT: u32 = 9;

/// This side closed the session.
pub const RP_REASON_CLOSED: u32 = 1;
/// The other side closed the session.
pub const RP_REASON_CLOSED_BY_PEER: u32 = 2;
/// Nothing was received, or no answer to a login.
pub const RP_REASON_TIMED_OUT: u32 = 3;
/// The same client has logged in again.
pub const RP_REASON_REPLACED: u32 = 4;
/// The server refused the login.
pub const RP_REASON_REFUSED: u32 = 5;
/// Another reason: the text names it.
pub const RP_REASON_OTHER: u32 = 6;

/// Something that happened to a client or a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct rp_event {
    /// One of `RP_EVENT_*`.
    pub kind: u32,
    /// Server: the player. Client: 0.
    pub player: u32,
    /// Length of the message or the text in bytes.
    pub length: u32,
    /// One of `RP_REASON_*` if the event has a reason; the channel of a message or a receipt; otherwise 0.
    pub code: u32,
}

/// An event that the caller has not taken, with its message or text.
#[derive(Debug, Default)]
pub(crate) struct PendingEvent {
    event: Option<rp_event>,
    /// The bytes of the message or the text.
    bytes: Vec<u8>,
}

impl PendingEvent {
    pub(crate) fn is_some(&self) -> bool {
        self.event.is_some()
    }

    /// A message.
    #[inline]
    pub(crate) fn set_message(&mut self, player: u32, channel: ChannelIndex, bytes: &[u8]) {
        self.set_bytes(bytes);
        self.set(RP_EVENT_MESSAGE, player, channel.get().into());
    }

    /// The receipt of a message.
    pub(crate) fn set_receipt(&mut self, player: u32, id: MessageId) {
        self.set_bytes(&id.number.to_ne_bytes());
        self.set(RP_EVENT_RECEIPT, player, id.channel.get().into());
    }

    /// An event with a text, which may be empty.
    pub(crate) fn set_text(&mut self, kind: u32, player: u32, code: u32, text: &str) {
        self.set_bytes(text.as_bytes());
        self.set(kind, player, code);
    }

    fn set_bytes(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn set(&mut self, kind: u32, player: u32, code: u32) {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.event = Some(rp_event { kind, player, length, code });
    }

    /// Hands the event to the caller, or keeps it if the buffer is too small; its length is written in both cases.
    ///
    /// # Safety
    /// `out` is null or points to an event, `buffer` is null or points to `capacity` writable bytes.
    #[inline]
    pub(crate) unsafe fn deliver(
        &mut self,
        out: *mut rp_event,
        buffer: *mut u8,
        capacity: usize,
    ) -> Result<i32, Failure> {
        let Some(event) = self.event else { return Ok(0) };
        if out.is_null() {
            return Err(Failure::new(RP_ERROR_NULL_POINTER, "the event is null"));
        }
        // SAFETY: as promised by the caller.
        unsafe {
            output::write(out, event)?;
            output::copy(&self.bytes, buffer, capacity)?;
        }
        self.event = None;
        Ok(1)
    }
}

pub(crate) fn disconnect_code(reason: &DisconnectReason) -> u32 {
    match reason {
        DisconnectReason::Closed => RP_REASON_CLOSED,
        DisconnectReason::ClosedByPeer(_) => RP_REASON_CLOSED_BY_PEER,
        DisconnectReason::TimedOut => RP_REASON_TIMED_OUT,
        DisconnectReason::Replaced => RP_REASON_REPLACED,
        _ => RP_REASON_OTHER,
    }
}

pub(crate) fn login_code(error: &LoginError) -> u32 {
    match error {
        LoginError::TimedOut => RP_REASON_TIMED_OUT,
        LoginError::Refused(_) => RP_REASON_REFUSED,
        _ => RP_REASON_OTHER,
    }
}
