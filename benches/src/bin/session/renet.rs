//! renet over netcode, used as documented: messages are received as they arrive, and sent once per frame of 1/60 s; a reliable
//! ordered channel with retransmission after 100 ms.

use crate::{
    library::{Library, Received, Side},
    modes::{Mode, ModeLibrary},
};
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

pub struct Server {
    server: RenetServer,
    netcode: NetcodeServer,
    leaving: Leaving,
    last: Instant,
    received: Received,
}

pub struct Client {
    client: RenetClient,
    netcode: NetcodeClient,
    leaving: Leaving,
    last: Instant,
    received: Received,
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
    type Server = Server;
    type Client = Client;

    fn pair(now: Instant, server: SocketAddr, _size: usize) -> (Server, Client) {
        pair(now, server, Mode::Ordered, Received::default)
    }
}

impl ModeLibrary for Renet {
    type Server = Server;
    type Client = Client;

    fn pair(now: Instant, server: SocketAddr, _size: usize, mode: Mode) -> Option<(Server, Client)> {
        Some(pair(now, server, mode, Received::in_any_order))
    }
}

fn pair(now: Instant, server: SocketAddr, mode: Mode, received: fn() -> Received) -> (Server, Client) {
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
        Server {
            server: RenetServer::new(config(mode)),
            netcode,
            leaving: Leaving::new(),
            last: now,
            received: received(),
        },
        Client {
            client: RenetClient::new(config(mode)),
            netcode: client,
            leaving: Leaving::new(),
            last: now,
            received: received(),
        },
    )
}

impl Server {
    fn result(result: ServerResult<'_, '_>, server: &mut RenetServer, leaving: &mut Leaving) {
        match result {
            ServerResult::None => {}
            ServerResult::PacketToSend { addr, payload } => leaving.push_back((addr, payload.to_vec())),
            ServerResult::Payload { client_id, payload } => {
                let _ = server.process_packet_from(payload, client_id);
            }
            ServerResult::ClientConnected { client_id, addr, payload, .. } => {
                server.add_connection(client_id);
                leaving.push_back((addr, payload.to_vec()));
            }
            ServerResult::ClientDisconnected { .. } => panic!("disconnected"),
        }
    }
}

impl Side for Server {
    fn is_connected(&self) -> bool {
        self.server.is_connected(CLIENT)
    }

    fn send(&mut self, _now: Instant, message: &[u8]) -> bool {
        let room = self.server.can_send_message(CLIENT, CHANNEL, message.len());
        if room {
            self.server.send_message(CLIENT, CHANNEL, message.to_vec());
        }
        room
    }

    fn end_frame(&mut self, now: Instant) {
        let elapsed = now - self.last;
        if elapsed < FRAME {
            return;
        }
        self.last = now;
        self.server.update(elapsed);
        self.netcode.update(elapsed);
        for client in self.netcode.clients_id() {
            Self::result(self.netcode.update_client(client), &mut self.server, &mut self.leaving);
        }
        for client in self.server.clients_id() {
            for packet in self.server.get_packets_to_send(client).unwrap_or_default() {
                if let Ok((to, bytes)) = self.netcode.generate_payload_packet(client, &packet) {
                    self.leaving.push_back((to, bytes.to_vec()));
                }
            }
        }
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Side for Client {
    fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    fn send(&mut self, _now: Instant, message: &[u8]) -> bool {
        let room = self.client.can_send_message(CHANNEL, message.len());
        if room {
            self.client.send_message(CHANNEL, message.to_vec());
        }
        room
    }

    fn end_frame(&mut self, now: Instant) {
        let elapsed = now - self.last;
        if elapsed < FRAME {
            return;
        }
        self.last = now;
        self.client.update(elapsed);
        assert!(!self.netcode.is_disconnected(), "disconnected");
        if let Some((bytes, to)) = self.netcode.update(elapsed) {
            self.leaving.push_back((to, bytes.to_vec()));
        }
        if !self.netcode.is_connected() {
            return;
        }
        self.client.set_connected();
        for packet in self.client.get_packets_to_send() {
            if let Ok((to, bytes)) = self.netcode.generate_payload_packet(&packet) {
                self.leaving.push_back((to, bytes.to_vec()));
            }
        }
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Machine for Server {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let mut buffer = [0; NETCODE_MAX_PACKET_BYTES];
        let Some(buffer) = buffer.get_mut(..bytes.len()) else { return };
        buffer.copy_from_slice(bytes);
        Self::result(self.netcode.process_packet(from, buffer), &mut self.server, &mut self.leaving);
        while let Some(message) = self.server.receive_message(CLIENT, CHANNEL) {
            self.received.take(now, &message);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.last + LATE {
            self.end_frame(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        leave(&mut self.leaving, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.last + LATE)
    }
}

impl Machine for Client {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, bytes: &[u8]) {
        let mut buffer = [0; NETCODE_MAX_PACKET_BYTES];
        let Some(buffer) = buffer.get_mut(..bytes.len()) else { return };
        buffer.copy_from_slice(bytes);
        if let Some(payload) = self.netcode.process_packet(buffer) {
            self.client.process_packet(payload);
        }
        while let Some(message) = self.client.receive_message(CHANNEL) {
            self.received.take(now, &message);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.last + LATE {
            self.end_frame(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        leave(&mut self.leaving, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.last + LATE)
    }
}

fn leave(leaving: &mut Leaving, out: &mut Vec<u8>) -> Option<Transmit> {
    let (to, bytes) = leaving.pop_front()?;
    out.extend_from_slice(&bytes);
    Some(Transmit::one(to, bytes.len()))
}
