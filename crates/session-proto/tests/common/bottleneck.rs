//! Downloads of sessions and CUBIC flows that share one bottleneck.

use super::{SERVER, client_config, ms, server_config};
use rallypoint_machine::Machine;
use rallypoint_netsim::{BottleneckId, CubicReceiver, CubicSender, Link, Network, Node};
use rallypoint_session_proto::{
    Client, ConnectionConfig, DisconnectReason, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL, PlayerId,
    ServerEvent,
};
use std::time::{Duration, Instant};

/// A server that always has something to send to each player.
pub struct Source {
    pub endpoint: Endpoint,
    pub disconnects: Vec<DisconnectReason>,
    message: Vec<u8>,
}

/// A client that counts what it receives.
pub struct Sink {
    pub client: Client,
    pub bytes: u64,
}

impl Source {
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, disconnects: Vec::new(), message: vec![7; 400] }
    }

    fn fill(&mut self, now: Instant, player: PlayerId) {
        while self.endpoint.send(now, player, ONLY_CHANNEL, &self.message).is_ok() {}
    }

    fn poll(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            if let ServerEvent::Disconnected(_, reason) = &event {
                self.disconnects.push(reason.clone());
            }
            if let ServerEvent::Connected(_) | ServerEvent::Writable(_) = event {
                let players: Vec<PlayerId> = match event {
                    ServerEvent::Writable(player) => vec![player],
                    _ => self.endpoint.players().collect(),
                };
                players.into_iter().for_each(|player| self.fill(now, player));
            }
        }
    }
}

impl Sink {
    pub fn new(client: Client) -> Self {
        Self { client, bytes: 0 }
    }

    fn poll(&mut self, _now: Instant) {
        while self.client.poll_event().is_some() {}
        while let Some((_, message)) = self.client.recv() {
            self.bytes += message.len() as u64;
        }
    }
}

application_machine!(Source { machine: endpoint, on_input: poll });
application_machine!(Sink { machine: client, on_input: poll });

/// One bottleneck, and the flows through it.
pub struct SharedBottleneck {
    pub net: Network,
    pub id: BottleneckId,
    window: usize,
    pub server: Node<Source>,
    pub sinks: Vec<Node<Sink>>,
    pub cubics: Vec<(Node<CubicSender>, Node<CubicReceiver>)>,
}

/// Bytes that each flow delivered, and the share of its datagrams that was dropped.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    pub sessions: Vec<u64>,
    pub cubics: Vec<u64>,
    pub session_loss: f64,
    pub cubic_loss: f64,
}

impl Shares {
    /// Share of the sessions in all delivered bytes.
    pub fn of_sessions(&self) -> f64 {
        let sessions: u64 = self.sessions.iter().sum();
        let cubics: u64 = self.cubics.iter().sum();
        sessions as f64 / (sessions + cubics).max(1) as f64
    }
}

impl SharedBottleneck {
    /// A bottleneck of this rate and queue. Every flow has this round-trip time, and sessions have this window on both sides.
    fn new(seed: u64, rtt: Duration, bits_per_second: u64, queue: usize, window: usize) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(Link::default().delay(rtt / 2));
        let id = net.add_bottleneck(bits_per_second, queue);
        let connection = ConnectionConfig { window, ..ConnectionConfig::default() };
        let config = EndpointConfig { max_per_address: 255, connection, ..server_config() };
        let endpoint = Endpoint::new(config, [1; 32]).unwrap();
        let server = net.add(SERVER, Source::new(endpoint));
        Self { net, id, window, server, sinks: Vec::new(), cubics: Vec::new() }
    }

    /// A queue of this many bandwidth-delay products, and the largest window.
    pub fn with_bdp(seed: u64, rtt: Duration, bits_per_second: u64, bdp: f64) -> Self {
        Self::with_window(seed, rtt, bits_per_second, bdp, 16_384)
    }

    /// A queue of this many bandwidth-delay products, and this window.
    pub fn with_window(seed: u64, rtt: Duration, bits_per_second: u64, bdp: f64, window: usize) -> Self {
        let queue = bits_per_second as f64 / 8.0 * rtt.as_secs_f64() * bdp;
        Self::new(seed, rtt, bits_per_second, queue as usize, window)
    }

    pub fn add_session(&mut self) {
        let number = self.sinks.len() as u8 + 1;
        let connection = ConnectionConfig { window: self.window, ..ConnectionConfig::default() };
        let config = rallypoint_session_proto::ClientConfig { connection, ..client_config(Encryption::Plain) };
        let client = Client::new(self.net.now(), SERVER.into(), config, [number; 32]).unwrap();
        let address = ([10, 0, 1, number], 1000);
        let sink = self.net.add(address, Sink::new(client));
        self.net.pass_bottleneck(self.server, sink, self.id);
        self.sinks.push(sink);
    }

    pub fn add_cubic(&mut self, segment: usize) {
        let number = self.cubics.len() as u8 + 1;
        let receiver = self.net.add(([10, 0, 2, number], 2000), CubicReceiver::default());
        let to = self.net.address(receiver);
        let now = self.net.now();
        let sender = self.net.add(([10, 0, 3, number], 2000), CubicSender::new(now + ms(1), to, segment));
        self.net.pass_bottleneck(sender, receiver, self.id);
        self.cubics.push((sender, receiver));
    }

    /// Adds sessions and CUBIC flows one after the other, a few milliseconds apart.
    pub fn add(&mut self, sessions: usize, cubics: usize, segment: usize) {
        self.add_apart(sessions, cubics, segment, None);
    }

    /// Adds sessions and flows of CUBIC with this time between two of them.
    pub fn add_apart(&mut self, sessions: usize, cubics: usize, segment: usize, pause: Option<Duration>) {
        for number in 0..sessions + cubics {
            if number < sessions {
                self.add_session();
            } else {
                self.add_cubic(segment);
            }
            let pause = pause.unwrap_or_else(|| self.net.rng().duration(ms(40)));
            self.net.run_for(pause);
        }
    }

    fn totals(&self) -> (Vec<u64>, Vec<u64>, [u64; 4]) {
        let sessions = self.sinks.iter().map(|&sink| self.net.machine(sink).bytes).collect();
        let cubics = self.cubics.iter().map(|&(_, receiver)| self.net.machine(receiver).bytes()).collect();
        let mut counts = [0; 4];
        for &sink in &self.sinks {
            let counters = self.net.counters(self.server, sink);
            counts[0] += counters.sent.datagrams;
            counts[1] += counters.lost_queue.datagrams;
        }
        for &(sender, receiver) in &self.cubics {
            let counters = self.net.counters(sender, receiver);
            counts[2] += counters.sent.datagrams;
            counts[3] += counters.lost_queue.datagrams;
        }
        (sessions, cubics, counts)
    }

    /// Runs for a while, and returns what the flows did in that time.
    pub fn measure(&mut self, time: Duration) -> Shares {
        let (sessions, cubics, counts) = self.totals();
        self.net.run_for(time);
        let (sessions_after, cubics_after, counts_after) = self.totals();
        let difference = |after: Vec<u64>, before: Vec<u64>| {
            after.iter().zip(before).map(|(after, before)| after - before).collect()
        };
        let [session_sent, session_lost, cubic_sent, cubic_lost] =
            std::array::from_fn(|index| (counts_after[index] - counts[index]) as f64);
        Shares {
            sessions: difference(sessions_after, sessions),
            cubics: difference(cubics_after, cubics),
            session_loss: session_lost / session_sent.max(1.0),
            cubic_loss: cubic_lost / cubic_sent.max(1.0),
        }
    }
}
