//! A row for each mode of a channel, beside the corresponding channels of ENet and renet: in loss, and in a crowd.

use crate::{enet::Enet, renet::Renet};
use crate::{
    library::{Received, Side, ms, numbered},
    rallypoint_channels::RallypointChannels,
    traffic::IP_UDP,
};
use rallypoint_bench::Table;
use rallypoint_netsim::{Link, Network, Node};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The delivery guarantee of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Ordered,
    Unordered,
    Sequenced,
    Expiring,
}

/// A library with channels of several modes.
pub trait ModeLibrary {
    type Server: Side;
    type Client: Side;

    /// Creates both sides, with a channel of this mode for messages of `size` bytes, if the library has such channels.
    fn pair(now: Instant, server: SocketAddr, size: usize, mode: Mode) -> Option<(Self::Server, Self::Client)>;
}

const MODES: [Mode; 4] = [Mode::Ordered, Mode::Unordered, Mode::Sequenced, Mode::Expiring];
const LOSS: [f64; 3] = [0.0, 0.05, 0.2];
const LOADS: [f64; 3] = [0.6, 0.9, 1.1];
const CROWD: u32 = 30;
const RTT: Duration = Duration::from_millis(50);
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
const LENGTH: Duration = Duration::from_secs(20);
const SIZE: usize = 200;

/// Bytes of a datagram with a message: those of rallypoint without channels.
const DATAGRAM: u64 = 224;

/// Figures of one run.
struct Figures {
    /// Share of the messages that arrived.
    delivered: f64,
    /// 99 % of those that arrived took at most this long.
    p99: Duration,
    /// At 99 % of all times, the newest message that had arrived was at most this old.
    age: Duration,
    /// Wire bytes per message.
    bytes: f64,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "reliable ordered",
            Self::Unordered => "reliable unordered",
            Self::Sequenced => "sequenced",
            Self::Expiring => "expiring (250 ms)",
        }
    }
}

/// Both tables.
pub fn tables() -> String {
    let headings = ["channel", "network", "rallypoint", "rusty_enet", "renet"];
    let mut loss_table = Table::new(&headings);
    let mut crowd_table = Table::new(&headings);
    for mode in MODES {
        for loss in LOSS {
            eprintln!("channels {}, {loss}", mode.name());
            let network = Conditions { players: 1, loss, load: None };
            loss_table.row(row(mode, format!("{} % loss", loss * 100.0), network));
        }
        for load in LOADS {
            eprintln!("channels {}, crowd at {load}", mode.name());
            let network = Conditions { players: CROWD, loss: 0.0, load: Some(load) };
            crowd_table.row(row(mode, format!("{:.0} % load", load * 100.0), network));
        }
    }
    format!(
        "### Channels\n\nDelivered / 99 % of those arrive within / 99 % of the time the newest is at most this old (ms) \
         (wire bytes per message, with 28 for IP and UDP in every datagram).\n\nOne player:\n\n{loss_table}\n{CROWD} players through one \
         bottleneck with a queue of 100 ms:\n\n{crowd_table}\n60 messages of {SIZE} bytes per second from each client to its server, RTT \
         {RTT:?}, {LENGTH:?}. The load is what datagrams of {DATAGRAM} bytes would cause; above 100 % not everything can arrive. \
         ENet's nearest channels are reliable, unreliable (which is sequenced) and unsequenced; it has no reliable unordered one. \
         renet has one unreliable channel, in both of the last rows. Expiring messages are resent by rallypoint only. A datagram with \
         an unreliable message has 212 bytes with ENet and 227 with rallypoint: at 110 % load the path carries 96 % of the former \
         and 90 % of the latter.\n\n"
    )
}

/// The server and the client of one player.
type PlayerNodes<C> = (Node<<C as ModeLibrary>::Server>, Node<<C as ModeLibrary>::Client>);

#[derive(Clone, Copy)]
struct Conditions {
    players: u32,
    loss: f64,
    load: Option<f64>,
}

fn row(mode: Mode, network: String, conditions: Conditions) -> [String; 5] {
    let cell = |figures: Option<Figures>| {
        figures.map_or("-".to_owned(), |figures| {
            let [p99, age] = [figures.p99, figures.age].map(|time| time.as_secs_f64() * 1e3);
            format!("{:.1} % / {p99:.0} / {age:.0} ({:.0})", figures.delivered * 100.0, figures.bytes)
        })
    };
    [
        mode.name().to_owned(),
        network,
        cell(measure::<RallypointChannels>(mode, conditions)),
        cell(measure::<Enet>(mode, conditions)),
        cell(measure::<Renet>(mode, conditions)),
    ]
}

fn measure<C: ModeLibrary>(mode: Mode, conditions: Conditions) -> Option<Figures> {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(RTT / 2));
    let bottleneck = conditions.load.map(|load| {
        let rate = (f64::from(conditions.players) * 60.0 * (DATAGRAM * 8) as f64 / load) as u64;
        net.add_bottleneck(rate, (rate / 80) as usize)
    });
    let mut players: Vec<PlayerNodes<C>> = Vec::new();
    for number in 0..conditions.players {
        let [.., a, b] = number.to_be_bytes();
        let address = ([10, 0, a, b], 45_555).into();
        let (server, client) = C::pair(net.now(), address, SIZE, mode)?;
        let server = net.add(address, server);
        let client = net.add(([10, 1, a, b], 1_000), client);
        if let Some(bottleneck) = bottleneck {
            net.pass_bottleneck(client, server, bottleneck);
        }
        players.push((server, client));
    }
    let is_connected = net.run_while(ms(60_000), |net| {
        let is_pending = |(server, client): &PlayerNodes<C>| {
            !net.machine(*server).is_connected() || !net.machine(*client).is_connected()
        };
        players.iter().any(is_pending)
    });
    assert!(is_connected, "no connection");
    net.run_for(ms(500));
    net.set_default_link(Link::default().delay(RTT / 2).loss(conditions.loss));
    let before = net.totals().sent;
    let start = net.now();
    let frames = (LENGTH.as_nanos() / FRAME.as_nanos()) as u32;
    let mut sent = 0;
    for number in 0..frames {
        for (position, (server, client)) in (0..).zip(&players) {
            net.run_until(start + FRAME * number + FRAME * position / conditions.players);
            net.with(*client, |side, now| {
                // A full queue loses the message: there is always a newer one.
                sent += u64::from(side.send(now, &numbered(number, SIZE)));
                side.end_frame(now);
            });
            net.with(*server, Side::end_frame);
        }
    }
    let after = net.totals().sent;
    let wire = after.bytes - before.bytes + IP_UDP * (after.datagrams - before.datagrams);
    let end = start + FRAME * frames;
    net.run_for(ms(10_000));
    let mut figures = Samples::default();
    for (position, (server, _)) in (0..).zip(&players) {
        figures.add(net.machine(*server).received(), start + FRAME * position / conditions.players, end);
    }
    Some(figures.finish(u64::from(frames) * u64::from(conditions.players), wire))
}

#[derive(Default)]
struct Samples {
    times: Vec<Duration>,
    ages: Vec<Duration>,
}

impl Samples {
    fn add(&mut self, received: &Received, first: Instant, end: Instant) {
        let sent_at = |number: u32| first + FRAME * number;
        self.times.extend(received.arrivals().iter().map(|(number, at)| *at - sent_at(*number)));
        // The newest message that had arrived, every 5 ms.
        let mut newest = None;
        let mut arrivals = received.arrivals().iter().peekable();
        let mut now = first + ms(500);
        while now < end {
            while let Some((number, _)) = arrivals.next_if(|(_, at)| *at <= now) {
                newest = newest.max(Some(*number));
            }
            self.ages.push(newest.map_or(now - first, |number| now.saturating_duration_since(sent_at(number))));
            now += ms(5);
        }
    }

    fn finish(mut self, messages: u64, wire: u64) -> Figures {
        let p99 = |values: &mut Vec<Duration>| {
            values.sort();
            values.get((values.len().max(1) - 1) * 99 / 100).copied().unwrap_or_default()
        };
        Figures {
            delivered: self.times.len() as f64 / messages as f64,
            p99: p99(&mut self.times),
            age: p99(&mut self.ages),
            bytes: wire as f64 / messages as f64,
        }
    }
}
