//! A server and a client with channels on a simulated network, with applications that record what they receive.

use super::{CLIENT, SERVER, secs};
use rallypoint_machine::Machine;
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, Client, ClientConfig, ClientEvent, Endpoint, EndpointConfig,
    PlayerId, ServerEvent,
};
use std::time::Instant;

pub const ORDERED: ChannelIndex = ChannelIndex::new(0).unwrap();
pub const UNORDERED: ChannelIndex = ChannelIndex::new(1).unwrap();
pub const SEQUENCED: ChannelIndex = ChannelIndex::new(2).unwrap();
pub const EXPIRING: ChannelIndex = ChannelIndex::new(3).unwrap();

/// One channel of each mode, for messages of at most this size.
pub fn table(max_size: usize) -> ChannelTable {
    let modes =
        [ChannelMode::ReliableOrdered, ChannelMode::ReliableUnordered, ChannelMode::Sequenced, ChannelMode::Expiring];
    ChannelTable::new(modes.map(|mode| Channel::new(mode, max_size))).unwrap()
}

/// A received message.
pub struct Received {
    pub at: Instant,
    pub channel: ChannelIndex,
    pub bytes: Vec<u8>,
    /// Who has sent it, at a server.
    pub player: Option<PlayerId>,
}

pub struct ServerApp {
    pub server: Endpoint,
    pub received: Vec<Received>,
    pub events: Vec<(Instant, ServerEvent)>,
}

pub struct ClientApp {
    pub client: Client,
    pub received: Vec<Received>,
    pub events: Vec<(Instant, ClientEvent)>,
}

impl ServerApp {
    pub fn new(config: EndpointConfig) -> Self {
        let server = Endpoint::new(config, [1; 32]).unwrap();
        Self { server, received: Vec::new(), events: Vec::new() }
    }

    pub fn player(&self) -> PlayerId {
        self.server.players().next().expect("a player")
    }

    fn poll(&mut self, now: Instant) {
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Message(player) = event {
                while let Some((channel, message)) = self.server.recv(player) {
                    self.received.push(Received { at: now, channel, bytes: message.to_vec(), player: Some(player) });
                }
            } else {
                self.events.push((now, event));
            }
        }
    }
}

impl ClientApp {
    pub fn new(now: Instant, config: ClientConfig, seed: u8) -> Self {
        let client = Client::new(now, SERVER.into(), config, [seed; 32]).unwrap();
        Self { client, received: Vec::new(), events: Vec::new() }
    }

    fn poll(&mut self, now: Instant) {
        while let Some(event) = self.client.poll_event() {
            if event == ClientEvent::Message {
                while let Some((channel, message)) = self.client.recv() {
                    self.received.push(Received { at: now, channel, bytes: message.to_vec(), player: None });
                }
            } else {
                self.events.push((now, event));
            }
        }
    }
}

application_machine!(ServerApp { machine: server, on_input: poll, on_transmit: poll });
application_machine!(ClientApp { machine: client, on_input: poll, on_transmit: poll });

/// One server and one client.
pub struct ChannelPair {
    pub net: Network,
    pub server: Node<ServerApp>,
    pub client: Node<ClientApp>,
}

impl ChannelPair {
    /// Both on a link, before the login.
    pub fn start(seed: u64, link: Link, server: EndpointConfig, client: ClientConfig) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let server = net.add(SERVER, ServerApp::new(server));
        let client = net.add(CLIENT, ClientApp::new(net.now(), client, 2));
        Self { net, server, client }
    }

    /// Both on a link, after the login.
    pub fn connect(seed: u64, link: Link, table: &ChannelTable) -> Self {
        let server = EndpointConfig::for_game("tag").channels(table.clone());
        let client = ClientConfig::new("alice", "tag").channels(table.clone());
        let mut pair = Self::start(seed, link, server, client);
        pair.wait_for_player();
        pair
    }

    pub fn wait_for_player(&mut self) {
        let client = self.client;
        let is_connected = self.net.run_while(secs(10), |net| !net.machine(client).client.is_connected());
        assert!(is_connected, "the player did not connect");
    }

    pub fn client(&self) -> &ClientApp {
        self.net.machine(self.client)
    }

    pub fn server(&self) -> &ServerApp {
        self.net.machine(self.server)
    }
}
