//! renet over netcode, used as documented: messages are received as they arrive, and sent once per frame of 1/60 s; a reliable
//! ordered channel with retransmission after 100 ms.

use crate::{
    library::{Library, Received, Side},
    modes::{Mode, ModeLibrary},
};
use bytes::Bytes;
use rallypoint_machine::{Machine, Transmit};
use renet::{ChannelConfig, ConnectionConfig, RenetClient, RenetServer, SendType};
use renetcode::{
    ClientAuthentication, NETCODE_MAX_PACKET_BYTES, NetcodeClient, NetcodeServer, ServerAuthentication, ServerConfig,
    ServerResult,
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// renet.
pub struct Renet;

const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// Frame duration, after which a frame ends by itself.
const LATE: Duration = Duration::from_millis(18);
const CHANNEL: u8 = 0;
const PROTOCOL: u64 = 7;
const CLIENT: u64 = 1;

type Leaving = VecDeque<(SocketAddr, Vec<u8>)>;

/// One side of a connection.
pub struct RenetSide<E> {
    endpoint: E,
    leaving: Leaving,
    /// When the last frame ended.
    last: Instant,
    received: Received,
}

/// A server or a client of renet, with its netcode layer.
pub trait RenetEndpoint: 'static {
    fn is_connected(&self) -> bool;

    /// Queues a message; returns false if there is no room.
    fn send(&mut self, message: &[u8]) -> bool;

    /// Advances the time, and sends what is due.
    fn update(&mut self, elapsed: Duration, leaving: &mut Leaving);

    /// Handles a datagram.
    fn process(&mut self, from: SocketAddr, datagram: &mut [u8], leaving: &mut Leaving);

    /// The next message that has arrived.
    fn receive(&mut self) -> Option<Bytes>;
}

pub struct Server {
    renet: RenetServer,
    netcode: NetcodeServer,
}

pub struct Client {
    renet: RenetClient,
    netcode: NetcodeClient,
}

fn config(mode: Mode) -> ConnectionConfig {
    let resend_time = Duration::from_millis(100);
    let channel = ChannelConfig {
        channel_id: CHANNEL,
        max_memory_usage_bytes: 5 << 20,
        send_type: match mode {
            Mode::Ordered => SendType::ReliableOrdered { resend_time },
            Mode::Unordered => SendType::ReliableUnordered { resend_time },
            Mode::Sequenced | Mode::Expiring => SendType::Unreliable,
        },
    };
    ConnectionConfig {
        server_channels_config: vec![channel.clone()],
        client_channels_config: vec![channel],
        ..ConnectionConfig::default()
    }
}

impl Library for Renet {
    const NAME: &'static str = "renet";
    type Server = RenetSide<Server>;
    type Client = RenetSide<Client>;

    fn pair(now: Instant, server: SocketAddr, _size: usize) -> (RenetSide<Server>, RenetSide<Client>) {
        pair(now, server, Mode::Ordered, Received::default)
    }
}

impl ModeLibrary for Renet {
    type Server = RenetSide<Server>;
    type Client = RenetSide<Client>;

    fn pair(now: Instant, server: SocketAddr, _size: usize, mode: Mode) -> Option<(Self::Server, Self::Client)> {
        Some(pair(now, server, mode, Received::in_any_order))
    }
}

fn pair(
    now: Instant,
    server: SocketAddr,
    mode: Mode,
    received: fn() -> Received,
) -> (RenetSide<Server>, RenetSide<Client>) {
    let netcode = NetcodeServer::new(ServerConfig {
        current_time: Duration::from_secs(1),
        max_clients: 1,
        protocol_id: PROTOCOL,
        public_addresses: vec![server],
        authentication: ServerAuthentication::Unsecure,
    });
    let authentication = ClientAuthentication::Unsecure {
        protocol_id: PROTOCOL,
        client_id: CLIENT,
        server_addr: server,
        user_data: None,
    };
    let client = NetcodeClient::new(Duration::from_secs(1), authentication).expect("a token");
    (
        RenetSide::new(now, Server { renet: RenetServer::new(config(mode)), netcode }, received()),
        RenetSide::new(now, Client { renet: RenetClient::new(config(mode)), netcode: client }, received()),
    )
}

impl Server {
    fn handle(result: ServerResult<'_, '_>, renet: &mut RenetServer, leaving: &mut Leaving) {
        match result {
            ServerResult::None => {}
            ServerResult::PacketToSend { addr, payload } => leaving.push_back((addr, payload.to_vec())),
            ServerResult::Payload { client_id, payload } => {
                let _ = renet.process_packet_from(payload, client_id);
            }
            ServerResult::ClientConnected { client_id, addr, payload, .. } => {
                renet.add_connection(client_id);
                leaving.push_back((addr, payload.to_vec()));
            }
            ServerResult::ClientDisconnected { .. } => panic!("disconnected"),
        }
    }
}

impl RenetEndpoint for Server {
    fn is_connected(&self) -> bool {
        self.renet.is_connected(CLIENT)
    }

    fn send(&mut self, message: &[u8]) -> bool {
        let has_room = self.renet.can_send_message(CLIENT, CHANNEL, message.len());
        if has_room {
            self.renet.send_message(CLIENT, CHANNEL, message.to_vec());
        }
        has_room
    }

    fn update(&mut self, elapsed: Duration, leaving: &mut Leaving) {
        self.renet.update(elapsed);
        self.netcode.update(elapsed);
        for client in self.netcode.clients_id() {
            Self::handle(self.netcode.update_client(client), &mut self.renet, leaving);
        }
        for client in self.renet.clients_id() {
            for packet in self.renet.get_packets_to_send(client).unwrap_or_default() {
                if let Ok((to, bytes)) = self.netcode.generate_payload_packet(client, &packet) {
                    leaving.push_back((to, bytes.to_vec()));
                }
            }
        }
    }

    fn process(&mut self, from: SocketAddr, datagram: &mut [u8], leaving: &mut Leaving) {
        Self::handle(self.netcode.process_packet(from, datagram), &mut self.renet, leaving);
    }

    fn receive(&mut self) -> Option<Bytes> {
        self.renet.receive_message(CLIENT, CHANNEL)
    }
}

impl RenetEndpoint for Client {
    fn is_connected(&self) -> bool {
        self.renet.is_connected()
    }

    fn send(&mut self, message: &[u8]) -> bool {
        let has_room = self.renet.can_send_message(CHANNEL, message.len());
        if has_room {
            self.renet.send_message(CHANNEL, message.to_vec());
        }
        has_room
    }

    fn update(&mut self, elapsed: Duration, leaving: &mut Leaving) {
        self.renet.update(elapsed);
        assert!(!self.netcode.is_disconnected(), "disconnected");
        if let Some((bytes, to)) = self.netcode.update(elapsed) {
            leaving.push_back((to, bytes.to_vec()));
        }
        if !self.netcode.is_connected() {
            return;
        }
        self.renet.set_connected();
        for packet in self.renet.get_packets_to_send() {
            if let Ok((to, bytes)) = self.netcode.generate_payload_packet(&packet) {
                leaving.push_back((to, bytes.to_vec()));
            }
        }
    }

    fn process(&mut self, _from: SocketAddr, datagram: &mut [u8], _leaving: &mut Leaving) {
        if let Some(payload) = self.netcode.process_packet(datagram) {
            self.renet.process_packet(payload);
        }
    }

    fn receive(&mut self) -> Option<Bytes> {
        self.renet.receive_message(CHANNEL)
    }
}

impl<E: RenetEndpoint> RenetSide<E> {
    fn new(now: Instant, endpoint: E, received: Received) -> Self {
        Self { endpoint, leaving: Leaving::new(), last: now, received }
    }
}

impl<E: RenetEndpoint> Side for RenetSide<E> {
    fn is_connected(&self) -> bool {
        self.endpoint.is_connected()
    }

    fn send(&mut self, _now: Instant, message: &[u8]) -> bool {
        self.endpoint.send(message)
    }

    fn end_frame(&mut self, now: Instant) {
        let elapsed = now - self.last;
        if elapsed >= FRAME {
            self.last = now;
            self.endpoint.update(elapsed, &mut self.leaving);
        }
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl<E: RenetEndpoint> Machine for RenetSide<E> {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let mut buffer = [0; NETCODE_MAX_PACKET_BYTES];
        let Some(buffer) = buffer.get_mut(..bytes.len()) else { return };
        buffer.copy_from_slice(bytes);
        self.endpoint.process(from, buffer, &mut self.leaving);
        while let Some(message) = self.endpoint.receive() {
            self.received.take(now, &message);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.last + LATE {
            self.end_frame(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.leaving.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(to, bytes.len()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.last + LATE)
    }
}
