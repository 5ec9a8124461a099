//! The message layer in encrypted sessions, with tokens and login decisions, and a hostile server against an honest client.
//!
//! * Hostile server: whatever it sends, the client delivers only messages that the table allows, or leaves with a reason, and it
//!   comes to an end when it is closed.
//! * Hostile client: a server that verifies tokens and decides on logins raises requests only for valid tokens, each once, delivers
//!   nothing of players that it has not accepted, and serves an honest player all the time.

use crate::delivery::drain;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, Client, ClientConfig, ClientEvent, ConnectToken, Encryption,
    Endpoint, EndpointConfig, ONLY_CHANNEL, PlayerId, ServerEvent, StaticKey, TokenIssuer, TokenVerifier, WallClock,
};
use rallypoint_wire::session::channels::{RecordWriter, TableEntry};
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

const SIZE: usize = 20_000;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 45_555);
const HONEST: ([u8; 4], u16) = ([192, 0, 2, 2], 1_000);
const HOSTILE: ([u8; 4], u16) = ([192, 0, 2, 3], 1_000);
const NOW: u64 = 1_800_000_000;
const MEMORY: usize = 1 << 20;

/// The first byte selects the hostile side and the encryption. Steps have eight bytes; some are followed by the bytes of a payload.
pub fn run(data: &[u8]) {
    match data.split_first() {
        Some((&first, script)) if first & 1 == 0 => HostileServer::new(first).run(script),
        Some((&first, script)) => HostileClient::new(first).run(script),
        None => {}
    }
}

/// A payload by the next step of a script, and the rest of the script; then how long to wait in milliseconds.
fn payload<'a>(step: [u8; 8], rest: &'a [u8], tokens: &[ConnectToken]) -> (Vec<u8>, &'a [u8], u64) {
    let [what, a, b, c, d, e, f, g] = step;
    let channel = ChannelIndex::new(a % 5).unwrap_or_default();
    let sequence = u16::from_le_bytes([b, c]);
    let [index, count] = [u16::from_le_bytes([d, e]), u16::from_le_bytes([f, g])];
    let mut writer = RecordWriter::new(464);
    let mut rest = rest;
    match what % 8 {
        0 => {
            let (bytes, after) = rest.split_at(usize::from(d).min(rest.len()));
            return (bytes.to_vec(), after, u64::from(what / 8));
        }
        1 => {
            // A valid token, or one with a changed byte, or none.
            let mut token = tokens.get(usize::from(a) % 3).map(|token| token.as_bytes().to_vec()).unwrap_or_default();
            if let Some(byte) = token.get_mut(usize::from(b)).filter(|_| c & 1 == 1) {
                *byte ^= d;
            }
            writer.hello(&entries(), &token);
        }
        2 => drop(writer.message(channel, sequence, &vec![d; usize::from(f)])),
        3 | 4 => {
            let length = if what & 16 == 0 { 457 } else { usize::from(g) };
            let (index, count) = if what & 32 == 0 { (index % 44, 44) } else { (index, count) };
            writer.fragment(channel, sequence % 64, index, count, &vec![d; length]);
        }
        5 => drop(writer.credit(channel, sequence)),
        6 => drop(writer.receipt(channel, [sequence, index].into_iter())),
        _ => {
            // Several records in one payload, with the bytes of the script after them.
            writer.message(channel, sequence, &[d; 3]);
            writer.credit(channel, index);
            let mut bytes = writer.finish().to_vec();
            let (more, after) = rest.split_at(usize::from(f % 16).min(rest.len()));
            bytes.extend_from_slice(more);
            rest = after;
            return (bytes, rest, u64::from(what / 8));
        }
    }
    (writer.finish().to_vec(), rest, u64::from(what / 8))
}

struct HostileServer {
    now: Instant,
    server: Endpoint,
    client: Client,
    is_connected: bool,
    is_closing: bool,
    seed: u8,
}

impl HostileServer {
    fn new(seed: u8) -> Self {
        let now = Instant::now();
        let mut server = EndpointConfig::for_game("tag+m1");
        server.static_key = Some(key());
        let mut client = ClientConfig::new("alice", "tag").channels(table());
        client.encryption = encryption(seed);
        client.reconnect = seed & 16 != 0;
        client.token = tokens().into_iter().next().filter(|_| encryption(seed) != Encryption::Plain);
        Self {
            now,
            server: Endpoint::new(server, [1; 32]).expect("the configuration is in range"),
            client: Client::new(now, SERVER.into(), client, [2; 32]).expect("the configuration is in range"),
            is_connected: false,
            is_closing: false,
            seed,
        }
    }

    fn run(mut self, mut script: &[u8]) {
        (0..20).for_each(|_| self.exchange(5));
        if self.seed & 8 == 0 {
            let mut writer = RecordWriter::new(464);
            writer.hello(&entries(), &[]);
            self.send(writer.finish());
        }
        while let Some((&step, rest)) = script.split_first_chunk() {
            let (bytes, rest, wait) = payload(step, rest, &[]);
            script = rest;
            match step[0] {
                250.. => {
                    let message = vec![step[1]; usize::from(step[2]) * 80];
                    let _ = self.client.send(self.now, ChannelIndex::default(), &message);
                }
                245.. => {
                    let player = self.server.players().next();
                    player.map(|player| self.server.disconnect(self.now, player, "go away"));
                }
                _ => self.send(&bytes),
            }
            self.exchange(wait);
        }
        self.client.close(self.now);
        self.is_closing = true;
        (0..400).for_each(|_| self.exchange(50));
        assert!(self.client.is_closed(), "{:?}", self.client);
    }

    fn send(&mut self, payload: &[u8]) {
        let player = self.server.players().next();
        if let Some(player) = player {
            let _ = self.server.send(self.now, player, ONLY_CHANNEL, payload);
        }
    }

    fn exchange(&mut self, milliseconds: u64) {
        for rounds in 0.. {
            assert!(rounds < 10_000, "it comes to an end");
            let mut is_idle = !drain(self.now, &mut self.server, |_, bytes| {
                self.client.handle_datagram(self.now, SERVER.into(), bytes);
            });
            is_idle &= !drain(self.now, &mut self.client, |_, bytes| {
                self.server.handle_datagram(self.now, HONEST.into(), bytes);
            });
            self.read();
            if is_idle {
                break;
            }
        }
        self.now += Duration::from_millis(milliseconds);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
    }

    fn read(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Message(player) = event {
                while self.server.recv(player).is_some() {}
            }
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Connected => {
                    assert!(!self.is_connected, "connected twice");
                    self.is_connected = true;
                }
                ClientEvent::Disconnected(_) => {
                    // Without a hello of the server, the session ends only because the client is closed.
                    assert!(self.is_connected || self.is_closing, "disconnected, but never connected");
                    self.is_connected = false;
                }
                ClientEvent::LoginFailed(_) => assert!(!self.is_connected, "the login fails, but it has succeeded"),
                _ => {}
            }
            while let Some((channel, message)) = self.client.recv() {
                assert!(message.len() <= SIZE && channel.get() < 4);
            }
        }
    }
}

struct HostileClient {
    now: Instant,
    server: Endpoint,
    honest: Client,
    hostile: Client,
    tokens: Vec<ConnectToken>,
    seed: u8,
    /// Players that have requested a login, and those that were accepted.
    requested: BTreeSet<String>,
    accepted: Vec<PlayerId>,
    honest_player: Option<PlayerId>,
    sent: u32,
    received: u32,
}

impl HostileClient {
    fn new(seed: u8) -> Self {
        let now = Instant::now();
        let mut config = EndpointConfig::for_game("tag").channels(table());
        config.static_key = Some(key());
        config.memory = MEMORY;
        config.max_players = 3;
        config.decides_logins = true;
        let clock = WallClock { at: now, unix_seconds: NOW };
        config.tokens = Some(TokenVerifier { issuer: issuer().public(), clock });
        let mut client = ClientConfig::new("alice", "tag").channels(table());
        client.encryption = Encryption::Pinned(key().public());
        client.token = issuer().issue(&key().public(), "alice", NOW + 3_600, b"honest").ok();
        Self {
            now,
            server: Endpoint::new(config, [1; 32]).expect("the configuration is in range"),
            honest: Client::new(now, SERVER.into(), client, [2; 32]).expect("the configuration is in range"),
            hostile: hostile(now, seed),
            tokens: tokens(),
            seed,
            requested: BTreeSet::new(),
            accepted: Vec::new(),
            honest_player: None,
            sent: 0,
            received: 0,
        }
    }

    fn run(mut self, mut script: &[u8]) {
        (0..20).for_each(|_| self.exchange(5));
        while let Some((&step, rest)) = script.split_first_chunk() {
            let (bytes, rest, wait) = payload(step, rest, &self.tokens);
            script = rest;
            match step[0] {
                250.. => self.send_honest(),
                245.. if self.hostile.is_closed() => self.hostile = hostile(self.now, self.seed ^ step[1]),
                245.. => self.hostile.close(self.now),
                _ => drop(self.hostile.send(self.now, ONLY_CHANNEL, &bytes)),
            }
            self.exchange(wait);
            let stats = self.server.stats();
            assert!(stats.memory <= MEMORY + 3 * 600 && stats.players <= 3, "{stats:?}");
        }
        self.send_honest();
        (0..200).for_each(|_| self.exchange(10));
        assert!(self.honest.is_connected());
        assert_eq!(self.received, self.sent);
    }

    fn send_honest(&mut self) {
        let message = self.sent.to_le_bytes().repeat(1 + self.sent as usize % 300);
        self.sent += u32::from(self.honest.send(self.now, ChannelIndex::default(), &message).is_ok());
    }

    fn exchange(&mut self, milliseconds: u64) {
        for rounds in 0.. {
            assert!(rounds < 10_000, "it comes to an end");
            let mut is_idle = !drain(self.now, &mut self.server, |to, bytes| {
                if to == SocketAddr::from(HONEST) {
                    self.honest.handle_datagram(self.now, SERVER.into(), bytes);
                } else {
                    self.hostile.handle_datagram(self.now, SERVER.into(), bytes);
                }
            });
            let server = &mut self.server;
            is_idle &= !drain(self.now, &mut self.honest, |_, bytes| {
                server.handle_datagram(self.now, HONEST.into(), bytes);
            });
            is_idle &= !drain(self.now, &mut self.hostile, |_, bytes| {
                server.handle_datagram(self.now, HOSTILE.into(), bytes);
            });
            self.read();
            if is_idle {
                break;
            }
        }
        self.now += Duration::from_millis(milliseconds);
        self.server.handle_timeout(self.now);
        self.honest.handle_timeout(self.now);
        self.hostile.handle_timeout(self.now);
    }

    fn read(&mut self) {
        while self.honest.poll_event().is_some() {}
        while self.honest.recv().is_some() {}
        while self.hostile.poll_event().is_some() {}
        while self.hostile.recv().is_some() {}
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::LoginRequest(request) => self.decide(
                    request.new.player,
                    &request.new.username,
                    request.token.as_ref().map(|token| &*token.data),
                ),
                ServerEvent::Connected(new) => {
                    assert!(self.accepted.contains(&new.player), "not accepted");
                    if new.username == "alice" {
                        self.honest_player = Some(new.player);
                    }
                }
                ServerEvent::Message(player) => self.recv(player),
                ServerEvent::Disconnected(player, _) => self.accepted.retain(|accepted| *accepted != player),
                _ => {}
            }
        }
    }

    /// Accepts the honest player, and the hostile one or not.
    fn decide(&mut self, player: PlayerId, username: &str, data: Option<&[u8]>) {
        let expected = if username == "alice" { &b"honest"[..] } else { b"hostile" };
        assert_eq!(data, Some(expected), "{username}: a request without a valid token");
        assert!(self.requested.insert(format!("{player:?}")), "requested twice");
        if username == "alice" || self.seed & 4 == 0 {
            self.accepted.push(player);
            assert!(self.server.accept_login(self.now, player));
        } else if self.seed & 8 == 0 {
            assert!(self.server.disconnect(self.now, player, "not today"));
        }
    }

    fn recv(&mut self, player: PlayerId) {
        while let Some((channel, message)) = self.server.recv(player) {
            assert!(self.accepted.contains(&player), "a message of a player who is not accepted");
            assert!(message.len() <= SIZE && channel.get() < 4);
            if Some(player) == self.honest_player {
                let expected = self.received.to_le_bytes().repeat(1 + self.received as usize % 300);
                assert!(message == expected, "in order, once, and its own");
                self.received += 1;
            }
        }
    }
}

fn hostile(now: Instant, seed: u8) -> Client {
    let config = ClientConfig { encryption: encryption(seed), ..ClientConfig::new("mallory", "tag+m1") };
    Client::new(now, SERVER.into(), config, [seed; 32]).expect("the configuration is in range")
}

/// Pinned, or plain, where tokens are not accepted.
fn encryption(seed: u8) -> Encryption {
    if seed & 2 == 0 { Encryption::Pinned(key().public()) } else { Encryption::Plain }
}

fn key() -> StaticKey {
    StaticKey::from_bytes([6; 32]).expect("a valid key")
}

fn issuer() -> TokenIssuer {
    TokenIssuer::from_seed([5; 32]).expect("a valid seed")
}

/// Tokens for the hostile client: a valid one, and one that has expired.
fn tokens() -> Vec<ConnectToken> {
    let issue = |expires| issuer().issue(&key().public(), "mallory", expires, b"hostile");
    [NOW + 3_600, NOW - 1].into_iter().filter_map(|expires| issue(expires).ok()).collect()
}

fn table() -> ChannelTable {
    let modes =
        [ChannelMode::ReliableOrdered, ChannelMode::ReliableUnordered, ChannelMode::Sequenced, ChannelMode::Expiring];
    let channel = |mode: ChannelMode| Channel { receipts: mode.is_reliable(), ..Channel::new(mode, SIZE) };
    ChannelTable::new(modes.map(channel)).expect("the table is valid")
}

fn entries() -> [TableEntry; 4] {
    let size = SIZE as u32;
    [0x80, 0x81, 2, 3].map(|mode| TableEntry { mode, max_to_server: size, max_to_client: size })
}
