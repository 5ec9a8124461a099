//! Players who share one bottleneck, before and after a disturbance.

use crate::{
    library::{Library, Side, ms, numbered},
    traffic::IP_UDP,
};
use rallypoint_netsim::{BottleneckId, CubicReceiver, CubicSender, Link, Network, Node};
use std::time::{Duration, Instant};

/// Events on the shared link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// It has 30 % of its rate for 2 s.
    Dip,
    /// Half of the datagrams are lost for 2 s, in both directions.
    LossBurst,
    /// A CUBIC flow uses it for 10 s.
    Download,
}

impl Disturbance {
    pub const ALL: [Self; 3] = [Self::Dip, Self::LossBurst, Self::Download];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Dip => "dip",
            Self::LossBurst => "loss burst",
            Self::Download => "download",
        }
    }

    pub const fn description(self) -> &'static str {
        match self {
            Self::Dip => "The link has 30 % of its rate for 2 s",
            Self::LossBurst => "The link loses half of all datagrams for 2 s, in both directions",
            Self::Download => "A CUBIC flow shares the link for 10 s",
        }
    }
}

/// Figures of one period.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// 99 % of the messages sent in the period took at most this long. A message that had not arrived 10 s after the last
    /// period counts as if it had arrived then.
    pub p99: Duration,
    /// Wire bytes of both directions per message, including IP and UDP headers.
    pub bytes: f64,
}

/// Length of a message in bytes. A datagram of Rallypoint with it has 224, from which the load is computed.
const SIZE: usize = 200;
const DATAGRAM: u64 = 224;

const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
const DELAY: Duration = Duration::from_millis(25);
const WARM_UP: Duration = Duration::from_secs(3);
/// Length of the two periods that are measured, and the time between the end of the disturbance and the second.
pub const PERIOD: Duration = Duration::from_secs(5);
pub const RECOVERY: Duration = Duration::from_secs(10);

struct Player<C: Library> {
    server: Node<C::Server>,
    client: Node<C::Client>,
    /// When each message was due. If the library does not accept it then, it waits.
    due: Vec<Instant>,
    accepted: usize,
}

struct Crowd<C: Library> {
    net: Network,
    bottleneck: BottleneckId,
    rate: u64,
    players: Vec<Player<C>>,
    start: Instant,
    /// Number of messages that were due so far; the players take turns.
    ticks: u32,
}

/// `count` players send 60 messages of 200 bytes per second each through one link, which they load to this share. Returns the
/// figures before the disturbance and from 10 s after its end on.
pub fn measure<C: Library>(count: u32, load: f64, disturbance: Disturbance) -> [Period; 2] {
    let mut crowd = Crowd::<C>::connect(count, load);
    crowd.run(WARM_UP);
    let before = crowd.period();
    crowd.disturb(disturbance);
    crowd.run(RECOVERY);
    let after = crowd.period();
    crowd.net.run_for(RECOVERY);
    [before, after].map(|(from, to, wire)| crowd.figures(from, to, wire))
}

impl<C: Library> Crowd<C> {
    fn connect(count: u32, load: f64) -> Self {
        let mut net = Network::new(1);
        net.set_default_link(Link::default().delay(DELAY));
        let rate = (f64::from(count) * 60.0 * (DATAGRAM * 8) as f64 / load) as u64;
        let bottleneck = net.add_bottleneck(rate, queue(rate));
        let players = (0..count)
            .map(|number| {
                let [.., a, b] = number.to_be_bytes();
                let address = ([10, 0, a, b], 45_555).into();
                let (server, client) = C::pair(net.now(), address, SIZE);
                let server = net.add(address, server);
                let client = net.add(([10, 1, a, b], 1_000), client);
                net.pass_bottleneck(client, server, bottleneck);
                Player { server, client, due: Vec::new(), accepted: 0 }
            })
            .collect::<Vec<Player<C>>>();
        let is_connected = net.run_while(ms(60_000), |net| {
            players
                .iter()
                .any(|player| !net.machine(player.server).is_connected() || !net.machine(player.client).is_connected())
        });
        assert!(is_connected, "{}: no connection", C::NAME);
        net.run_for(ms(500));
        let start = net.now();
        Self { net, bottleneck, rate, players, start, ticks: 0 }
    }

    /// Every player sends once per frame, one after the other.
    fn run(&mut self, length: Duration) {
        let end = self.net.now() + length;
        let count = self.players.len() as u32;
        loop {
            let at = self.start + FRAME * (self.ticks / count) + FRAME * (self.ticks % count) / count;
            if at >= end {
                break;
            }
            self.net.run_until(at);
            let player = &mut self.players[(self.ticks % count) as usize];
            self.ticks += 1;
            player.due.push(at);
            let Player { due, accepted, .. } = player;
            self.net.with(player.client, |side, now| {
                while *accepted < due.len() && side.send(now, &numbered(*accepted as u32, SIZE)) {
                    *accepted += 1;
                }
                side.end_frame(now);
            });
            self.net.with(player.server, Side::end_frame);
        }
        self.net.run_until(end);
    }

    fn disturb(&mut self, disturbance: Disturbance) {
        let link = Link::default().delay(DELAY);
        match disturbance {
            Disturbance::Dip => {
                self.net.set_bottleneck(self.bottleneck, self.rate * 3 / 10, queue(self.rate));
                self.run(ms(2_000));
                self.net.set_bottleneck(self.bottleneck, self.rate, queue(self.rate));
            }
            Disturbance::LossBurst => {
                self.net.set_default_link(link.loss(0.5));
                self.run(ms(2_000));
                self.net.set_default_link(link);
            }
            Disturbance::Download => {
                let receiver = self.net.add(([10, 2, 0, 1], 2_000), CubicReceiver::default());
                let sender = CubicSender::new(self.net.now(), self.net.address(receiver), 1_200);
                let sender = self.net.add(([10, 2, 0, 2], 2_000), sender);
                self.net.pass_bottleneck(sender, receiver, self.bottleneck);
                self.run(ms(10_000));
                self.net.remove(sender);
                self.net.remove(receiver);
            }
        }
    }

    /// Runs for a period, and returns its start and end, and the wire bytes of that time.
    fn period(&mut self) -> (Instant, Instant, u64) {
        let from = self.net.now();
        let before = self.wire();
        self.run(PERIOD);
        (from, self.net.now(), self.wire() - before)
    }

    fn wire(&self) -> u64 {
        let sent = self.net.totals().sent;
        sent.bytes + IP_UDP * sent.datagrams
    }

    fn figures(&self, from: Instant, to: Instant, wire: u64) -> Period {
        let mut times: Vec<Duration> = Vec::new();
        for player in &self.players {
            let received = self.net.machine(player.server).received();
            let sent = player.due.iter().enumerate().filter(|(_, due)| (from..to).contains(*due));
            times.extend(sent.map(|(number, due)| received.at(number).unwrap_or_else(|| self.net.now()) - *due));
        }
        times.sort();
        Period { p99: times[(times.len() - 1) * 99 / 100], bytes: wire as f64 / times.len() as f64 }
    }
}

/// A queue of 100 ms.
fn queue(bits_per_second: u64) -> usize {
    (bits_per_second / 80) as usize
}
