//! A server and clients on a simulated network, with applications that record what they receive.
#![allow(dead_code, reason = "each test uses a part of it")]

/// Implements [`Machine`] for an application that owns a state machine, as a node of the simulated network.
///
/// Every call is passed to the state machine, a field of the application. After a datagram or a timeout the application's
/// method `on_input` is called with the time, to read events and to send; after a transmission `on_transmit`, if there is one.
macro_rules! application_machine {
    ($app:ty { machine: $machine:ident, on_input: $on_input:ident $(, on_transmit: $on_transmit:ident)? }) => {
        impl rallypoint_machine::Machine for $app {
            type Event = ();

            fn handle_datagram(&mut self, now: std::time::Instant, from: std::net::SocketAddr, bytes: &[u8]) {
                self.$machine.handle_datagram(now, from, bytes);
                self.$on_input(now);
            }

            fn handle_timeout(&mut self, now: std::time::Instant) {
                self.$machine.handle_timeout(now);
                self.$on_input(now);
            }

            fn poll_transmit(
                &mut self,
                now: std::time::Instant,
                out: &mut Vec<u8>,
            ) -> Option<rallypoint_machine::Transmit> {
                let transmit = self.$machine.poll_transmit(now, out);
                $(self.$on_transmit(now);)?
                transmit
            }

            fn poll_timeout(&self) -> Option<std::time::Instant> {
                self.$machine.poll_timeout()
            }
        }
    };
}

pub mod bottleneck;
pub mod channels;
pub mod crowd_cells;
pub mod forge;
pub mod frames;
pub mod players;
pub mod traffic;

use rallypoint_machine::Machine;
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, DisconnectReason, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL, PlayerId,
    ServerEvent,
};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 45_555);
pub const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 1], 1_000);

/// The application on top of a server.
pub struct ServerApp {
    pub endpoint: Endpoint,
    /// Messages of each player by slot, with the time of arrival.
    pub received: BTreeMap<u8, Vec<(Instant, Vec<u8>)>>,
    pub events: Vec<(Instant, ServerEvent)>,
    /// Sends every message back.
    pub echoes: bool,
    /// Does not read messages.
    pub is_stalled: bool,
    /// Neither reads messages nor polls events.
    pub is_busy: bool,
}

/// The application on top of a client.
pub struct ClientApp {
    pub client: Client,
    pub received: Vec<(Instant, Vec<u8>)>,
    pub events: Vec<(Instant, ClientEvent)>,
    /// Number of messages received before each event.
    pub received_before_event: Vec<usize>,
    pub is_stalled: bool,
    /// Neither reads messages nor polls events.
    pub is_busy: bool,
}

impl ServerApp {
    pub fn new(config: EndpointConfig) -> Self {
        Self::with_seed(config, 1)
    }

    pub fn with_seed(config: EndpointConfig, seed: u8) -> Self {
        Self {
            endpoint: Endpoint::new(config, [seed; 32]).unwrap(),
            received: BTreeMap::new(),
            events: Vec::new(),
            echoes: false,
            is_stalled: false,
            is_busy: false,
        }
    }

    pub fn player(&self) -> PlayerId {
        self.endpoint.players().next().expect("a player")
    }

    pub fn disconnects(&self) -> Vec<DisconnectReason> {
        let reason = |event: &(Instant, ServerEvent)| match &event.1 {
            ServerEvent::Disconnected(_, reason) => Some(reason.clone()),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }

    pub fn connect_count(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, ServerEvent::Connected(_))).count()
    }

    /// Polls all events and reads all messages.
    pub fn poll(&mut self, now: Instant) {
        while !self.is_busy
            && let Some(event) = self.endpoint.poll_event()
        {
            if let ServerEvent::Message(player) = event {
                self.read_player(now, player);
            } else {
                self.events.push((now, event));
            }
        }
    }

    pub fn read_player(&mut self, now: Instant, player: PlayerId) {
        while !self.is_stalled
            && let Some(message) = self.endpoint.recv(player).map(|(_, bytes)| bytes.to_vec())
        {
            if self.echoes {
                let _ = self.endpoint.send(now, player, ONLY_CHANNEL, &message);
            }
            self.received.entry(player.index().get()).or_default().push((now, message));
        }
    }
}

impl ClientApp {
    pub fn new(now: Instant, server: SocketAddr, config: ClientConfig, seed: u8) -> Self {
        let client = Client::new(now, server, config, [seed; 32]).unwrap();
        Self {
            client,
            received: Vec::new(),
            events: Vec::new(),
            received_before_event: Vec::new(),
            is_stalled: false,
            is_busy: false,
        }
    }

    pub fn has(&self, event: &ClientEvent) -> bool {
        self.events.iter().any(|(_, raised)| raised == event)
    }

    pub fn poll(&mut self, now: Instant) {
        while !self.is_busy
            && let Some(event) = self.client.poll_event()
        {
            if event == ClientEvent::Message {
                while !self.is_stalled
                    && let Some(message) = self.client.recv().map(|(_, bytes)| bytes.to_vec())
                {
                    self.received.push((now, message));
                }
            } else {
                self.events.push((now, event));
                self.received_before_event.push(self.received.len());
            }
        }
    }
}

application_machine!(ServerApp { machine: endpoint, on_input: poll, on_transmit: poll });
application_machine!(ClientApp { machine: client, on_input: poll, on_transmit: poll });

/// One server and one client.
pub struct Pair {
    pub net: Network,
    pub server: Node<ServerApp>,
    pub client: Node<ClientApp>,
}

pub fn server_config() -> EndpointConfig {
    EndpointConfig::for_game("tag")
}

pub fn client_config(encryption: Encryption) -> ClientConfig {
    ClientConfig { encryption, ..ClientConfig::new("alice", "tag") }
}

impl Pair {
    /// Both on a link, before the login.
    pub fn start(seed: u64, link: Link, server: EndpointConfig, client: ClientConfig) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let server = net.add(SERVER, ServerApp::new(server));
        let client = ClientApp::new(net.now(), SERVER.into(), client, 2);
        let client = net.add(CLIENT, client);
        Self { net, server, client }
    }

    /// Both on a link, after the login.
    pub fn connect(seed: u64, link: Link, encryption: Encryption) -> Self {
        let mut pair = Self::start(seed, link, server_config(), client_config(encryption));
        pair.wait_for_player();
        pair
    }

    pub fn plain(seed: u64, link: Link) -> Self {
        Self::connect(seed, link, Encryption::Plain)
    }

    pub fn wait_for_player(&mut self) {
        let server = self.server;
        let is_connected = self.net.run_while(secs(10), |net| net.machine(server).endpoint.stats().players == 0);
        assert!(is_connected, "the player did not connect");
    }

    pub fn client(&self) -> &ClientApp {
        self.net.machine(self.client)
    }

    pub fn server(&self) -> &ServerApp {
        self.net.machine(self.server)
    }

    /// The messages of the first player.
    pub fn server_received(&self) -> &[(Instant, Vec<u8>)] {
        self.server().received.values().next().map_or(&[], Vec::as_slice)
    }

    pub fn client_send(&mut self, message: &[u8]) {
        self.net.with(self.client, |app, now| app.client.send(now, ONLY_CHANNEL, message)).unwrap();
    }

    pub fn server_send(&mut self, message: &[u8]) {
        self.net
            .with(self.server, |app, now| {
                let player = app.player();
                app.endpoint.send(now, player, ONLY_CHANNEL, message)
            })
            .unwrap();
    }
}

/// A message of `length` bytes that starts with its number.
pub fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.resize(length.max(4), number as u8);
    message
}

pub fn number_of(message: &[u8]) -> u32 {
    u32::from_le_bytes(*message.first_chunk().unwrap())
}
