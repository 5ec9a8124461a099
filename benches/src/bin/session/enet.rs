//! ENet, as transpiled to Rust: serviced whenever a datagram arrives, and every millisecond.

use crate::{
    library::{Library, Received, Side, ms},
    modes::{Mode, ModeLibrary},
};
use rallypoint_machine::{Machine, Transmit};
use rusty_enet::{Event, Host, HostSettings, MTU_MAX, Packet, PacketReceived, PeerID, Socket};
use std::{
    cell::Cell,
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

/// `rusty_enet`.
pub struct Enet;

/// An ENet host, used for both sides.
pub struct Node {
    host: Host<Wire>,
    start: Instant,
    clock: Rc<Cell<Duration>>,
    wake: Instant,
    peer: Option<PeerID>,
    connected: bool,
    mode: Mode,
    received: Received,
}

/// Datagrams between the host and the simulated network.
#[derive(Default)]
struct Wire {
    arrived: VecDeque<(SocketAddr, Vec<u8>)>,
    leaving: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Library for Enet {
    const NAME: &'static str = "rusty_enet";
    type Server = Node;
    type Client = Node;

    fn pair(now: Instant, server: SocketAddr, _size: usize) -> (Node, Node) {
        pair(now, server, Mode::Ordered, Received::default)
    }
}

impl ModeLibrary for Enet {
    type Server = Node;
    type Client = Node;

    fn pair(now: Instant, server: SocketAddr, _size: usize, mode: Mode) -> Option<(Node, Node)> {
        (mode != Mode::Unordered).then(|| pair(now, server, mode, Received::in_any_order))
    }
}

fn pair(now: Instant, server: SocketAddr, mode: Mode, received: fn() -> Received) -> (Node, Node) {
    let mut client = Node::new(now, 2, mode, received());
    client.peer = Some(client.host.connect(server, 1, 0).expect("a free peer").id());
    (Node::new(now, 1, mode, received()), client)
}

impl Node {
    fn new(now: Instant, seed: u32, mode: Mode, received: Received) -> Self {
        let clock = Rc::new(Cell::new(Duration::from_secs(1)));
        let time = Rc::clone(&clock);
        let settings = HostSettings {
            peer_limit: 1,
            channel_limit: 1,
            time: Box::new(move || time.get()),
            seed: Some(seed),
            ..HostSettings::default()
        };
        let host = Host::new(Wire::default(), settings).unwrap_or_else(|_| unreachable!("the settings are valid"));
        Self { host, start: now, clock, wake: now, peer: None, connected: false, mode, received }
    }

    fn service(&mut self, now: Instant) {
        self.clock.set(Duration::from_secs(1) + (now - self.start));
        while let Ok(Some(event)) = self.host.service() {
            match event {
                Event::Connect { peer, .. } => {
                    // A timeout longer than the outage whose recovery is measured.
                    peer.set_timeout(1_000, 60_000, 60_000);
                    self.peer = Some(peer.id());
                    self.connected = true;
                }
                Event::Receive { packet, .. } => self.received.take(now, packet.data()),
                Event::Disconnect { .. } => panic!("disconnected"),
            }
        }
    }
}

impl Side for Node {
    fn is_connected(&self) -> bool {
        self.connected
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> bool {
        self.clock.set(Duration::from_secs(1) + (now - self.start));
        let Some(peer) = self.peer else { return false };
        let packet = match self.mode {
            Mode::Ordered | Mode::Unordered => Packet::reliable(message),
            Mode::Sequenced => Packet::unreliable(message),
            Mode::Expiring => Packet::unreliable_unsequenced(message),
        };
        self.host.peer_mut(peer).send(0, &packet).is_ok()
    }

    fn end_frame(&mut self, _now: Instant) {
        self.host.flush();
    }

    fn received(&self) -> &Received {
        &self.received
    }
}

impl Machine for Node {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.host.socket_mut().arrived.push_back((from, bytes.to_vec()));
        self.service(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.wake {
            self.wake = now + ms(1);
            self.service(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.host.socket_mut().leaving.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(to, bytes.len()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.wake)
    }
}

impl Socket for Wire {
    type Address = SocketAddr;
    type Error = Infallible;

    fn send(&mut self, to: SocketAddr, bytes: &[u8]) -> Result<usize, Infallible> {
        self.leaving.push_back((to, bytes.to_vec()));
        Ok(bytes.len())
    }

    fn receive(&mut self, buffer: &mut [u8; MTU_MAX]) -> Result<Option<(SocketAddr, PacketReceived)>, Infallible> {
        Ok(self.arrived.pop_front().map(|(from, bytes)| {
            buffer[..bytes.len()].copy_from_slice(&bytes);
            (from, PacketReceived::Complete(bytes.len()))
        }))
    }
}
