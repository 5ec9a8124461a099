//! Messages from a server to a client without sockets, for counting instructions: of both sides, and of the sender alone.

use crate::library::ms;
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    Client, ClientConfig, Connection, Encryption, Endpoint, EndpointConfig, PlayerId, StreamReader, StreamWriter,
};
use std::{net::SocketAddr, time::Instant};

pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 45_555);
pub const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 1], 1_000);

/// Messages per turn of a side.
pub const BATCH: u64 = 64;

/// Bytes of a message, and of the stream that is cut into datagrams when messages are packed.
pub const SIZE: usize = 400;
pub const PACKED_SIZE: usize = 32;

/// A server and its player, who take turns.
pub struct Exchange {
    now: Instant,
    endpoint: Endpoint,
    player: PlayerId,
    client: Client,
    message: Vec<u8>,
    streams: Option<(StreamWriter, StreamReader)>,
    to_client: InFlight,
    to_server: InFlight,
    received: u64,
}

/// Datagrams from one side to the other.
#[derive(Default)]
pub struct InFlight {
    bytes: Vec<u8>,
    transmits: Vec<Transmit>,
}

impl InFlight {
    /// Collects what a side has to send.
    pub fn fill(&mut self, from: &mut impl Machine, now: Instant) {
        while let Some(transmit) = from.poll_transmit(now, &mut self.bytes) {
            self.transmits.push(transmit);
        }
    }

    /// Hands it to the other side.
    pub fn deliver(&mut self, to: &mut impl Machine, now: Instant, source: SocketAddr) {
        let mut rest = &self.bytes[..];
        for transmit in self.transmits.drain(..) {
            let (bytes, after) = rest.split_at(transmit.len);
            transmit.datagrams(bytes).for_each(|datagram| to.handle_datagram(now, source, datagram));
            rest = after;
        }
        self.bytes.clear();
        while to.poll_event().is_some() {}
    }
}

/// Passes datagrams between a server and a client until they are connected. Returns the time.
pub fn log_in<S: Machine, C: Machine>(
    start: Instant,
    server: &mut S,
    client: &mut C,
    is_connected: impl Fn(&S, &C) -> bool,
) -> Instant {
    let mut now = start;
    let mut in_flight = InFlight::default();
    while !is_connected(server, client) {
        now += ms(1);
        in_flight.fill(client, now);
        in_flight.deliver(server, now, CLIENT.into());
        in_flight.fill(server, now);
        in_flight.deliver(client, now, SERVER.into());
    }
    now
}

impl Exchange {
    /// With `is_packed`, messages are written to a stream.
    pub fn new(encryption: Encryption, is_packed: bool) -> Self {
        let start = Instant::now();
        let mut endpoint =
            Endpoint::new(EndpointConfig::for_game("bench"), [1; 32]).expect("the default configuration is valid");
        let config = ClientConfig { encryption, ..ClientConfig::new("bench", "bench") };
        let mut client =
            Client::new(start, SERVER.into(), config, [2; 32]).expect("the default configuration is valid");
        let now = log_in(start, &mut endpoint, &mut client, |endpoint, client| {
            client.is_connected() && endpoint.players().next().is_some()
        });
        let player = endpoint.players().next().expect("a player");
        let message = vec![7; if is_packed { PACKED_SIZE } else { SIZE }];
        let streams = is_packed.then(|| (StreamWriter::new(1_000), StreamReader::new(1_000)));
        Self {
            now,
            endpoint,
            player,
            client,
            message,
            streams,
            to_client: InFlight::default(),
            to_server: InFlight::default(),
            received: 0,
        }
    }

    /// Plain messages of this size, none of which share a datagram.
    pub fn of_size(size: usize) -> Self {
        Self { message: vec![7; size], ..Self::new(Encryption::Plain, false) }
    }

    /// Sends at least this many messages.
    pub fn run(&mut self, count: u64) {
        let end = self.received + count;
        while self.received < end {
            self.sender_turn();
            self.receiver_turn();
        }
    }

    /// The sender handles acks, and sends a batch of messages.
    #[inline(never)]
    pub fn sender_turn(&mut self) {
        let Self { now, endpoint, player, message, streams, to_client, to_server, .. } = self;
        *now += ms(1);
        to_server.deliver(endpoint, *now, CLIENT.into());
        match streams {
            None => {
                for _ in 0..BATCH {
                    let _ = endpoint.send(*now, *player, message);
                }
            }
            Some((writer, _)) => {
                let size = endpoint.connection(*player).map_or(0, Connection::max_message);
                for _ in 0..BATCH {
                    let _ = writer.write(message);
                    if writer.pending() >= size {
                        let _ = writer.flush(size, |part| {
                            if part.len() == size {
                                endpoint.send(*now, *player, part).map_err(|_| ())
                            } else {
                                Err(())
                            }
                        });
                    }
                }
            }
        }
        to_client.fill(endpoint, *now);
    }

    /// The receiver reads messages, and acks them.
    #[inline(never)]
    pub fn receiver_turn(&mut self) {
        let Self { now, client, streams, to_client, to_server, received, .. } = self;
        *now += ms(1);
        to_client.deliver(client, *now, SERVER.into());
        while let Some(message) = client.recv() {
            match streams {
                None => *received += 1,
                Some((_, reader)) => {
                    reader.push(message).expect("a valid stream");
                    while reader.next_frame().expect("a valid stream").is_some() {
                        *received += 1;
                    }
                }
            }
        }
        to_server.fill(client, *now);
    }
}

/// Seals a message of 400 bytes `count` times, with nothing around it.
pub fn seal(count: u64) {
    let key = key();
    let mut message = vec![7; SIZE];
    for number in 0..count {
        let tag = key.seal_in_place_separate_tag(nonce(number), Aad::from([7; 12]), &mut message);
        std::hint::black_box(tag.is_ok());
    }
}

/// Opens a message of 400 bytes `count` times, with nothing around it.
pub fn open(count: u64) {
    let key = key();
    let mut message = vec![7; SIZE];
    let tag = key.seal_in_place_separate_tag(nonce(1), Aad::from([7; 12]), &mut message).expect("a tag");
    let mut out = vec![0; SIZE];
    for _ in 0..count {
        let opened = key.open_separate_gather(nonce(1), Aad::from([7; 12]), &message, tag.as_ref(), &mut out);
        assert!(opened.is_ok());
    }
}

fn key() -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[7; 32]).expect("32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
