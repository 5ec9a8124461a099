//! The events of servers and clients, which lend their messages.

use rallypoint_session_proto::{
    ChannelIndex, ClientEvent as ClientNotice, DisconnectReason, LoginError, LoginRequest, MessageId, NewPlayer,
    PlayerId, ServerEvent as ServerNotice,
};
use std::net::SocketAddr;

/// The channel of sessions that have no others: those of messages, and of a stream.
pub const ONLY_CHANNEL: ChannelIndex = ChannelIndex::new(0).unwrap();

/// An event of a server or of one of its players.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent<'a> {
    /// A player has logged in.
    Connected(NewPlayer),
    /// A message arrived. Its bytes are lent until the next call of the server, or until the buffer is used again that was passed
    /// to an async server.
    Message {
        /// The player who has sent it.
        player: PlayerId,
        /// Its channel: [`ONLY_CHANNEL`] in sessions without channels.
        channel: ChannelIndex,
        /// The message.
        bytes: &'a [u8],
    },
    /// There is room again after [`SendError::WouldBlock`](crate::SendError::WouldBlock).
    Writable(PlayerId),
    /// A player wants to join: accept or refuse. Only a server that decides on logins
    /// ([`ServerOptions::decides_logins`](crate::ServerOptions::decides_logins)) raises it.
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

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// The server has accepted the player, and the channels if there are any.
    Connected,
    /// A message arrived. Its bytes are lent until the next call of the client, or until the buffer is used again that was passed
    /// to an async client.
    Message {
        /// Its channel: [`ONLY_CHANNEL`] in sessions without channels.
        channel: ChannelIndex,
        /// The message.
        bytes: &'a [u8],
    },
    /// There is room again after [`SendError::WouldBlock`](crate::SendError::WouldBlock).
    Writable,
    /// The server's application has received a message of a channel with receipts.
    Receipt(MessageId),
    /// The server seems to have ended the session. The datagram that announces it may be forged: either
    /// [`Disconnected`](Self::Disconnected) follows, or the session continues (S28).
    Closing,
    /// The session has ended, and all its messages are read. With [`ClientConfig::reconnect`](crate::ClientConfig::reconnect)
    /// another login follows, unless one of the two sides closed the session.
    Disconnected(DisconnectReason),
    /// The login failed. With [`ClientConfig::reconnect`](crate::ClientConfig::reconnect) another one follows, if that can
    /// help: [`LoginError::is_transient`].
    LoginFailed(LoginError),
}

/// The next event of a server: a message is in a buffer of the caller.
pub(crate) enum ServerNext {
    Message(PlayerId, ChannelIndex),
    Event(ServerEvent<'static>),
}

/// The next event of a client: a message is in a buffer of the caller.
pub(crate) enum ClientNext {
    Message(ChannelIndex),
    Event(ClientEvent<'static>),
}

impl ServerNext {
    /// The event, with the message in `buffer`.
    #[inline]
    pub fn lend(self, buffer: &[u8]) -> ServerEvent<'_> {
        match self {
            Self::Message(player, channel) => ServerEvent::Message { player, channel, bytes: buffer },
            Self::Event(event) => event,
        }
    }
}

impl ClientNext {
    /// The event, with the message in `buffer`.
    #[inline]
    pub fn lend(self, buffer: &[u8]) -> ClientEvent<'_> {
        match self {
            Self::Message(channel) => ClientEvent::Message { channel, bytes: buffer },
            Self::Event(event) => event,
        }
    }
}

impl ServerEvent<'static> {
    /// The event of a state machine. `None` for the announcement of messages, each of which has an event of its own.
    pub(crate) fn from_notice(notice: ServerNotice) -> Option<Self> {
        Some(match notice {
            ServerNotice::Connected(new) => Self::Connected(new),
            ServerNotice::Writable(player) => Self::Writable(player),
            ServerNotice::LoginRequest(request) => Self::LoginRequest(request),
            ServerNotice::Receipt(player, id) => Self::Receipt(player, id),
            ServerNotice::Closing(player) => Self::Closing(player),
            ServerNotice::Moved(player, addr) => Self::Moved(player, addr),
            ServerNotice::Disconnected(player, reason) => Self::Disconnected(player, reason),
            _ => return None,
        })
    }
}

impl ClientEvent<'static> {
    /// As [`ServerEvent::from_notice`].
    pub(crate) fn from_notice(notice: ClientNotice) -> Option<Self> {
        Some(match notice {
            ClientNotice::Connected => Self::Connected,
            ClientNotice::Writable => Self::Writable,
            ClientNotice::Receipt(id) => Self::Receipt(id),
            ClientNotice::Closing => Self::Closing,
            ClientNotice::Disconnected(reason) => Self::Disconnected(reason),
            ClientNotice::LoginFailed(error) => Self::LoginFailed(error),
            _ => return None,
        })
    }
}
