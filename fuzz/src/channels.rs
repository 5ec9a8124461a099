//! The message layer under hostile peers. The parser: whatever can be read can be written again and reads the same. A server,
//! a client that follows a script of payloads, and an honest client: state stays bounded, and the honest client's messages
//! arrive in order and are the only ones that are delivered under its name.

use crate::delivery::drain;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, Client, ClientConfig, Encryption, Endpoint, EndpointConfig,
    ONLY_CHANNEL, PlayerId, ServerEvent,
};
use rallypoint_wire::session::channels::{ControlRecord, Record, RecordWriter, TableEntry, records};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const MEMORY: usize = 1 << 20;
const SIZE: usize = 20_000;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 45_555);
const HONEST: ([u8; 4], u16) = ([192, 0, 2, 2], 1_000);
const HOSTILE: ([u8; 4], u16) = ([192, 0, 2, 3], 1_000);

/// The first byte selects the parser or a script, whose steps have eight bytes; some are followed by the bytes of a payload.
pub fn run(data: &[u8]) {
    match data.split_first() {
        Some((&first, rest)) if first % 4 == 0 => parse(rest),
        Some((&first, rest)) => Network::new(first).run(rest),
        None => {}
    }
}

fn parse(payload: &[u8]) {
    for record in records(payload).map_while(Result::ok) {
        let mut writer = RecordWriter::new(payload.len() + 8);
        let is_written = match record {
            Record::Message { channel, sequence, body } => writer.message(channel, sequence, body),
            Record::Fragment { channel, sequence, index, count, body } => {
                writer.fragment(channel, sequence, index, count, body)
            }
            Record::Control(ControlRecord::Hello(hello)) => {
                let table: Vec<TableEntry> = hello.channels().collect();
                // Other versions can be read and not written.
                if hello.version != 1 {
                    continue;
                }
                writer.hello(&table, hello.token)
            }
            Record::Control(ControlRecord::Credit { channel, sequence }) => writer.credit(channel, sequence),
            Record::Control(ControlRecord::Receipt { channel, sequences }) => {
                let sequences: Vec<u16> = sequences.iter().take(64).collect();
                let written = writer.receipt(channel, sequences.iter().copied());
                assert_eq!(written, sequences.len(), "there is room");
                continue;
            }
        };
        assert!(is_written, "there is room for {record:?}");
        assert_eq!(records(writer.finish()).next(), Some(Ok(record)));
    }
}

struct Network {
    now: Instant,
    server: Endpoint,
    honest: Client,
    hostile: Client,
    seed: u8,
    honest_player: Option<PlayerId>,
    sent: u32,
    received: u32,
}

impl Network {
    fn new(seed: u8) -> Self {
        let now = Instant::now();
        let mut config = EndpointConfig::for_game("tag").channels(table());
        config.memory = MEMORY;
        config.max_players = 3;
        config.plain_channel = ChannelIndex::new(0).filter(|_| seed & 4 != 0);
        let mut client = ClientConfig::new("alice", "tag").channels(table());
        client.encryption = Encryption::Plain;
        Self {
            now,
            server: Endpoint::new(config, [1; 32]).expect("the configuration is in range"),
            honest: Client::new(now, SERVER.into(), client, [2; 32]).expect("the configuration is in range"),
            hostile: hostile(now, seed),
            seed,
            honest_player: None,
            sent: 0,
            received: 0,
        }
    }

    fn run(mut self, mut script: &[u8]) {
        (0..20).for_each(|_| self.exchange(5));
        // Most scripts should exercise messages, not the hello.
        if self.seed & 8 == 0 {
            self.attack(|writer| writer.hello(&entries(), &[]));
        }
        while let Some((&[what, a, b, c, d, e, f, g], rest)) = script.split_first_chunk() {
            script = rest;
            let channel = ChannelIndex::new(a % 5).unwrap_or_default();
            let sequence = u16::from_le_bytes([b, c]);
            let [index, count] = [u16::from_le_bytes([d, e]), u16::from_le_bytes([f, g])];
            match what % 12 {
                0 => {
                    let (payload, rest) = script.split_at(usize::from(d).min(script.len()));
                    script = rest;
                    let _ = self.hostile.send(self.now, ONLY_CHANNEL, payload);
                }
                1 => self.attack(|writer| writer.hello(&entries(), &[d; 3])),
                2 | 3 => self.attack(|writer| writer.message(channel, sequence, &vec![d; usize::from(f)])),
                4..=6 => {
                    let length = if what & 16 == 0 { 477 } else { usize::from(g) };
                    let (index, count) = if what & 32 == 0 { (index % 44, 44) } else { (index, count) };
                    self.attack(|writer| writer.fragment(channel, sequence % 64, index, count, &vec![d; length]));
                }
                7 => self.attack(|writer| writer.credit(channel, sequence)),
                8 => self.attack(|writer| writer.receipt(channel, [sequence, index].into_iter()) > 0),
                9 => self.send_honest(),
                10 => {
                    let players: Vec<_> = self.server.players().collect();
                    self.server.broadcast(
                        self.now,
                        players,
                        channel,
                        vec![d; usize::from(sequence) % 2_000],
                        |_, _| {},
                    );
                }
                _ if self.hostile.is_closed() => self.hostile = hostile(self.now, self.seed),
                _ => {}
            }
            self.exchange(u64::from(what / 12));
            let stats = self.server.stats();
            assert!(stats.memory <= MEMORY + 3 * 600 && stats.players <= 3, "{stats:?}");
        }
        // Whatever happened, the honest player is still there and is served.
        self.send_honest();
        (0..200).for_each(|_| self.exchange(10));
        assert!(self.honest.is_connected());
        assert_eq!(self.received, self.sent);
    }

    fn send_honest(&mut self) {
        let message = self.sent.to_le_bytes().repeat(1 + self.sent as usize % 300);
        let channel = ChannelIndex::default();
        self.sent += u32::from(self.honest.send(self.now, channel, &message).is_ok());
    }

    fn attack(&mut self, write: impl FnOnce(&mut RecordWriter) -> bool) {
        let mut writer = RecordWriter::new(484);
        if write(&mut writer) {
            let _ = self.hostile.send(self.now, ONLY_CHANNEL, writer.finish());
        }
    }

    /// Delivers everything that is under way, then advances.
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
                ServerEvent::Connected(new) if new.username == "alice" => self.honest_player = Some(new.player),
                ServerEvent::Message(player) => {
                    while let Some((channel, message)) = self.server.recv(player) {
                        assert!(message.len() <= SIZE && channel.get() < 4);
                        if Some(player) == self.honest_player {
                            let expected = self.received.to_le_bytes().repeat(1 + self.received as usize % 300);
                            assert!(message == expected, "in order, once, and its own");
                            self.received += 1;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn hostile(now: Instant, seed: u8) -> Client {
    let game = if seed & 16 == 0 { "tag+m1" } else { "tag" };
    let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("mallory", game) };
    Client::new(now, SERVER.into(), config, [seed; 32]).expect("the configuration is in range")
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
