//! Rallypoint's channels, without encryption, beside the channels of other libraries.

use crate::{
    library::Received,
    modes::{Mode, ModeLibrary},
    rallypoint::{Player, Server},
};
use rallypoint_session_proto::{
    Channel, ChannelMode, ChannelTable, Client, ClientConfig, Encryption, Endpoint, EndpointConfig,
};
use std::{net::SocketAddr, time::Instant};

/// Rallypoint with channels.
pub struct RallypointChannels;

impl ModeLibrary for RallypointChannels {
    type Server = Server;
    type Client = Player;

    fn pair(now: Instant, server: SocketAddr, size: usize, mode: Mode) -> Option<(Self::Server, Self::Client)> {
        let mode = match mode {
            Mode::Ordered => ChannelMode::ReliableOrdered,
            Mode::Unordered => ChannelMode::ReliableUnordered,
            Mode::Sequenced => ChannelMode::Sequenced,
            Mode::Expiring => ChannelMode::Expiring,
        };
        let table = ChannelTable::new([Channel::new(mode, size)]).expect("the table is valid");
        let config = EndpointConfig::for_game("bench").channels(table.clone());
        let endpoint = Endpoint::new(config, [1; 32]).expect("the configuration is valid");
        let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("bench", "bench") };
        let client = Client::new(now, server, config.channels(table), [2; 32]).expect("the configuration is valid");
        Some((Server::new(endpoint, Received::in_any_order()), Player::new(client, Received::in_any_order())))
    }
}
