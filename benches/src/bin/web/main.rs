//! `cargo xtask bench web`: the web server of the real `rallypoint serve`, compared with nginx and the same bytes in a file.
//!
//! The server has one core and the load another.

mod attack;
mod program;
mod requests;

use program::{Lobby, nginx};
use rallypoint_bench::{BusyCores, Failure, Goals, Table, cores, machine, nanoseconds, pin_this_thread, rate};
use requests::{Client, Listener};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// Duration of the measurement of one server in each round.
const SLICE: Duration = Duration::from_millis(500);
const ROUNDS: usize = 15;
/// Number of concurrent persistent connections.
const CLIENTS: usize = 16;
const LISTENERS: usize = 1_000;
const CHANGES: usize = 40;
const QUERIES: usize = 200;

fn main() -> ExitCode {
    Failure::exit(measure().map(|section| println!("{section}")))
}

fn measure() -> Result<String, Failure> {
    let [server, load, ..] = cores()[..] else {
        return Err(Failure("a server and its load need a core each, and there is only one".into()));
    };
    pin_this_thread(load)?;
    let mut goals = Goals::new();
    eprintln!("lists");
    let lists = lists(server)?;
    if let Some(share) = lists.share {
        goals.add(
            "the unfiltered list of 1,000 servers as JSON, relative to nginx with a static file over persistent connections",
            format!("{:.0} %", 100.0 * share),
            "at least 50 %",
            share >= 0.5,
        );
    }
    eprintln!("listeners");
    let slowest = listeners(server)?;
    goals.add(
        "a change reaches 1,000 listeners, from the datagram to the last listener",
        format!("{:.0} ms maximum, {:.0} ms median", slowest.most * 1e3, slowest.middle * 1e3),
        "at most 200 ms",
        slowest.most <= 0.2,
    );
    eprintln!("queries");
    let (queries, worst) = queries(server)?;
    goals.add(
        "a filtered query over 10,000 servers, the slowest of those below",
        nanoseconds(worst * 1e9),
        "at most 5 ms",
        worst <= 0.005,
    );
    eprintln!("attack");
    let (attack, late, refused) = attack::measure(server)?;
    goals.add(
        "honest visitors under attack, 100,000 servers: 99 % of requests, refused requests",
        format!("{}, {refused}", nanoseconds(late * 1e9)),
        "at most 100 ms, none",
        late <= 0.1 && refused == 0,
    );
    Ok(format!(
        "{goals}\nOn {}. The server has core {server}, the load core {load}; over loopback.\n\n{}\n{queries}\n{attack}",
        machine(),
        lists.text
    ))
}

struct Lists {
    /// The lower of the ratios by wall time and by CPU time.
    share: Option<f64>,
    text: String,
}

/// Measures the complete list, compared with nginx and the same bytes.
fn lists(core: usize) -> Result<Lists, Failure> {
    let lobby = Lobby::start(core, 1_000)?;
    let plain = Client::connect(lobby.http)?.get("/api/v1/servers", "")?;
    let nginx = nginx(core, &plain)?;
    let mut servers = vec![("rallypoint serve", lobby.http, lobby.id(), "/api/v1/servers")];
    servers.extend(nginx.as_ref().map(|(addr, program)| ("nginx", *addr, program.id(), "/reply")));
    let mut rounds: Vec<Vec<[f64; 2]>> = Vec::new();
    for _ in 0..=ROUNDS {
        let turn =
            |&(_, addr, id, path): &(&str, _, _, &str)| requests::measure(addr, id, path, CLIENTS, SLICE, plain.len());
        rounds.push(servers.iter().map(turn).collect::<Result<_, _>>()?);
    }
    // The first round is a warm-up.
    let rounds = &rounds[1..];
    let middle = |at: usize, of: usize| median(rounds.iter().map(|round| round[at][of]).collect());
    let mut table = Table::new(&["server", "replies", "bytes", "CPU each"]);
    for (at, (name, ..)) in servers.iter().enumerate() {
        let answers = middle(at, 0);
        let bytes = rate(answers * plain.len() as f64, "B/s");
        table.row([(*name).into(), rate(answers, "/s"), bytes, nanoseconds(middle(at, 1))]);
    }
    let share = nginx.is_some().then(|| {
        let by_clock = median(rounds.iter().map(|round| round[0][0] / round[1][0]).collect());
        let by_cpu = median(rounds.iter().map(|round| round[1][1] / round[0][1]).collect());
        by_clock.min(by_cpu)
    });
    let note = if nginx.is_some() { "" } else { " nginx is not installed here." };
    let text = format!(
        "### The list\n\n{table}\n{} bytes (1,000 servers) per reply over {CLIENTS} persistent connections; in alternation for \
         {SLICE:?} each in {ROUNDS} rounds, medians. The ratio above is the lower of those by wall time and by CPU time. nginx: \
         one process, sendfile, tcp_nopush, open_file_cache, no log.{note}\n",
        plain.len()
    );
    Ok(Lists { share, text })
}

struct Slowest {
    most: f64,
    middle: f64,
}

/// How long it takes until the last listener knows of a change.
fn listeners(core: usize) -> Result<Slowest, Failure> {
    let lobby = Lobby::start(core, 1_000)?;
    let mut listeners = (0..LISTENERS).map(|_| Listener::new(lobby.http)).collect::<Result<Vec<_>, _>>()?;
    let _busy = BusyCores::start(core)?;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let name = format!("change number {change}");
        let began = Instant::now();
        lobby.register(5, &name)?;
        for listener in &mut listeners {
            listener.wait_for(&name)?;
        }
        times.push(began.elapsed().as_secs_f64());
    }
    Ok(Slowest { most: times.iter().copied().fold(0.0, f64::max), middle: median(times) })
}

/// Measures filtered queries: the time until the complete reply.
fn queries(core: usize) -> Result<(String, f64), Failure> {
    let lobby = Lobby::start(core, 10_000)?;
    let mut client = Client::connect(lobby.http)?;
    let _busy = BusyCores::start(core)?;
    let mut table = Table::new(&["query", "bytes", "median", "99 %"]);
    let mut worst: f64 = 0.0;
    for query in [
        "q=bacon&limit=100",
        "q=no+such+server",
        "not_empty=1&sort=-players&limit=100",
        "not_full=1&no_password=1&sort=name&limit=100",
        "sort=map&limit=100&offset=5000",
    ] {
        let path = format!("/api/v1/servers?{query}");
        let mut times = Vec::new();
        let mut size = 0;
        for _ in 0..QUERIES {
            let began = Instant::now();
            size = client.get(&path, "")?.len();
            times.push(began.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let middle = times[QUERIES / 2];
        let late = times[QUERIES * 99 / 100];
        worst = worst.max(middle);
        table.row([format!("`{query}`"), size.to_string(), nanoseconds(middle * 1e9), nanoseconds(late * 1e9)]);
    }
    let note = format!("One client, {QUERIES} times each. {}", BusyCores::NOTE);
    Ok((format!("### Filtered queries over 10,000 servers\n\n{table}\n{note}\n"), worst))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
