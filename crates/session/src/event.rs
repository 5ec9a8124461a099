//! The events of servers and clients, which lend their messages.

use rallypoint_session_proto::{
    ChannelIndex, ClientEvent as ClientNotice, DisconnectReason, LoginError, LoginRequest, MessageId, NewPlayer,
    PlayerId, ServerEvent as ServerNotice,
};
use std::net::SocketAddr;

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
        /// Its channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) in sessions without channels.
        channel: ChannelIndex,
        /// The message.
        bytes: &'a [u8],
    },
    /// There is room again after [`SendError::WouldBlock`](crate::SendError::WouldBlock).
    Writable(PlayerId),
    /// A player wants to join: accept or refuse. Only a server that decides on logins
    /// ([`EndpointConfig::decides_logins`](crate::EndpointConfig::decides_logins)) raises it.
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
        /// Its channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) in sessions without channels.
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

impl<'a> ServerEvent<'a> {
    /// An event of the protocol. If it is a message, that is in `bytes`, and was received on this channel.
    #[inline]
    pub(crate) fn new(notice: ServerNotice, channel: ChannelIndex, bytes: &'a [u8]) -> Self {
        match notice {
            ServerNotice::Message(player) => Self::Message { player, channel, bytes },
            ServerNotice::Connected(new) => Self::Connected(new),
            ServerNotice::Writable(player) => Self::Writable(player),
            ServerNotice::LoginRequest(request) => Self::LoginRequest(request),
            ServerNotice::Receipt(player, id) => Self::Receipt(player, id),
            ServerNotice::Closing(player) => Self::Closing(player),
            ServerNotice::Moved(player, addr) => Self::Moved(player, addr),
            ServerNotice::Disconnected(player, reason) => Self::Disconnected(player, reason),
        }
    }
}

impl<'a> ClientEvent<'a> {
    /// An event of the protocol. If it is a message, that is in `bytes`, and was received on this channel.
    #[inline]
    pub(crate) fn new(notice: ClientNotice, channel: ChannelIndex, bytes: &'a [u8]) -> Self {
        match notice {
            ClientNotice::Message => Self::Message { channel, bytes },
            ClientNotice::Connected => Self::Connected,
            ClientNotice::Writable => Self::Writable,
            ClientNotice::Receipt(id) => Self::Receipt(id),
            ClientNotice::Closing => Self::Closing,
            ClientNotice::Disconnected(reason) => Self::Disconnected(reason),
            ClientNotice::LoginFailed(error) => Self::LoginFailed(error),
        }
    }
}
