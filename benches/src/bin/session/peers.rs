//! Both sides of sessions with and without channels, as an exchange uses them.

use crate::exchange::{CLIENT, SERVER, log_in};
use rallypoint_machine::Machine;
use rallypoint_session_proto::{
    Channel, ChannelTable, Client, ClientConfig, ClientEvent, Connection, Encryption, Endpoint, EndpointConfig,
    ONLY_CHANNEL, PlayerId, ServerEvent, StreamReader, StreamWriter,
};
use std::{net::SocketAddr, time::Instant};

/// One side of a session.
pub trait Peer {
    type Machine: Machine;

    /// The address of this side.
    fn address() -> SocketAddr;

    fn machine(&mut self) -> &mut Self::Machine;

    /// Sends a message to the other side; there is always room in an exchange.
    fn send(&mut self, now: Instant, message: &[u8]);

    /// Reads the next message of the other side, if there is one.
    fn recv(&mut self, now: Instant) -> bool;

    /// Whether an event reports messages.
    fn is_message(event: &<Self::Machine as Machine>::Event) -> bool;

    /// Polls events until none is left. Returns whether one reports messages.
    fn poll_readable(&mut self) -> bool {
        let mut is_readable = false;
        while let Some(event) = self.machine().poll_event() {
            is_readable |= Self::is_message(&event);
        }
        is_readable
    }
}

/// A server and its only player.
pub struct Served {
    server: Endpoint,
    player: PlayerId,
}

/// A server that broadcasts each message to its single player.
pub struct Broadcasting(pub Served);

/// A server that packs messages into a stream.
pub struct Packed {
    peer: Served,
    writer: StreamWriter,
    /// Bytes of a full message of the session.
    size: usize,
}

/// A client that reads messages from a stream.
pub struct Unpacked {
    client: Client,
    reader: StreamReader,
}

/// A server and a client without channels, who are connected, and the time.
pub fn plain(encryption: Encryption) -> (Instant, Served, Client) {
    let config = ClientConfig { encryption, ..ClientConfig::new("bench", "bench") };
    connect(EndpointConfig::for_game("bench"), config)
}

/// A server and a client with this channel.
pub fn channel(encryption: Encryption, channel: Channel) -> (Instant, Served, Client) {
    let table = ChannelTable::new([channel]).expect("the table is valid");
    let config = ClientConfig { encryption, ..ClientConfig::new("bench", "bench") };
    connect(EndpointConfig::for_game("bench").channels(table.clone()), config.channels(table))
}

fn connect(server: EndpointConfig, client: ClientConfig) -> (Instant, Served, Client) {
    let start = Instant::now();
    let mut server = Endpoint::new(server, [1; 32]).expect("the configuration is valid");
    let mut client = Client::new(start, SERVER.into(), client, [2; 32]).expect("the configuration is valid");
    let now = log_in(start, &mut server, &mut client, |server, client| {
        client.is_connected() && server.players().next().is_some()
    });
    let player = server.players().next().expect("a player");
    (now, Served { server, player }, client)
}

impl Packed {
    pub fn new(peer: Served) -> Self {
        let size = peer.server.connection(peer.player).map_or(0, Connection::max_message);
        Self { peer, writer: StreamWriter::new(1_000), size }
    }
}

impl Unpacked {
    pub fn new(client: Client) -> Self {
        Self { client, reader: StreamReader::new(1_000) }
    }
}

impl Peer for Served {
    type Machine = Endpoint;

    fn address() -> SocketAddr {
        SERVER.into()
    }

    fn machine(&mut self) -> &mut Endpoint {
        &mut self.server
    }

    fn is_message(event: &ServerEvent) -> bool {
        matches!(event, ServerEvent::Message(_))
    }

    fn send(&mut self, now: Instant, message: &[u8]) {
        let _ = self.server.send(now, self.player, ONLY_CHANNEL, message);
    }

    fn recv(&mut self, _now: Instant) -> bool {
        self.server.recv(self.player).is_some()
    }
}

impl Peer for Client {
    type Machine = Self;

    fn address() -> SocketAddr {
        CLIENT.into()
    }

    fn machine(&mut self) -> &mut Self {
        self
    }

    fn is_message(event: &ClientEvent) -> bool {
        matches!(event, ClientEvent::Message)
    }

    fn send(&mut self, now: Instant, message: &[u8]) {
        let _ = Self::send(self, now, ONLY_CHANNEL, message);
    }

    fn recv(&mut self, _now: Instant) -> bool {
        Self::recv(self).is_some()
    }
}

impl Peer for Broadcasting {
    type Machine = Endpoint;

    fn address() -> SocketAddr {
        SERVER.into()
    }

    fn machine(&mut self) -> &mut Endpoint {
        self.0.machine()
    }

    fn is_message(event: &ServerEvent) -> bool {
        matches!(event, ServerEvent::Message(_))
    }

    fn send(&mut self, now: Instant, message: &[u8]) {
        let Served { server, player } = &mut self.0;
        server.broadcast(now, [*player], ONLY_CHANNEL, message, |_, sent| assert!(sent.is_ok(), "{sent:?}"));
    }

    fn recv(&mut self, now: Instant) -> bool {
        self.0.recv(now)
    }
}

impl Peer for Packed {
    type Machine = Endpoint;

    fn address() -> SocketAddr {
        SERVER.into()
    }

    fn machine(&mut self) -> &mut Endpoint {
        self.peer.machine()
    }

    fn is_message(event: &ServerEvent) -> bool {
        matches!(event, ServerEvent::Message(_))
    }

    fn send(&mut self, now: Instant, message: &[u8]) {
        let Self { peer, writer, size } = self;
        let _ = writer.write(message);
        if writer.pending() >= *size {
            // Only full ones: the rest waits for more messages.
            let _ = writer.flush(*size, |part| {
                if part.len() < *size {
                    return Err(());
                }
                peer.server.send(now, peer.player, ONLY_CHANNEL, part).map(drop).map_err(drop)
            });
        }
    }

    fn recv(&mut self, now: Instant) -> bool {
        self.peer.recv(now)
    }
}

impl Peer for Unpacked {
    type Machine = Client;

    fn address() -> SocketAddr {
        CLIENT.into()
    }

    fn machine(&mut self) -> &mut Client {
        &mut self.client
    }

    fn is_message(event: &ClientEvent) -> bool {
        matches!(event, ClientEvent::Message)
    }

    fn send(&mut self, now: Instant, message: &[u8]) {
        let _ = self.client.send(now, ONLY_CHANNEL, message);
    }

    fn recv(&mut self, _now: Instant) -> bool {
        loop {
            if self.reader.next_frame().expect("a valid stream").is_some() {
                return true;
            }
            let Some((_, message)) = self.client.recv() else { return false };
            self.reader.push(message).expect("a valid stream");
        }
    }
}
