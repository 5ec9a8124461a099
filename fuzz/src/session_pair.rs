//! A client and a server over a network controlled by a script: the delivered messages are a prefix of the sent ones, in
//! order, each once; all of them if the network recovers while both sides hold the session; and all state is bounded.

use rallypoint_machine::Machine;
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, ConnectionConfig, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL,
    ServerEvent,
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum number of datagrams in flight in one direction; more displace the oldest.
const UNDER_WAY: usize = 256;

struct Pair {
    now: Instant,
    client: Client,
    server: Endpoint,
    client_at: SocketAddr,
    /// Datagrams to the server, and to the client.
    wires: [VecDeque<Vec<u8>>; 2],
    sent: [u32; 2],
    heard: [u32; 2],
    /// Whether the session has ended on one side.
    over: bool,
    deaf: bool,
}

/// The first byte selects the session, followed by steps of two bytes.
pub fn run(data: &[u8]) {
    let Some((&first, script)) = data.split_first() else { return };
    let connection = ConnectionConfig { window: 64, ..ConnectionConfig::default() };
    let encryption = if first & 1 == 0 { Encryption::Plain } else { Encryption::Encrypted };
    let now = Instant::now();
    let server_at = SocketAddr::from(([192, 0, 2, 1], 45_555));
    let server = EndpointConfig { connection: connection.clone(), ..EndpointConfig::for_game("tag") };
    let client = ClientConfig { encryption, connection, ..ClientConfig::new("alice", "tag") };
    let mut pair = Pair {
        now,
        client: Client::new(now, server_at, client, [2; 32]).expect("the configuration is in range"),
        server: Endpoint::new(server, [1; 32]).expect("the configuration is in range"),
        client_at: SocketAddr::from(([192, 0, 2, 2], 1000)),
        wires: Default::default(),
        sent: [0; 2],
        heard: [0; 2],
        over: false,
        deaf: false,
    };
    // Most scripts should exercise a session, not the login.
    if first & 2 == 0 {
        (0..20).for_each(|_| pair.calm());
    }
    for step in script.chunks_exact(2) {
        pair.step(step[0], step[1]);
    }
    pair.deaf = false;
    pair.read();
    for _ in 0..2_000 {
        if pair.heard == pair.sent || pair.over {
            break;
        }
        pair.calm();
    }
    let connected = pair.client.is_connected() && pair.server.players().count() == 1;
    assert!(pair.heard == pair.sent || pair.over || !connected, "{:?} of {:?}", pair.heard, pair.sent);
}

impl Pair {
    fn step(&mut self, what: u8, more: u8) {
        let to = usize::from(more & 1);
        let place = usize::from(more >> 1);
        match what % 16 {
            0..=3 => self.send(to),
            4..=7 => self.deliver(to, place),
            8 => drop(self.wires[to].remove(place)),
            9 => {
                if let Some(datagram) = self.wires[to].get(place).cloned() {
                    self.put(to, datagram);
                }
            }
            10 => {
                // Only datagrams with a checksum: a damaged login success can be a valid one.
                if let Some(datagram) = self.wires[to].get_mut(place)
                    && matches!(datagram[0], 0x05 | 0x55 | 0xff | 0xaa)
                {
                    let bit = usize::from(what >> 4) * 37 % (datagram.len() * 8);
                    datagram[bit / 8] ^= 1 << (bit % 8);
                }
            }
            11 => self.deaf = more & 1 == 1,
            12 => self.client_at.set_port(1000 + u16::from(more % 4)),
            13 => {
                while !self.wires[to].is_empty() {
                    self.deliver(to, 0);
                }
            }
            _ => self.pass(Duration::from_millis(u64::from(more).pow(2) / 64)),
        }
        self.drain();
        self.read();
        let stats = self.server.stats();
        assert!(stats.memory <= 3 << 20 && stats.players <= 64, "{stats:?}");
    }

    /// Delivers everything, and advances 10 ms.
    fn calm(&mut self) {
        for to in [0, 1] {
            for _ in 0..self.wires[to].len() {
                self.deliver(to, 0);
            }
        }
        self.pass(Duration::from_millis(10));
        self.drain();
        self.read();
    }

    fn pass(&mut self, time: Duration) {
        // Like an event loop: not later than the next timeout.
        let end = self.now + time;
        for _ in 0..1_000 {
            let wake = [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
            self.now = wake.unwrap_or(end).clamp(self.now, end);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.drain();
            if self.now >= end {
                return;
            }
        }
        self.now = end;
    }

    fn send(&mut self, to: usize) {
        let message = self.sent[to].to_le_bytes();
        let player = self.server.players().next();
        let sent = match (to, player) {
            (0, _) => self.client.send(self.now, ONLY_CHANNEL, &message).is_ok(),
            (_, Some(player)) => self.server.send(self.now, player, ONLY_CHANNEL, &message).is_ok(),
            _ => false,
        };
        self.sent[to] += u32::from(sent);
    }

    fn deliver(&mut self, to: usize, place: usize) {
        let Some(datagram) = self.wires[to].remove(place) else { return };
        if to == 0 {
            self.server.handle_datagram(self.now, self.client_at, &datagram);
        } else {
            let server = self.client.server();
            self.client.handle_datagram(self.now, server, &datagram);
        }
        self.drain();
        self.read();
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        for polls in 0.. {
            assert!(polls < 100_000, "it comes to an end");
            out.clear();
            let (to, transmit) = match self.client.poll_transmit(self.now, &mut out) {
                Some(transmit) => (0, transmit),
                None => match self.server.poll_transmit(self.now, &mut out) {
                    Some(transmit) => (1, transmit),
                    None => break,
                },
            };
            // Datagrams to a former address of the client are lost.
            if to == 0 || transmit.to == self.client_at {
                transmit.datagrams(&out).for_each(|datagram| self.put(to, datagram.to_vec()));
            }
        }
    }

    fn put(&mut self, to: usize, datagram: Vec<u8>) {
        if self.wires[to].len() >= UNDER_WAY {
            self.wires[to].pop_front();
        }
        self.wires[to].push_back(datagram);
    }

    fn read(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.over |= matches!(event, ClientEvent::Disconnected(_) | ClientEvent::LoginFailed(_));
        }
        while let Some(event) = self.server.poll_event() {
            self.over |= matches!(event, ServerEvent::Disconnected(..));
        }
        if self.deaf {
            return;
        }
        while let Some((_, message)) = self.client.recv() {
            assert_eq!(message, self.heard[1].to_le_bytes(), "in order, once");
            self.heard[1] += 1;
        }
        let player = self.server.players().next();
        while let Some((_, message)) = player.and_then(|player| self.server.recv(player)) {
            assert_eq!(message, self.heard[0].to_le_bytes(), "in order, once");
            self.heard[0] += 1;
        }
        assert!(self.heard[0] <= self.sent[0] && self.heard[1] <= self.sent[1]);
    }
}
