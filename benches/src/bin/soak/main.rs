//! `cargo xtask soak --minutes N`: a lobby under load, churn, junk, slow clients, reloads and restarts, with its memory,
//! descriptors and latencies watched. It fails if any of them grows.
//!
//! The lobby is restarted several times in the first quarter of the time. The rest is one uninterrupted run. In its first two
//! twelfths servers come, change and leave many times as often, so that whatever is bounded fills up: the events that are kept for
//! streams (8 MB), the filters of endpoints that were seen (W45; they take ten minutes, also to empty again), the page cache of
//! the history. The next two twelfths are not judged, the rest is: its beginning is compared with its end.
#![forbid(unsafe_code)]

mod clients;
mod latency;
mod lobby;
mod servers;

use latency::Latencies;
use lobby::{Lobby, Sample};
use rallypoint_bench::{Failure, Goals, Table, machine, nanoseconds, rate};
use std::{
    ops::Range,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Interval between two samples of the process.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of rows of the table.
const ROWS: u32 = 12;
/// The rows in which what is bounded is filled, and the first one that is judged.
const FILLING: Range<usize> = 3..5;
const FIRST_JUDGED: usize = 7;
/// Number of restarts in the first quarter.
const RESTARTS: u32 = 5;
/// Interval between two reloads of the configuration.
const RELOAD_INTERVAL: Duration = Duration::from_secs(20);
/// Growth that counts as none: allocators keep some memory, and the number of clients varies.
const MAX_MEMORY_GROWTH: f64 = 1.02;
const MAX_MEMORY_SLACK: f64 = 1e6;
const MAX_DESCRIPTOR_GROWTH: f64 = 32.0;
/// Growth of a median latency that counts as none, because it depends on the load of the machine.
const MAX_LATENCY_GROWTH: f64 = 3.0;

/// State that the load threads share.
struct Load {
    is_over: AtomicBool,
    /// Whether the lobby is being restarted: failures do not count.
    is_restarting: AtomicBool,
    /// Whether servers come, change and leave as fast as possible, to fill what is bounded.
    is_filling: AtomicBool,
    lists: Mutex<Latencies>,
    pages: Mutex<Latencies>,
    failures: AtomicU64,
}

/// A part of the run.
struct Row {
    minutes: f64,
    memory: f64,
    /// The part of it that is not mapped from files.
    anonymous: f64,
    descriptors: f64,
    lists: Latencies,
    pages: Latencies,
    failures: u64,
    listed: u64,
}

fn main() -> ExitCode {
    let minutes = std::env::args().skip(1).collect::<Vec<_>>();
    let minutes: Option<f64> = match &minutes[..] {
        [option, minutes] if option == "--minutes" => minutes.parse().ok().filter(|minutes| *minutes > 0.0),
        [] => Some(60.0),
        _ => None,
    };
    let Some(minutes) = minutes else {
        eprintln!("usage: soak [--minutes N]");
        return ExitCode::from(2);
    };
    match run(Duration::from_secs_f64(60.0 * minutes)) {
        Ok((section, is_stable)) => {
            println!("{section}");
            if is_stable { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(duration: Duration) -> Result<(String, bool), Failure> {
    let mut lobby = Lobby::start()?;
    let load = Load {
        is_over: AtomicBool::new(false),
        is_restarting: AtomicBool::new(false),
        is_filling: AtomicBool::new(false),
        lists: Mutex::default(),
        pages: Mutex::default(),
        failures: AtomicU64::new(0),
    };
    let addrs = lobby.addrs();
    let rows = thread::scope(|scope| {
        let tasks: [fn(&Load, lobby::Addrs); 6] = [
            servers::register_servers,
            servers::send_junk,
            clients::fetch_lists,
            clients::fetch_pages,
            clients::hold_lists,
            clients::hold_streams,
        ];
        for task in tasks {
            let load = &load;
            scope.spawn(move || task(load, addrs));
        }
        let rows = watch(&mut lobby, &load, duration);
        load.is_over.store(true, Relaxed);
        rows
    })?;
    Ok(report(&rows, duration))
}

/// Restarts and reloads the lobby and samples it until the time is over.
fn watch(lobby: &mut Lobby, load: &Load, duration: Duration) -> Result<Vec<Row>, Failure> {
    let start = Instant::now();
    let mut rows = Vec::new();
    let mut samples: Vec<Sample> = Vec::new();
    let mut restarts = 0;
    let mut reloaded = start;
    while start.elapsed() < duration {
        thread::sleep(SAMPLE_INTERVAL.min(duration / 20));
        let elapsed = start.elapsed();
        load.is_filling.store(FILLING.contains(&rows.len()), Relaxed);
        if restarts < RESTARTS && elapsed > duration / 4 * (restarts + 1) / (RESTARTS + 1) {
            load.is_restarting.store(true, Relaxed);
            lobby.restart()?;
            load.is_restarting.store(false, Relaxed);
            restarts += 1;
            samples.clear();
        } else if reloaded.elapsed() > RELOAD_INTERVAL {
            lobby.reload()?;
            reloaded = Instant::now();
        }
        samples.push(lobby.sample()?);
        if elapsed >= duration * (rows.len() as u32 + 1) / ROWS {
            rows.push(Row::new(elapsed, &std::mem::take(&mut samples), load, lobby.listed()?));
            eprintln!("{}", rows.last().map(Row::line).unwrap_or_default());
        }
    }
    Ok(rows)
}

impl Row {
    fn new(elapsed: Duration, samples: &[Sample], load: &Load, listed: u64) -> Self {
        let highest = |value: fn(&Sample) -> u64| samples.iter().map(value).max().unwrap_or(0) as f64;
        let take = |latencies: &Mutex<Latencies>| std::mem::take(&mut *latencies.lock().expect("no thread panics"));
        Self {
            minutes: elapsed.as_secs_f64() / 60.0,
            memory: highest(|sample| sample.memory),
            anonymous: highest(|sample| sample.anonymous),
            descriptors: highest(|sample| sample.descriptors),
            lists: take(&load.lists),
            pages: take(&load.pages),
            failures: load.failures.swap(0, Relaxed),
            listed,
        }
    }

    fn line(&self) -> String {
        format!(
            "{:5.1} min: {}, {} descriptors, {} servers, {} failures",
            self.minutes,
            rate(self.memory, "B"),
            self.descriptors,
            self.listed,
            self.failures
        )
    }
}

/// The goals, and whether nothing has grown.
fn judge(rows: &[Row]) -> (Goals, bool) {
    let steady = &rows[FIRST_JUDGED.min(rows.len())..];
    let half = steady.len() / 2;
    let highest = |rows: &[Row], value: &dyn Fn(&Row) -> f64| rows.iter().map(value).fold(0.0, f64::max);
    let compare = |value: &dyn Fn(&Row) -> f64| (highest(&steady[..half], value), highest(&steady[half..], value));
    let mut goals = Goals::default();
    let mut is_stable = half > 0;
    let mut goal = |name: &str, measured: String, goal: &str, is_met: bool| {
        goals.add(name, measured, goal, is_met);
        is_stable &= is_met;
    };
    let (before, after) = compare(&|row| row.memory);
    goal(
        "memory at the beginning and at the end of the judged rows",
        format!("{} and {}", rate(before, "B"), rate(after, "B")),
        "no growth (2 % and 1 MB)",
        after <= before * MAX_MEMORY_GROWTH + MAX_MEMORY_SLACK,
    );
    let (before, after) = compare(&|row| row.descriptors);
    goal(
        "open descriptors",
        format!("{before} and {after}"),
        "no growth (32)",
        after <= before + MAX_DESCRIPTOR_GROWTH,
    );
    for (name, latencies) in [
        ("median of list latencies", (|row: &Row| &row.lists) as fn(&Row) -> &Latencies),
        ("median of page latencies", |row| &row.pages),
    ] {
        let (before, after) = compare(&|row| latencies(row).quantile(0.5));
        goal(
            name,
            format!("{} and {}", nanoseconds(before), nanoseconds(after)),
            "no growth (3×)",
            after <= before * MAX_LATENCY_GROWTH,
        );
    }
    let failures: u64 = rows.iter().map(|row| row.failures).sum();
    goal("failed requests outside of restarts", failures.to_string(), "0", failures == 0);
    (goals, is_stable)
}

/// The measurements, one row each.
fn measurements(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "minute",
        "memory",
        "anonymous",
        "descriptors",
        "servers",
        "list p50",
        "p99",
        "slowest",
        "page p50",
        "p99",
        "slowest",
        "failures",
    ]);
    for row in rows {
        let [lists, pages] =
            [&row.lists, &row.pages].map(|latencies| [0.5, 0.99, 1.0].map(|at| nanoseconds(latencies.quantile(at))));
        let mut cells = vec![
            format!("{:.1}", row.minutes),
            rate(row.memory, "B"),
            rate(row.anonymous, "B"),
            row.descriptors.to_string(),
            row.listed.to_string(),
        ];
        cells.extend(lists);
        cells.extend(pages);
        cells.push(row.failures.to_string());
        table.row(cells);
    }
    table
}

/// The section of the document, and whether nothing has grown.
fn report(rows: &[Row], duration: Duration) -> (String, bool) {
    let (goals, is_stable) = judge(rows);
    let table = measurements(rows);
    let section = format!(
        "{goals}\nOn {}. {:.0} minutes.\n\n{table}\n{}",
        machine(),
        duration.as_secs_f64() / 60.0,
        format_args!(
            "Memory and descriptors: the highest sample of `rallypoint serve`. Load: {} servers that refresh every 30 s, a tenth of \
             them with changes, of which some leave and others come every second; {} invalid datagrams per second from random \
             addresses; lists and pages as fast as one client each fetches them with pauses of {:?}; {} list connections and {} \
             event streams that are never read; a reload every {RELOAD_INTERVAL:?}; {RESTARTS} restarts in the first quarter. In rows {} and {} \
             half of the servers leave at each refresh and the others change, to fill what is bounded (events, filters, caches). The \
             rows from {} on are judged: the first two of them, and the last.\n",
            servers::SERVERS,
            servers::JUNK_PER_SECOND,
            clients::PAUSE,
            clients::UNREAD_LISTS,
            clients::UNREAD_STREAMS,
            FILLING.start + 1,
            FILLING.end,
            FIRST_JUDGED + 1,
        )
    );
    (section, is_stable)
}
