//! A server with or without channels: the functions of the interface are the same.

use crate::failure::Failure;
use rallypoint_session::{
    ChannelIndex, ChannelMessage, Connection, ConnectionStats, MessageId, PlayerId, PolledChannelServer, PolledServer,
    ServerEvent, ServerInfo,
};
use std::{net::SocketAddr, time::Duration};

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each has an allocation of its own in the handle table")]
pub(crate) enum ServerSession {
    Plain(PolledServer),
    Channels(PolledChannelServer),
}

impl ServerSession {
    pub(crate) fn poll(&mut self) {
        match self {
            Self::Plain(server) => server.poll(),
            Self::Channels(server) => server.poll(),
        }
    }

    pub(crate) fn wait(&mut self, timeout: Duration) {
        match self {
            Self::Plain(server) => server.wait(timeout),
            Self::Channels(server) => server.wait(timeout),
        }
    }

    pub(crate) fn flush(&mut self) {
        match self {
            Self::Plain(server) => server.flush(),
            Self::Channels(server) => server.flush(),
        }
    }

    pub(crate) fn send(&mut self, player: PlayerId, message: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Plain(server) => Ok(server.send(player, message)?),
            Self::Channels(_) => Err(Failure::argument("this server has channels: use rp_server_send_on")),
        }
    }

    pub(crate) fn send_on(
        &mut self,
        player: PlayerId,
        channel: ChannelIndex,
        message: &[u8],
    ) -> Result<MessageId, Failure> {
        Ok(self.channels()?.send(player, channel, message)?)
    }

    /// Returns the number of recipients.
    pub(crate) fn broadcast(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<i32, Failure> {
        let server = self.channels()?;
        let mut refused = 0;
        let players = server.players().count();
        server.broadcast(channel, message, |_, _| refused += 1);
        Ok(i32::try_from(players - refused).unwrap_or(i32::MAX))
    }

    /// Returns false if there is no such request.
    pub(crate) fn accept_login(&mut self, player: PlayerId) -> Result<bool, Failure> {
        Ok(self.channels()?.accept_login(player))
    }

    fn channels(&mut self) -> Result<&mut PolledChannelServer, Failure> {
        match self {
            Self::Plain(_) => Err(Failure::argument("this server has no channels: set rp_server_config.channels")),
            Self::Channels(server) => Ok(server),
        }
    }

    #[inline]
    pub(crate) fn next_event(&mut self, message: &mut ChannelMessage) -> Option<ServerEvent> {
        match self {
            Self::Plain(server) => server.next_event(&mut message.bytes),
            Self::Channels(server) => server.next_event(message),
        }
    }

    pub(crate) fn disconnect(&mut self, player: PlayerId, reason: &str) {
        match self {
            Self::Plain(server) => server.disconnect(player, reason),
            Self::Channels(server) => server.disconnect(player, reason),
        };
    }

    pub(crate) fn connection(&self, player: PlayerId) -> Option<&Connection> {
        match self {
            Self::Plain(server) => server.connection(player),
            Self::Channels(server) => server.connection(player),
        }
    }

    /// Statistics, and the maximum length of a message in a datagram.
    pub(crate) fn stats(&self, player: PlayerId) -> Option<(ConnectionStats, usize)> {
        match self {
            Self::Plain(server) => server.stats(player).zip(server.max_message(player)),
            Self::Channels(server) => {
                server.connection(player).map(|connection| (connection.stats(), connection.max_message()))
            }
        }
    }

    pub(crate) fn local_addr(&self, index: usize) -> Option<SocketAddr> {
        match self {
            Self::Plain(server) => server.local_addrs().nth(index),
            Self::Channels(server) => server.local_addrs().nth(index),
        }
    }

    pub(crate) fn set_info(&mut self, info: &ServerInfo) {
        match self {
            Self::Plain(server) => server.set_info(info),
            Self::Channels(server) => server.set_info(info),
        }
    }
}
