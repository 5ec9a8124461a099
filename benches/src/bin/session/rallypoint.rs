//! Rallypoint's session protocol, without encryption: the comparison is about transport, not ciphers.

use crate::library::{Library, Received, Side};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, ConnectionConfig, Encryption, Endpoint, EndpointConfig, NewPlayer, PlayerId,
    SendError, ServerEvent,
};
use std::{net::SocketAddr, time::Instant};

/// Rallypoint.
pub struct Rallypoint;

/// Rallypoint with the largest window on both sides.
pub struct RallypointWide;

pub struct Server {
    pub endpoint: Endpoint,
    pub player: Option<PlayerId>,
    received: Received,
}

pub struct Player {
    pub client: Client,
    received: Received,
}

impl Library for Rallypoint {
    const NAME: &'static str = "rallypoint";
    type Server = Server;
    type Client = Player;

    fn pair(now: Instant, server: SocketAddr, _size: usize) -> (Server, Player) {
        pair(now, server, ConnectionConfig::default())
    }
}

impl Library for RallypointWide {
    const NAME: &'static str = "rallypoint, window of 16,384";
    type Server = Server;
    type Client = Player;

    fn pair(now: Instant, server: SocketAddr, _size: usize) -> (Server, Player) {
        pair(now, server, ConnectionConfig { window: 16_384, ..ConnectionConfig::default() })
    }
}

fn pair(now: Instant, server: SocketAddr, connection: ConnectionConfig) -> (Server, Player) {
    let config = EndpointConfig { connection: connection.clone(), ..EndpointConfig::for_game("bench") };
    let endpoint = Endpoint::new(config, [1; 32]).expect("the configuration is valid");
    let config = ClientConfig { encryption: Encryption::Plain, connection, ..ClientConfig::new("bench", "bench") };
    let client = Client::new(now, server, config, [2; 32]).expect("the configuration is valid");
    (Server { endpoint, player: None, received: Received::default() }, Player { client, received: Received::default() })
}

impl Side for Server {
    fn is_connected(&self) -> bool {
        self.player.is_some()
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        let Some(player) = self.player else { return false };
        sent(self.endpoint.send(now, player, message))
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
        sent(self.client.send(now, message))
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

fn sent(result: Result<(), SendError>) -> bool {
    assert!(matches!(result, Ok(()) | Err(SendError::WouldBlock)), "{result:?}");
    result.is_ok()
}

impl Server {
    fn read(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ServerEvent::Connected(NewPlayer { player, .. }) => self.player = Some(player),
                ServerEvent::Message(player) => {
                    while let Some(message) = self.endpoint.recv(player) {
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
                    while let Some(message) = self.client.recv() {
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
        self.endpoint.handle_datagram(now, from, bytes);
        self.read(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.read(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
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
