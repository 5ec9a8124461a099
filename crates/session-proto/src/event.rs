//! The events of a session, as its two sides see them.
//!
//! The crate `rallypoint-session` hands out the same events: there is no second vocabulary above this one.

use crate::{DisconnectReason, LoginError, MessageId, TokenClaims};
use rallypoint_wire::session::{SlotIndex, Uid};
use std::{
    fmt,
    hash::{Hash, Hasher},
    net::SocketAddr,
};

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server has accepted the player, and the channels if there are any.
    Connected,
    /// A message arrived.
    ///
    /// [`Client`](crate::Client) raises it once for all messages that arrive before it is polled:
    /// [`recv`](crate::Client::recv) takes them. [`Client::next_event`](crate::Client::next_event) returns it for each message,
    /// together with the message.
    Message,
    /// There is room again after [`SendError::WouldBlock`](crate::SendError::WouldBlock).
    Writable,
    /// The server's application has received a message of a channel with receipts.
    Receipt(MessageId),
    /// The server seems to have ended the session. The datagram that announces it may be forged: either
    /// [`Disconnected`](Self::Disconnected) follows, or the session continues (S28).
    Closing,
    /// The session has ended, and all its messages are read. With [`ClientConfig::reconnect`](crate::ClientConfig::reconnect)
    /// another login follows, unless one of the two sides closed the session.
    ///
    /// It follows [`Connected`](Self::Connected), with one exception: a client with channels that is closed while the server has
    /// not accepted its login has a session that ends as well. If it is not closed, the end of such a session is reported as
    /// [`LoginFailed`](Self::LoginFailed).
    Disconnected(DisconnectReason),
    /// The login failed. With [`ClientConfig::reconnect`](crate::ClientConfig::reconnect) another one follows, if that can
    /// help: [`LoginError::is_transient`].
    LoginFailed(LoginError),
}

/// An event of a server or of one of its players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A player has logged in, and is accepted.
    Connected(NewPlayer),
    /// A message of this player arrived.
    ///
    /// [`Endpoint`](crate::Endpoint) raises it once for all messages that arrive before it is polled:
    /// [`recv`](crate::Endpoint::recv) takes them. [`Endpoint::next_event`](crate::Endpoint::next_event) returns it for each
    /// message, together with the message.
    Message(PlayerId),
    /// There is room again after [`SendError::WouldBlock`](crate::SendError::WouldBlock).
    Writable(PlayerId),
    /// A player wants to join: accept or refuse. Raised with
    /// [`EndpointConfig::decides_logins`](crate::EndpointConfig::decides_logins).
    LoginRequest(LoginRequest),
    /// The player's application has received a message of a channel with receipts.
    Receipt(PlayerId, MessageId),
    /// The player seems to have left. The datagram that announces it may be forged: either
    /// [`Disconnected`](Self::Disconnected) follows, or the session continues (S28).
    Closing(PlayerId),
    /// The player has a new address (S31).
    Moved(PlayerId, SocketAddr),
    /// The player's session has ended, and all its messages are read, unless this side ended it: then those that were not
    /// read are dropped.
    Disconnected(PlayerId, DisconnectReason),
}

/// A player who has just logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewPlayer {
    /// Identifies the player until the session ends.
    pub player: PlayerId,
    /// The player's name, without control characters. It is not authenticated, and several players may have the same name.
    pub username: String,
    /// The game that the login names.
    pub game: String,
    /// Whether the client has verified the server's static key: [`Encryption::Pinned`](crate::Encryption::Pinned).
    pub is_pinned: bool,
}

/// A player who wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginRequest {
    /// The player, its name and game.
    pub new: NewPlayer,
    /// The claims of the player's token, if the server verifies tokens.
    pub token: Option<TokenClaims>,
}

/// Identifies a player: a slot, and one of the sessions that use it over time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PlayerId {
    pub(crate) index: SlotIndex,
    pub(crate) uid: Uid,
}

impl PlayerId {
    /// The player's slot: 0 to 254.
    #[must_use]
    pub fn index(self) -> SlotIndex {
        self.index
    }
}

impl Hash for PlayerId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One number is hashed faster than two.
        state.write_u64(u64::from(self.uid.get()) << 8 | u64::from(self.index.get()));
    }
}

impl fmt::Debug for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "player {}", self.index.get())
    }
}
