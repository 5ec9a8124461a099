//! Options of servers and clients with channels, beyond those of all sessions.

use crate::SetupError;
use rallypoint_session_proto::{ChannelIndex, ChannelTable, ConnectToken, TokenKey, TokenVerifier, WallClock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The channels of a server. A [`ChannelTable`] alone accepts every player who has the same.
#[derive(Clone, Debug)]
pub struct ServerChannels {
    /// The channels, the same as the clients'.
    pub table: ChannelTable,
    /// The key of the game's account service: only players with a valid token may join. It needs
    /// [`EndpointConfig::static_key`](crate::EndpointConfig::static_key). None by default.
    pub token_issuer: Option<TokenKey>,
    /// Whether [`ServerEvent::LoginRequest`](crate::ServerEvent::LoginRequest) is raised for each player, and the application
    /// decides. Off by default.
    pub decides_logins: bool,
    /// The channel of players whose client has no channels, and who have no other: reliable and ordered. Such a client sets
    /// [`ClientOptions::stream`](crate::ClientOptions::stream) to the maximum size of that channel. None by default: their
    /// logins are refused.
    pub plain_channel: Option<ChannelIndex>,
}

/// The channels of a client. A [`ChannelTable`] alone has no token.
#[derive(Clone, Debug)]
pub struct ClientChannels {
    /// The channels, the same as the server's.
    pub table: ChannelTable,
    /// The token of the game's account service, if the server requires one. It needs
    /// [`Encryption::Pinned`](crate::Encryption::Pinned).
    pub token: Option<ConnectToken>,
}

/// A received message and its channel. One value serves for all messages: its buffer is reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelMessage {
    /// The channel of the last message.
    pub channel: ChannelIndex,
    /// The bytes of the last message.
    pub bytes: Vec<u8>,
}

impl ServerChannels {
    pub(crate) fn verifier(&self, now: Instant) -> Option<TokenVerifier> {
        let issuer = self.token_issuer?;
        // With a clock before 1970 the expiry of tokens cannot be judged anyway.
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
        Some(TokenVerifier { issuer, clock: WallClock { at: now, unix_seconds } })
    }
}

impl ChannelMessage {
    /// Copies a received message. Returns false if there is none.
    pub(crate) fn copy(&mut self, received: Option<(ChannelIndex, &[u8])>) -> bool {
        let Some((channel, bytes)) = received else { return false };
        self.channel = channel;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        true
    }
}

/// Streams are another way to send large messages.
pub(crate) fn check_stream(stream: Option<usize>) -> Result<(), SetupError> {
    if stream.is_some() { Err(SetupError::StreamWithChannels) } else { Ok(()) }
}

impl From<ChannelTable> for ServerChannels {
    fn from(table: ChannelTable) -> Self {
        Self { table, token_issuer: None, decides_logins: false, plain_channel: None }
    }
}

impl From<ChannelTable> for ClientChannels {
    fn from(table: ChannelTable) -> Self {
        Self { table, token: None }
    }
}
