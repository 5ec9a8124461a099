//! Rallypoint's session protocol, without encryption: the comparison is about transport, not ciphers.

use crate::library::{Library, Received, Side};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, ConnectionConfig, Encryption, Endpoint, EndpointConfig, MessageId, ONLY_CHANNEL,
    PlayerId, SendError, ServerEvent,
};
use std::{net::SocketAddr, time::Instant};

/// Rallypoint.
pub struct Rallypoint;

/// Rallypoint with the largest window on both sides.
pub struct RallypointWide;

/// A server, whose sessions have one channel or none.
pub struct Server {
    machine: Endpoint,
    player: Option<PlayerId>,
    received: Received,
}

/// Its player.
pub struct Player {
    pub machine: Client,
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
    (Server::new(endpoint, Received::default()), Player::new(client, Received::default()))
}

impl Server {
    pub fn new(machine: Endpoint, received: Received) -> Self {
        Self { machine, player: None, received }
    }

    fn read(&mut self, now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ServerEvent::Connected(new) => self.player = Some(new.player),
                ServerEvent::Message(player) => {
                    while let Some((_, message)) = self.machine.recv(player) {
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
    pub fn new(machine: Client, received: Received) -> Self {
        Self { machine, received }
    }

    fn read(&mut self, now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ClientEvent::Message => {
                    while let Some((_, message)) = self.machine.recv() {
                        self.received.take(now, message);
                    }
                }
                ClientEvent::Disconnected(reason) => panic!("disconnected: {reason}"),
                _ => {}
            }
        }
    }
}

impl Side for Server {
    fn is_connected(&self) -> bool {
        self.player.is_some()
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        let Some(player) = self.player else { return false };
        is_accepted(self.machine.send(now, player, ONLY_CHANNEL, message))
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Side for Player {
    fn is_connected(&self) -> bool {
        self.machine.is_connected()
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        is_accepted(self.machine.send(now, ONLY_CHANNEL, message))
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

fn is_accepted(sent: Result<MessageId, SendError>) -> bool {
    assert!(matches!(sent, Ok(_) | Err(SendError::WouldBlock)), "{sent:?}");
    sent.is_ok()
}

/// Both sides read their events after every datagram and timeout.
macro_rules! impl_machine {
    ($side:ident) => {
        impl Machine for $side {
            type Event = ();

            fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
                self.machine.handle_datagram(now, from, bytes);
                self.read(now);
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.machine.handle_timeout(now);
                self.read(now);
            }

            fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
                self.machine.poll_transmit(now, out)
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.machine.poll_timeout()
            }
        }
    };
}

impl_machine!(Server);
impl_machine!(Player);
