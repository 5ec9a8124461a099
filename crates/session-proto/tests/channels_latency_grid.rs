//! What `channels_latency` shows on a calm path, on others: positions that begin beside a download at full speed, jitter, bursts of
//! loss, sides that are polled once per frame, larger positions, downloads in both directions, expiring messages (W114). With
//! `cargo xtask test --full` each cell runs with several seeds; otherwise some cells with one.

use crate::common;

use common::{
    CLIENT, SERVER,
    channels::{ClientApp, ServerApp},
    frames::Framed,
    ms, number_of, numbered, secs,
};
use rallypoint_netsim::{Link, Network, Node, is_full};
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientConfig, Encryption, EndpointConfig, SendError,
    SessionMachine,
};
use std::time::{Duration, Instant};

/// 60 positions per second.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Frames of 62.5 per second, whose phase drifts against that of the other side.
const SERVER_FRAME: Duration = Duration::from_millis(16);

const BULK: ChannelIndex = ChannelIndex::new(0).unwrap();
const POSITIONS: ChannelIndex = ChannelIndex::new(1).unwrap();

/// A path, and the session on it.
#[derive(Clone, Copy, Debug)]
struct Cell {
    name: &'static str,
    link: Link,
    /// Interval at which both sides are polled; zero if they are driven at once.
    is_framed: bool,
    /// Bytes of a position.
    size: usize,
    mode: ChannelMode,
    is_encrypted: bool,
    /// Whether the client sends.
    is_upload: bool,
    /// Whether there is a download in the other direction as well.
    is_bulk_in_both: bool,
    window: usize,
    /// The path after 8 s; then the positions from 11 s on count.
    later_link: Option<Link>,
    /// Time for which the download runs before the first position.
    head_start: Duration,
    /// Greatest ratio of a position's delay beside a download to that alone.
    max_ratio: f64,
    /// Least bytes per second of the download.
    min_bulk: f64,
}

/// The measurements of a run.
#[derive(Debug)]
struct Measured {
    /// 99th percentile of the time from `send` to the application.
    p99: Duration,
    /// 99th percentile of the age of the newest position that the receiver has.
    age: Duration,
    /// 99th percentile of that age from the second second on.
    settled_age: Duration,
    /// Bytes of bulk per second.
    bulk: f64,
    /// Bytes of bulk per second before the first position.
    bulk_before: f64,
    delivered: f64,
}

/// The path of the goal.
fn path() -> Link {
    Link::default().delay(ms(25)).bottleneck(5_000_000, 64_000)
}

fn goal() -> Cell {
    Cell {
        name: "goal",
        link: path(),
        is_framed: false,
        size: 40,
        mode: ChannelMode::Sequenced,
        is_encrypted: true,
        is_upload: false,
        is_bulk_in_both: false,
        window: 4_096,
        later_link: None,
        head_start: secs(4),
        max_ratio: 2.0,
        min_bulk: 400_000.0,
    }
}

type Server = Node<Framed<ServerApp>>;
type Client = Node<Framed<ClientApp>>;

/// The two sides of a run.
struct Sides {
    net: Network,
    server: Server,
    client: Client,
}

impl Sides {
    fn connect(seed: u64, cell: &Cell) -> Self {
        let bulk = Channel { queue: 400_000, ..Channel::new(ChannelMode::ReliableOrdered, 1_000_000) };
        let table = ChannelTable::new(vec![bulk, Channel::new(cell.mode, 1_000)]).unwrap();
        let mut net = Network::new(seed);
        net.set_default_link(cell.link);
        let mut config = EndpointConfig::for_game("tag").channels(table.clone());
        config.connection.window = cell.window;
        let mut app = ServerApp::new(config);
        let frame = if cell.is_framed { SERVER_FRAME } else { Duration::ZERO };
        app.server.set_poll_interval(frame);
        let server = net.add(SERVER, Framed::new(net.now(), app, frame));
        let mut config = ClientConfig::new("alice", "tag").channels(table);
        config.encryption = if cell.is_encrypted { Encryption::Encrypted } else { Encryption::Plain };
        config.connection.window = cell.window;
        let mut app = ClientApp::new(net.now(), config, 2);
        let frame = if cell.is_framed { INTERVAL } else { Duration::ZERO };
        app.client.set_poll_interval(frame);
        let client = net.add(CLIENT, Framed::new(net.now(), app, frame));
        let is_connected = net.run_while(secs(10), |net| !net.machine(client).machine.client.is_connected());
        assert!(is_connected);
        Self { net, server, client }
    }

    fn send(&mut self, from_client: bool, channel: ChannelIndex, message: &[u8]) -> Result<(), SendError> {
        if from_client {
            self.net.with(self.client, |app, now| app.machine.client.send(now, channel, message)).map(|_| ())
        } else {
            let send = |app: &mut Framed<ServerApp>, now| {
                let player = app.machine.player();
                app.machine.server.send(now, player, channel, message).map(|_| ())
            };
            self.net.with(self.server, send)
        }
    }

    /// Keeps the downloads busy.
    fn send_bulk(&mut self, cell: &Cell) {
        while self.send(cell.is_upload, BULK, &[7; 5_000]).is_ok() {}
        while cell.is_bulk_in_both && self.send(!cell.is_upload, BULK, &[7; 5_000]).is_ok() {}
    }

    /// Runs until the application sends next: at the beginning of a frame, if there are frames.
    fn run_frame(&mut self, is_upload: bool) {
        let next = if is_upload {
            self.net.machine(self.client).next_frame()
        } else {
            self.net.machine(self.server).next_frame()
        };
        match next {
            None => self.net.run_for(INTERVAL),
            Some(at) => {
                // The frame that is about to begin has sent already.
                self.net.run_until(at);
                let frame = if is_upload { INTERVAL } else { SERVER_FRAME };
                self.net.run_until(at + frame - Duration::from_micros(1));
            }
        }
    }
}

/// Positions for 20 s, with or without a download.
fn measure(seed: u64, cell: &Cell, has_bulk: bool) -> Measured {
    let mut sides = Sides::connect(seed, cell);
    let began_at = sides.net.now();
    while sides.net.now() < began_at + cell.head_start {
        if has_bulk {
            sides.send_bulk(cell);
        }
        sides.run_frame(cell.is_upload);
    }
    let start = sides.net.now();
    let mut sent_at: Vec<Instant> = Vec::new();
    let mut later_link = cell.later_link;
    while sides.net.now() < start + secs(20) {
        if let Some(link) = later_link.take_if(|_| sides.net.now() >= start + secs(8)) {
            sides.net.set_links(sides.client, sides.server, link);
        }
        let number = sent_at.len() as u32;
        sent_at.push(sides.net.now());
        sides.send(cell.is_upload, POSITIONS, &numbered(number, cell.size)).unwrap();
        if has_bulk {
            sides.send_bulk(cell);
        }
        sides.run_frame(cell.is_upload);
    }
    let end = sides.net.now();
    let received = if cell.is_upload {
        &sides.net.machine(sides.server).machine.received
    } else {
        &sides.net.machine(sides.client).machine.received
    };
    let arrivals: Vec<(Instant, Instant)> = received
        .iter()
        .filter(|message| message.channel == POSITIONS)
        .map(|message| (message.at, sent_at[number_of(&message.bytes) as usize]))
        .filter(|(_, sent)| cell.later_link.is_none() || *sent >= start + secs(11))
        .collect();
    let bulk: usize = received.iter().filter(|m| m.channel == BULK && m.at > start).map(|m| m.bytes.len()).sum();
    let before: usize = received.iter().filter(|m| m.channel == BULK && m.at <= start).map(|m| m.bytes.len()).sum();
    Measured {
        bulk_before: before as f64 / cell.head_start.as_secs_f64(),
        p99: percentile(arrivals.iter().map(|(at, sent)| *at - *sent).collect()),
        age: percentile(ages(&arrivals, start + ms(500), end)),
        settled_age: percentile(ages(&arrivals, start + secs(2), end)),
        bulk: bulk as f64 / 20.0,
        delivered: arrivals.len() as f64 / (number_counted(&sent_at, start, cell) as f64),
    }
}

/// Number of positions that count.
fn number_counted(sent_at: &[Instant], start: Instant, cell: &Cell) -> usize {
    sent_at.iter().filter(|at| cell.later_link.is_none() || **at >= start + secs(11)).count()
}

fn percentile(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[durations.len() * 99 / 100]
}

/// The age of the newest position that has arrived, every 2 ms.
fn ages(arrivals: &[(Instant, Instant)], start: Instant, end: Instant) -> Vec<Duration> {
    let mut ages = Vec::new();
    let mut newest = None;
    let mut arrivals = arrivals.iter().peekable();
    let mut at = start;
    while at < end {
        while let Some((_, sent)) = arrivals.next_if(|(arrived, _)| *arrived <= at) {
            newest = newest.max(Some(*sent));
        }
        if let Some(newest) = newest {
            ages.push(at - newest);
        }
        at += ms(2);
    }
    ages
}

/// Compares positions beside a download with positions alone.
fn check(seed: u64, cell: &Cell) -> Result<(), String> {
    let alone = measure(seed, cell, false);
    let beside = measure(seed, cell, true);
    let is_met = beside.p99 < alone.p99.mul_f64(cell.max_ratio)
        && beside.age < alone.age.mul_f64(cell.max_ratio)
        && beside.bulk > cell.min_bulk
        && beside.delivered > 0.95 * alone.delivered;
    let show = |at: Duration| format!("{:.1}", at.as_secs_f64() * 1e3);
    let text = format!(
        "{} {}, seed {seed}: p99 {} alone, {} beside; age {} alone, {} beside, {} later; bulk {:.0} kB/s, {:.0} before; {:.3} and {:.3} delivered",
        if is_met { "met" } else { "MISSED" },
        cell.name,
        show(alone.p99),
        show(beside.p99),
        show(alone.age),
        show(beside.age),
        show(beside.settled_age),
        beside.bulk / 1e3,
        beside.bulk_before / 1e3,
        alone.delivered,
        beside.delivered,
    );
    println!("{text}");
    if is_met { Ok(()) } else { Err(text) }
}

/// Runs these cells with one seed, or with several in the full run.
fn check_cells(cells: &[Cell]) {
    let seeds = if is_full() { 1..=6 } else { 1..=1 };
    let missed: Vec<String> =
        seeds.flat_map(|seed| cells.iter().filter_map(move |cell| check(seed, cell).err())).collect();
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[test]
fn w114_positions_that_begin_beside_a_download_at_full_speed() {
    check_cells(&[
        goal(),
        Cell { name: "upload", is_upload: true, is_encrypted: false, ..goal() },
        Cell { name: "both directions", is_bulk_in_both: true, min_bulk: 5_000.0, ..goal() },
    ]);
}

#[test]
fn w114_positions_beside_a_download_on_a_path_that_becomes_slower() {
    let slower = |rate| Some(Link::default().delay(ms(25)).bottleneck(rate, 64_000));
    check_cells(&[
        Cell { name: "5 to 1 Mbit/s", later_link: slower(1_000_000), min_bulk: 200_000.0, ..goal() },
        Cell { name: "5 to 3 Mbit/s", later_link: slower(3_000_000), min_bulk: 250_000.0, ..goal() },
    ]);
}

#[test]
fn w114_positions_beside_a_download_on_a_path_with_jitter() {
    // A delay that varies by more than the target cannot be told from a queue for long, so the download gets less of the path.
    let jitter = |jitter| path().jitter(ms(jitter));
    check_cells(&[
        Cell { name: "jitter 5", link: jitter(5).delay(ms(22)), min_bulk: 200_000.0, ..goal() },
        Cell { name: "jitter 10", link: jitter(10).delay(ms(20)), min_bulk: 50_000.0, ..goal() },
        Cell { name: "jitter 20", link: jitter(20).delay(ms(15)), min_bulk: 10_000.0, ..goal() },
        Cell { name: "reordering", link: path().jitter_reordering(ms(10)), ..goal() },
    ]);
}

#[test]
fn w114_positions_beside_a_download_on_a_path_with_bursts_of_loss() {
    check_cells(&[
        Cell { name: "bursts 2 % of 8", link: path().bursts(0.02, 8.0), min_bulk: 200_000.0, ..goal() },
        Cell { name: "loss 2 %", link: path().loss(0.02), min_bulk: 200_000.0, ..goal() },
    ]);
}

#[test]
fn w114_positions_beside_a_download_of_sides_that_are_polled_once_per_frame() {
    check_cells(&[
        Cell { name: "frames", is_framed: true, min_bulk: 300_000.0, ..goal() },
        Cell { name: "frames, upload", is_framed: true, is_upload: true, min_bulk: 300_000.0, ..goal() },
        Cell { name: "frames, loss", is_framed: true, link: path().loss(0.02), min_bulk: 200_000.0, ..goal() },
    ]);
}

#[test]
fn w114_larger_positions_and_expiring_ones_beside_a_download() {
    check_cells(&[
        Cell { name: "200 bytes", size: 200, ..goal() },
        Cell { name: "400 bytes", size: 400, ..goal() },
        Cell { name: "900 bytes", size: 900, ..goal() },
        Cell { name: "expiring", mode: ChannelMode::Expiring, ..goal() },
        // A message that is lost takes a round trip more. Alone, it is sent twice.
        Cell {
            name: "expiring, loss",
            mode: ChannelMode::Expiring,
            link: path().loss(0.02),
            min_bulk: 200_000.0,
            max_ratio: 3.5,
            ..goal()
        },
    ]);
}

#[test]
fn w114_positions_beside_a_download_that_fills_the_window_of_numbers() {
    check_cells(&[Cell { name: "window 64", window: 64, link: path().loss(0.02), min_bulk: 80_000.0, ..goal() }]);
    // The default window holds what is under way here. It takes long.
    if is_full() {
        let fast = Link::default().delay(ms(75)).bottleneck(100_000_000, 1_000_000).loss(0.001);
        check_cells(&[Cell { name: "100 Mbit/s", link: fast, min_bulk: 1_000_000.0, ..goal() }]);
    }
}
