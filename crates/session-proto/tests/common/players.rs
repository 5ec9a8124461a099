//! Players of one server behind one bottleneck, each with a steady stream of messages.

use super::{SERVER, client_config, server_config};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{BottleneckId, Link, Network, Node};
use rallypoint_session_proto::{
    Client, ClientEvent, Connection, ConnectionStats, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL, ServerEvent,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Which messages pass the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToPlayers,
    /// Both, each through a bottleneck of its own.
    Both,
}

/// What the players of a crowd send, and how.
#[derive(Clone, Copy, Debug)]
pub struct CrowdOptions {
    pub players: u8,
    pub direction: Direction,
    /// Bytes of a message.
    pub len: usize,
    /// Round-trip time without a queue.
    pub rtt: Duration,
    pub is_encrypted: bool,
}

/// Messages that carry the time at which they were sent, and the number of their player, at a steady rate.
struct Stream {
    start: Instant,
    interval: Duration,
    len: usize,
    player: u8,
    next_at: Option<Instant>,
    /// Number of messages that were due so far.
    sent: usize,
}

/// When messages arrived, how long they took, and the number of their player.
#[derive(Default)]
pub struct Arrivals(Vec<(Instant, Duration, u8)>);

/// The server and what its players sent.
pub struct Arena {
    pub endpoint: Endpoint,
    stream: Option<Stream>,
    pub arrivals: Arrivals,
}

/// A player and what it received.
pub struct Player {
    pub client: Client,
    stream: Option<Stream>,
    pub arrivals: Arrivals,
}

impl Stream {
    /// The next message, if it is due.
    fn next(&mut self, now: Instant) -> Option<Vec<u8>> {
        let at = self.next_at.filter(|at| *at <= now)?;
        self.next_at = Some(at + self.interval);
        self.sent += 1;
        let mut message = ((now - self.start).as_nanos() as u64).to_le_bytes().to_vec();
        message.push(self.player);
        message.resize(self.len, 7);
        Some(message)
    }
}

impl Arrivals {
    fn add(&mut self, now: Instant, start: Instant, message: &[u8]) {
        let sent = start + Duration::from_nanos(u64::from_le_bytes(*message.first_chunk().unwrap()));
        self.0.push((now, now - sent, message[8]));
    }

    /// The delivery times of all messages that arrived between two times.
    fn within(&self, from: Instant, to: Instant, times: &mut Vec<Duration>) {
        times.extend(self.0.iter().filter(|(at, ..)| (from..to).contains(at)).map(|(_, time, _)| *time));
    }

    /// Adds the number of messages of each player to `counts`.
    fn count(&self, counts: &mut [usize]) {
        self.0.iter().for_each(|(.., player)| counts[usize::from(*player)] += 1);
    }
}

impl Machine for Arena {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.endpoint.handle_datagram(now, from, bytes);
        while let Some(event) = self.endpoint.poll_event() {
            if let ServerEvent::Message(player) = event
                && let Some(stream) = &self.stream
            {
                while let Some((_, message)) = self.endpoint.recv(player) {
                    self.arrivals.add(now, stream.start, message);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        while self.endpoint.poll_event().is_some() {}
        while let Some(message) = self.stream.as_mut().and_then(|stream| stream.next(now)) {
            // All players get the state of the world in the same frame.
            let players: Vec<_> = self.endpoint.players().collect();
            for player in players {
                let _ = self.endpoint.send(now, player, ONLY_CHANNEL, &message);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.stream.as_ref().and_then(|stream| stream.next_at);
        [next, self.endpoint.poll_timeout()].into_iter().flatten().min()
    }
}

impl Machine for Player {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.client.handle_datagram(now, from, bytes);
        while let Some(event) = self.client.poll_event() {
            if event == ClientEvent::Message
                && let Some(stream) = &self.stream
            {
                while let Some((_, message)) = self.client.recv() {
                    self.arrivals.add(now, stream.start, message);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        while self.client.poll_event().is_some() {}
        while let Some(message) = self.stream.as_mut().and_then(|stream| stream.next(now)) {
            let _ = self.client.send(now, ONLY_CHANNEL, &message);
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.client.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.stream.as_ref().and_then(|stream| stream.next_at);
        [next, self.client.poll_timeout()].into_iter().flatten().min()
    }
}

/// A crowd of players, all in a session.
pub struct Crowd {
    pub net: Network,
    pub bottleneck: BottleneckId,
    /// The bottleneck to the players, if messages pass one in both directions.
    pub second_bottleneck: BottleneckId,
    pub server: Node<Arena>,
    pub players: Vec<Node<Player>>,
    direction: Direction,
}

/// The measurements of one period.
#[derive(Clone, Copy, Debug, Default)]
pub struct Period {
    pub p50: Duration,
    pub p99: Duration,
    /// Datagrams and bytes that entered the bottleneck, and the share of the datagrams that was dropped.
    pub datagrams: u64,
    pub bytes: u64,
    pub loss: f64,
    pub messages: usize,
    /// The largest number of messages of one stream that were sent and had not arrived at the end of the period. On a player who is
    /// starved, the messages that arrive say nothing.
    pub max_outstanding: usize,
}

impl Crowd {
    /// Players that log in over an idle network, and then send (or are sent) 60 messages of `len` bytes per second.
    pub fn start(seed: u64, players: u8, direction: Direction, len: usize, link: Link) -> Self {
        Self::start_with(seed, players, direction, len, link, &Encryption::Plain)
    }

    /// Players with these options, over a link without loss.
    pub fn with_options(seed: u64, options: CrowdOptions) -> Self {
        let CrowdOptions { players, direction, len, rtt, is_encrypted } = options;
        let encryption = if is_encrypted { Encryption::Encrypted } else { Encryption::Plain };
        Self::start_with(seed, players, direction, len, Link::default().delay(rtt / 2), &encryption)
    }

    fn start_with(seed: u64, count: u8, direction: Direction, len: usize, link: Link, encryption: &Encryption) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let bottleneck = net.add_bottleneck(1_000_000_000, 1 << 20);
        let second_bottleneck = net.add_bottleneck(1_000_000_000, 1 << 20);
        let config = EndpointConfig { max_players: 255, ..server_config() };
        let endpoint = Endpoint::new(config, [1; 32]).unwrap();
        let server = net.add(SERVER, Arena { endpoint, stream: None, arrivals: Arrivals::default() });
        let players: Vec<_> = (1..=count)
            .map(|number| {
                let config = client_config(encryption.clone());
                let client = Client::new(net.now(), SERVER.into(), config, [number; 32]).unwrap();
                let player = Player { client, stream: None, arrivals: Arrivals::default() };
                let player = net.add(([10, 0, 1, number], 1_000), player);
                match direction {
                    Direction::ToServer => net.pass_bottleneck(player, server, bottleneck),
                    Direction::ToPlayers => net.pass_bottleneck(server, player, bottleneck),
                    Direction::Both => {
                        net.pass_bottleneck(player, server, bottleneck);
                        net.pass_bottleneck(server, player, second_bottleneck);
                    }
                }
                player
            })
            .collect();
        net.run_for(Duration::from_secs(3));
        assert_eq!(net.machine(server).endpoint.stats().players, usize::from(count));
        let interval = Duration::from_nanos(1_000_000_000 / 60);
        let start = net.now();
        let stream =
            |player: u8, next_at: Option<Instant>| Some(Stream { start, interval, len, player, next_at, sent: 0 });
        let to_server = direction != Direction::ToPlayers;
        let to_players = direction != Direction::ToServer;
        for (number, &player) in (0..).zip(&players) {
            let phase = net.rng().duration(interval);
            net.with(player, |player, _| player.stream = stream(number, to_server.then_some(start + phase)));
        }
        net.with(server, |server, _| server.stream = stream(0, to_players.then_some(start)));
        Self { net, bottleneck, second_bottleneck, server, players, direction }
    }

    fn counters(&self) -> [u64; 3] {
        let mut sum = [0; 3];
        for &player in &self.players {
            let counters = match self.direction {
                Direction::ToServer | Direction::Both => self.net.counters(player, self.server),
                Direction::ToPlayers => self.net.counters(self.server, player),
            };
            sum[0] += counters.sent.datagrams;
            sum[1] += counters.sent.bytes;
            sum[2] += counters.lost().datagrams;
        }
        sum
    }

    /// The number of messages of each stream that were sent and have not arrived.
    pub fn outstanding(&self) -> Vec<usize> {
        let arena = self.net.machine(self.server);
        let mut arrived = vec![0; self.players.len()];
        arena.arrivals.count(&mut arrived);
        let sent = |stream: &Option<Stream>| stream.as_ref().map_or(0, |stream| stream.sent);
        let to_server = self.players.iter().zip(&arrived).map(|(&player, arrived)| {
            let player = self.net.machine(player);
            sent(&player.stream) - arrived
        });
        let to_players = self.players.iter().map(|&player| {
            let player = self.net.machine(player);
            sent(&arena.stream) - player.arrivals.0.len()
        });
        to_server.chain(to_players).collect()
    }

    /// Runs for a while, and returns what happened to the messages that arrived in that time.
    pub fn measure(&mut self, time: Duration) -> Period {
        let from = self.net.now();
        let before = self.counters();
        self.net.run_for(time);
        let after = self.counters();
        let to = self.net.now();
        let mut times = Vec::new();
        self.net.machine(self.server).arrivals.within(from, to, &mut times);
        for &player in &self.players {
            self.net.machine(player).arrivals.within(from, to, &mut times);
        }
        times.sort();
        let at = |share: f64| times.get((times.len().saturating_sub(1) as f64 * share) as usize).copied();
        let [datagrams, bytes, lost] = std::array::from_fn(|index| after[index] - before[index]);
        Period {
            p50: at(0.5).unwrap_or_default(),
            p99: at(0.99).unwrap_or_default(),
            datagrams,
            bytes,
            loss: lost as f64 / datagrams.max(1) as f64,
            messages: times.len(),
            max_outstanding: self.outstanding().into_iter().max().unwrap_or_default(),
        }
    }

    /// The statistics of the sending side of a player's connection.
    pub fn sender_stats(&self, number: usize) -> ConnectionStats {
        match self.direction {
            Direction::ToServer | Direction::Both => {
                self.net.machine(self.players[number]).client.connection().map(Connection::stats).unwrap()
            }
            Direction::ToPlayers => {
                let endpoint = &self.net.machine(self.server).endpoint;
                let player = endpoint.players().nth(number).unwrap();
                endpoint.connection(player).map(Connection::stats).unwrap()
            }
        }
    }
}
