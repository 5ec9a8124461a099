//! Rallypoint's channels, without encryption, beside the channels of other libraries.

use crate::{
    library::{Received, Side},
    modes::{Mode, ModeLibrary},
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    Channel, ChannelClient, ChannelClientConfig, ChannelIndex, ChannelMode, ChannelServer, ChannelServerConfig,
    ChannelTable, ClientEvent, Encryption, MessageId, PlayerId, SendError, ServerEvent,
};
use std::{net::SocketAddr, time::Instant};

/// Rallypoint with channels.
pub struct RallypointChannels;

pub struct Server {
    server: ChannelServer,
    player: Option<PlayerId>,
    received: Received,
}

pub struct Player {
    client: ChannelClient,
    received: Received,
}

impl ModeLibrary for RallypointChannels {
    type Server = Server;
    type Client = Player;

    fn pair(now: Instant, server: SocketAddr, size: usize, mode: Mode) -> Option<(Server, Player)> {
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
        Some((
            Server { server: channel_server, player: None, received: Received::in_any_order() },
            Player { client, received: Received::in_any_order() },
        ))
    }
}

impl Side for Server {
    fn is_connected(&self) -> bool {
        self.player.is_some()
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        let Some(player) = self.player else { return false };
        sent(self.server.send(now, player, ChannelIndex::default(), message))
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Side for Player {
    fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        sent(self.client.send(now, ChannelIndex::default(), message))
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

fn sent(result: Result<MessageId, SendError>) -> bool {
    assert!(matches!(result, Ok(_) | Err(SendError::WouldBlock)), "{result:?}");
    result.is_ok()
}

impl Server {
    fn read(&mut self, now: Instant) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Connected(new) => self.player = Some(new.player),
                ServerEvent::Message(player) => {
                    while let Some((_, message)) = self.server.recv(now, player) {
                        self.received.take(now, message);
                    }
                }
                ServerEvent::Disconnected(_, reason) => panic!("disconnected: {reason}"),
                _ => {}
            }
        }
    }
}

impl Player {
    fn read(&mut self, now: Instant) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Message => {
                    while let Some((_, message)) = self.client.recv(now) {
                        self.received.take(now, message);
                    }
                }
                ClientEvent::Disconnected(reason) => panic!("disconnected: {reason}"),
                _ => {}
            }
        }
    }
}

impl Machine for Server {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.server.handle_datagram(now, from, bytes);
        self.read(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.read(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.server.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }
}

impl Machine for Player {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.client.handle_datagram(now, from, bytes);
        self.read(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        self.read(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.client.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }
}
