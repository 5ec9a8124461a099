//! `cargo xtask bench history`: 10,000 servers for 30 days, minute by minute, in a real file.
//!
//! The time in the file is simulated, so a month takes minutes; everything else is as in `rallypoint serve`.

use rallypoint_bench::{Failure, Goals, Random, Table, machine, nanoseconds, rate};
use rallypoint_history::{
    History, HistoryOptions, HistoryReader, Observation, ObservedServer, Resolution, ServerSource, Subject, UnixSeconds,
};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

const SERVERS: usize = 10_000;
const DAYS: i64 = 30;
/// Start of a day.
const START: UnixSeconds = 1_800_057_600;
const MINUTE: UnixSeconds = 60;
const DAY: UnixSeconds = 86_400;
const END: UnixSeconds = START + DAYS * DAY;
/// Number of times that each graph is requested, each time of another server.
const GRAPHS: usize = 500;

const MAX_BYTES: u64 = 2_000_000_000;
const MAX_GRAPH_TIME: Duration = Duration::from_millis(20);
const MAPS: [&str; 6] = ["ctf_truefort", "ctf_2dfort", "cp_dirtbowl", "koth_valley", "arena_montane", "gen_destroy"];

fn main() -> ExitCode {
    Failure::exit(measure().map(|section| println!("{section}")))
}

fn measure() -> Result<String, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.db");
    let month = record(&path)?;
    let mut goals = Goals::new();
    goals.add(
        "10,000 servers for 30 days on disk, maximum size",
        rate(month.most_bytes as f64, "B"),
        "less than 2 GB",
        month.most_bytes < MAX_BYTES,
    );
    let mut graphs = Table::new(&["graph", "points", "median", "99 %", "slowest"]);
    let mut slowest = Duration::ZERO;
    let servers = |number| Subject::Server(id(number));
    let lobby = |_| Subject::List(ListId::GANG_GARRISON_2);
    for (name, days, subject) in [
        ("30 days of a server", DAYS, &servers as &dyn Fn(usize) -> Subject),
        ("7 days of a server", 7, &servers),
        ("24 hours of a server", 1, &servers),
        ("30 days of a lobby", DAYS, &lobby),
    ] {
        let graph = graph(&path, days, subject)?;
        graphs.row([
            name.to_owned(),
            graph.points.to_string(),
            duration(graph.middle),
            duration(graph.late),
            duration(graph.slowest),
        ]);
        if days == DAYS {
            slowest = slowest.max(graph.slowest);
        }
    }
    goals.add("a graph of 30 days, the slowest", duration(slowest), "less than 20 ms", slowest < MAX_GRAPH_TIME);
    let mut writing = Table::new(&["", "median", "99 %"]);
    writing.row(["writing a minute of 10,000 servers".to_owned(), duration(month.middle), duration(month.late)]);
    let [middle, late, _] = trends(&path)?;
    writing.row([
        "reading the last day and week of all of them, once an hour".to_owned(),
        duration(middle),
        duration(late),
    ]);
    Ok(format!(
        "{goals}\nOn {}.\n\n{graphs}\nEach {GRAPHS} times, of another server and with a newly opened file each time; the \
         file is in the page cache.\n\n{writing}\n{} consecutive minutes, written by a background thread. \
         Minutes that end an hour or a day are slower. Servers start and stop, players join and leave, maps change.",
        machine(),
        month.minutes,
    ))
}

struct Month {
    minutes: usize,
    middle: Duration,
    late: Duration,
    most_bytes: u64,
}

fn record(path: &Path) -> Result<Month, Failure> {
    let history = History::start(HistoryOptions::new(path))?;
    let mut world = World::new();
    let mut times = Vec::new();
    let mut most_bytes = 0;
    for time in (START..END).step_by(MINUTE as usize) {
        if (time - START) % DAY == 0 {
            eprintln!("day {} of {DAYS}", (time - START) / DAY + 1);
        }
        world.pass_a_minute();
        history.record(Observation { time, servers: Arc::new(world.clone()), changes: Vec::new() });
        history.flush();
        let stats = history.reader().stats();
        if !stats.is_writing {
            return Err(Failure("the history could not be written: is the disk full?".into()));
        }
        times.push(Duration::from_micros(stats.write_micros));
        most_bytes = most_bytes.max(on_disk(path));
    }
    times.sort_unstable();
    let [middle, late, _] = quantiles(&times);
    Ok(Month { minutes: times.len(), middle, late, most_bytes })
}

/// Size of the database, including the files that SQLite keeps beside it.
fn on_disk(path: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    size(path) + size(&path.with_extension("db-wal")) + size(&path.with_extension("db-shm"))
}

struct Graph {
    points: usize,
    middle: Duration,
    late: Duration,
    slowest: Duration,
}

fn graph(path: &Path, days: i64, subject: &dyn Fn(usize) -> Subject) -> Result<Graph, Failure> {
    let mut times = Vec::new();
    let mut points = 0;
    let mut random = Random::new(2);
    for _ in 0..GRAPHS {
        let subject = subject(random.below(SERVERS as u32) as usize);
        let began = Instant::now();
        let series = HistoryReader::open(path)
            .and_then(|handle| handle.series(&subject, END - days * DAY..END, Resolution::Auto))
            .map_err(|error| Failure(error.to_string()))?;
        times.push(began.elapsed());
        points = series.points.len();
        if !series.points.iter().any(|point| point.players.is_some()) {
            return Err(Failure(format!("nothing was recorded of the {} {subject}", subject.kind())));
        }
    }
    times.sort_unstable();
    let [middle, late, slowest] = quantiles(&times);
    Ok(Graph { points, middle, late, slowest })
}

/// The times of reading the trends of all servers, for the list of the web server.
fn trends(path: &Path) -> Result<[Duration; 3], Failure> {
    let reader = HistoryReader::open(path).map_err(|error| Failure(error.to_string()))?;
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        let trends = reader.trends(END).map_err(|error| Failure(error.to_string()))?;
        times.push(began.elapsed());
        if trends.len() < SERVERS / 2 {
            return Err(Failure(format!("only {} servers have a trend", trends.len())));
        }
    }
    times.sort_unstable();
    Ok(quantiles(&times))
}

/// The median, the 99th percentile, and the maximum.
fn quantiles(sorted: &[Duration]) -> [Duration; 3] {
    [sorted[sorted.len() / 2], sorted[sorted.len() * 99 / 100], sorted[sorted.len() - 1]]
}

fn duration(duration: Duration) -> String {
    nanoseconds(duration.as_nanos() as f64)
}

fn id(server: usize) -> PublicId {
    PublicId::from_bytes((server as u128 + 1).to_be_bytes())
}

/// All servers, with realistic changes.
#[derive(Clone, Debug)]
struct World {
    servers: Vec<Server>,
    random: Random,
}

#[derive(Clone, Debug)]
struct Server {
    name: Arc<str>,
    slots: u16,
    players: u16,
    map: usize,
    is_up: bool,
}

impl World {
    fn new() -> Self {
        let mut random = Random::new(1);
        let server = |number| Server {
            name: format!("Server number {number}").into(),
            slots: 8 + random.below(25) as u16,
            players: 0,
            map: random.below(MAPS.len() as u32) as usize,
            is_up: true,
        };
        Self { servers: (0..SERVERS).map(server).collect(), random: Random::new(3) }
    }

    /// On average, a player joins or leaves every eight minutes, the map changes every hour, and a server is down for half an
    /// hour every two days.
    fn pass_a_minute(&mut self) {
        for server in &mut self.servers {
            let mut is_time = |minutes| self.random.below(minutes) == 0;
            server.is_up = if server.is_up { !is_time(2_880) } else { is_time(30) };
            if is_time(60) {
                server.map = (server.map + 1) % MAPS.len();
            }
            if is_time(16) {
                server.players = (server.players + 1).min(server.slots);
            }
            if is_time(16) {
                server.players = server.players.saturating_sub(1);
            }
        }
    }
}

impl ServerSource for World {
    fn for_each(&self, show: &mut dyn FnMut(ObservedServer<'_>)) {
        for (number, server) in self.servers.iter().enumerate().filter(|(_, server)| server.is_up) {
            show(ObservedServer {
                id: id(number),
                list: ListId::GANG_GARRISON_2,
                players: server.players,
                bots: 0,
                slots: server.slots,
                name: &server.name,
                map: MAPS[server.map],
            });
        }
    }
}
