//! Session servers and clients on the loopback interface.
#![allow(dead_code, reason = "each test file uses a part of it")]

use rallypoint_session::{
    ClientEvent, ClientOptions, Encryption, NewPlayer, ONLY_CHANNEL, PlayerId, PolledClient, PolledServer, ServerEvent,
    ServerOptions, StaticKey,
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
    ServerOptions::new("test").listen("127.0.0.1:0".parse().unwrap()).key(key())
}

pub fn client_options(encryption: Encryption) -> ClientOptions {
    ClientOptions::new("alice", "test").encryption(encryption)
}

pub fn all_encryptions() -> [Encryption; 3] {
    [Encryption::Plain, Encryption::Encrypted, Encryption::Pinned(key().public())]
}

/// A server and a client that are connected.
pub struct Pair {
    pub server: PolledServer,
    pub client: PolledClient,
    pub player: PlayerId,
}

/// An event with a copy of its message, which stays allocated until the test ends.
pub fn server_event(event: ServerEvent<'_>) -> ServerEvent<'static> {
    match event {
        ServerEvent::Connected(new) => ServerEvent::Connected(new),
        ServerEvent::Message { player, channel, bytes } => {
            ServerEvent::Message { player, channel, bytes: bytes.to_vec().leak() }
        }
        ServerEvent::Writable(player) => ServerEvent::Writable(player),
        ServerEvent::LoginRequest(request) => ServerEvent::LoginRequest(request),
        ServerEvent::Receipt(player, id) => ServerEvent::Receipt(player, id),
        ServerEvent::Closing(player) => ServerEvent::Closing(player),
        ServerEvent::Moved(player, addr) => ServerEvent::Moved(player, addr),
        ServerEvent::Disconnected(player, reason) => ServerEvent::Disconnected(player, reason),
        event => panic!("{event:?}"),
    }
}

/// As [`server_event`].
pub fn client_event(event: ClientEvent<'_>) -> ClientEvent<'static> {
    match event {
        ClientEvent::Connected => ClientEvent::Connected,
        ClientEvent::Message { channel, bytes } => ClientEvent::Message { channel, bytes: bytes.to_vec().leak() },
        ClientEvent::Writable => ClientEvent::Writable,
        ClientEvent::Receipt(id) => ClientEvent::Receipt(id),
        ClientEvent::Closing => ClientEvent::Closing,
        ClientEvent::Disconnected(reason) => ClientEvent::Disconnected(reason),
        ClientEvent::LoginFailed(error) => ClientEvent::LoginFailed(error),
        event => panic!("{event:?}"),
    }
}

impl Pair {
    pub fn new(server: ServerOptions, client: ClientOptions) -> Self {
        let mut server = PolledServer::bind(server).unwrap();
        let to: SocketAddr = server.local_addrs()[0];
        let mut client = PolledClient::connect(to, client).unwrap();
        let mut player = None;
        let mut is_connected = false;
        until("both are connected", || {
            server.poll();
            client.poll();
            if let Some(ServerEvent::Connected(NewPlayer { player: joined, username, game, .. })) = server.next_event()
            {
                assert_eq!((&*username, &*game), ("alice", "test"));
                player = Some(joined);
            }
            is_connected |= client.next_event() == Some(ClientEvent::Connected);
            is_connected && player.is_some()
        });
        Self { server, client, player: player.unwrap() }
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
            if let Some(ServerEvent::Message { player, channel: ONLY_CHANNEL, bytes }) = self.server.next_event() {
                assert_eq!(player, self.player);
                received = Some(bytes.to_vec());
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
            if let Some(ClientEvent::Message { channel: ONLY_CHANNEL, bytes }) = self.client.next_event() {
                received = Some(bytes.to_vec());
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
