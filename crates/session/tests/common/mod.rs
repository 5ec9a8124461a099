//! Servers and clients of the session protocol on loopback.
#![allow(dead_code, reason = "every test file uses a part of it")]

use rallypoint_session::{
    ClientConfig, ClientEvent, ClientOptions, Encryption, EndpointConfig, NewPlayer, PlayerId, PolledClient,
    PolledServer, ServerEvent, ServerOptions, StaticKey,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long a test waits for what must happen. It ends at once when it happens, so this is generous.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn key() -> StaticKey {
    StaticKey::from_bytes([9; 32]).unwrap()
}

pub fn server_options() -> ServerOptions {
    let mut config = EndpointConfig::for_game("test");
    config.static_key = Some(key());
    ServerOptions { listen: vec!["127.0.0.1:0".parse().unwrap()], ..config.into() }
}

pub fn client_options(encryption: Encryption) -> ClientOptions {
    ClientConfig { encryption, ..ClientConfig::new("alice", "test") }.into()
}

pub fn all_encryptions() -> [Encryption; 3] {
    [Encryption::Plain, Encryption::Encrypted, Encryption::Pinned(key().public())]
}

/// A server and a client that know each other.
pub struct Pair {
    pub server: PolledServer,
    pub client: PolledClient,
    pub player: PlayerId,
    pub message: Vec<u8>,
}

impl Pair {
    pub fn new(server: ServerOptions, client: ClientOptions) -> Self {
        let mut server = PolledServer::bind(server).unwrap();
        let to: SocketAddr = server.local_addrs().next().unwrap();
        let mut client = PolledClient::connect(to, client).unwrap();
        let (mut player, mut is_connected, mut message) = (None, false, Vec::new());
        until("they know each other", || {
            server.poll();
            client.poll();
            if let Some(ServerEvent::Connected(NewPlayer { player: joined, username, game, .. })) =
                server.next_event(&mut message)
            {
                assert_eq!((&*username, &*game), ("alice", "test"));
                player = Some(joined);
            }
            is_connected |= client.next_event(&mut message) == Some(ClientEvent::Connected);
            is_connected && player.is_some()
        });
        Self { server, client, player: player.unwrap(), message }
    }

    /// Both do what they have to do.
    pub fn turn(&mut self) {
        self.server.poll();
        self.client.poll();
    }

    /// The next message that the server has.
    pub fn server_hears(&mut self) -> Vec<u8> {
        let mut heard = None;
        until("the server hears something", || {
            self.turn();
            if self.server.next_event(&mut self.message) == Some(ServerEvent::Message(self.player)) {
                heard = Some(self.message.clone());
            }
            heard.is_some()
        });
        heard.unwrap()
    }

    /// The next message that the client has.
    pub fn client_hears(&mut self) -> Vec<u8> {
        let mut heard = None;
        until("the client hears something", || {
            self.turn();
            if self.client.next_event(&mut self.message) == Some(ClientEvent::Message) {
                heard = Some(self.message.clone());
            }
            heard.is_some()
        });
        heard.unwrap()
    }
}

/// Tries again and again until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "this did not happen: {what}");
        std::thread::yield_now();
    }
}
