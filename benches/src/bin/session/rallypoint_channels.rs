//! Rallypoint's channels, without encryption, beside the channels of other libraries.

use crate::{
    library::Received,
    modes::{Mode, ModeLibrary},
    rallypoint::{ClientMachine, Player, Server, ServerMachine},
};
use rallypoint_session_proto::{
    Channel, ChannelClient, ChannelClientConfig, ChannelIndex, ChannelMode, ChannelServer, ChannelServerConfig,
    ChannelTable, Encryption, PlayerId, SendError,
};
use std::{net::SocketAddr, time::Instant};

/// Rallypoint with channels.
pub struct RallypointChannels;

/// The only channel.
const CHANNEL: ChannelIndex = ChannelIndex::new(0).unwrap();

impl ModeLibrary for RallypointChannels {
    type Server = Server<ChannelServer>;
    type Client = Player<ChannelClient>;

    fn pair(now: Instant, server: SocketAddr, size: usize, mode: Mode) -> Option<(Self::Server, Self::Client)> {
        let mode = match mode {
            Mode::Ordered => ChannelMode::ReliableOrdered,
            Mode::Unordered => ChannelMode::ReliableUnordered,
            Mode::Sequenced => ChannelMode::Sequenced,
            Mode::Expiring => ChannelMode::Expiring,
        };
        let table = ChannelTable::new([Channel::new(mode, size)]).expect("the table is valid");
        let config = ChannelServerConfig::new("bench", table.clone());
        let channel_server = ChannelServer::new(now, config, [1; 32]).expect("the configuration is valid");
        let mut config = ChannelClientConfig::new("bench", "bench", table);
        config.client.encryption = Encryption::Plain;
        let client = ChannelClient::new(now, server, config, [2; 32]).expect("the configuration is valid");
        Some((Server::new(channel_server, Received::in_any_order()), Player::new(client, Received::in_any_order())))
    }
}

impl ServerMachine for ChannelServer {
    fn send(&mut self, now: Instant, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        Self::send(self, now, player, CHANNEL, message).map(drop)
    }

    fn recv(&mut self, now: Instant, player: PlayerId) -> Option<&[u8]> {
        Self::recv(self, now, player).map(|(_, message)| message)
    }
}

impl ClientMachine for ChannelClient {
    fn is_connected(&self) -> bool {
        Self::is_connected(self)
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), SendError> {
        Self::send(self, now, CHANNEL, message).map(drop)
    }

    fn recv(&mut self, now: Instant) -> Option<&[u8]> {
        Self::recv(self, now).map(|(_, message)| message)
    }
}
