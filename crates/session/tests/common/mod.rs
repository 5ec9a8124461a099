//! Session servers and clients on the loopback interface.
#![allow(dead_code, reason = "each test file uses a part of it")]

use rallypoint_session::{
    ClientConfig, ClientEvent, ClientOptions, Encryption, EndpointConfig, NewPlayer, PlayerId, PolledClient,
    PolledServer, ServerEvent, ServerOptions, StaticKey,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum time that a test waits for a condition. The wait ends as soon as the condition holds, so this is generous.
const TIMEOUT: Duration = Duration::from_secs(30);

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

/// A server and a client that are connected.
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
        let mut player = None;
        let mut is_connected = false;
        let mut message = Vec::new();
        until("both are connected", || {
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

    /// Polls both.
    pub fn poll(&mut self) {
        self.server.poll();
        self.client.poll();
    }

    /// The next message that the server receives.
    pub fn server_recv(&mut self) -> Vec<u8> {
        let mut received = None;
        until("the server receives a message", || {
            self.poll();
            if self.server.next_event(&mut self.message) == Some(ServerEvent::Message(self.player)) {
                received = Some(self.message.clone());
            }
            received.is_some()
        });
        received.unwrap()
    }

    /// The next message that the client receives.
    pub fn client_recv(&mut self) -> Vec<u8> {
        let mut received = None;
        until("the client receives a message", || {
            self.poll();
            if self.client.next_event(&mut self.message) == Some(ClientEvent::Message) {
                received = Some(self.message.clone());
            }
            received.is_some()
        });
        received.unwrap()
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    /// On a busy machine a yield gives away tens of milliseconds, and some tests need thousands of round trips.
    const ROUNDS_PER_YIELD: usize = 64;
    let deadline = Instant::now() + TIMEOUT;
    let mut rounds = 0_usize;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        rounds += 1;
        if rounds.is_multiple_of(ROUNDS_PER_YIELD) {
            std::thread::yield_now();
        }
    }
}
