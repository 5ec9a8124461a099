//! `cargo xtask bench web`: the web server of the real `rallypoint serve`, beside nginx with the same bytes in a file.
//!
//! The server has one core and the load another.

mod program;
mod requests;

use program::{Lobby, nginx};
use rallypoint_bench::{Awake, Failure, Promises, Table, cores, machine, nanoseconds, pin_this_thread, rate};
use requests::{Client, Listener};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long each contender has in each round.
const TURN: Duration = Duration::from_millis(500);
const ROUNDS: usize = 15;
/// How many connections are kept open at a time.
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
    let mut promises = Promises::new();
    eprintln!("lists");
    let lists = lists(server)?;
    if let Some(share) = lists.share {
        promises.add(
            "the unfiltered list of 1,000 servers as JSON, of what nginx serves from a file over kept connections",
            format!("{:.0} %", 100.0 * share),
            "at least 50 %",
            share >= 0.5,
        );
    }
    eprintln!("listeners");
    let slowest = listeners(server)?;
    promises.add(
        "a change reaches 1,000 live listeners, from the datagram to the last of them",
        format!("{:.0} ms at most, {:.0} ms in the middle", slowest.most * 1e3, slowest.middle * 1e3),
        "at most 200 ms",
        slowest.most <= 0.2,
    );
    eprintln!("queries");
    let (queries, worst) = queries(server)?;
    promises.add(
        "a filtered query over 10,000 servers, the slowest kind of those below",
        nanoseconds(worst * 1e9),
        "at most 5 ms",
        worst <= 0.005,
    );
    Ok(format!(
        "{promises}\nOn {}. The server has core {server}, the load core {load}; over loopback.\n\n{}\n{queries}",
        machine(),
        lists.text
    ))
}

struct Lists {
    /// The worse of what clock and processor say.
    share: Option<f64>,
    text: String,
}

/// The whole list, as it is and compressed, beside nginx with the same bytes.
fn lists(core: usize) -> Result<Lists, Failure> {
    let lobby = Lobby::start(core, 1_000)?;
    let plain = Client::connect(lobby.http)?.get("/api/v1/servers", "")?;
    let nginx = nginx(core, &plain)?;
    let mut contenders = vec![("rallypoint serve", lobby.http, lobby.id(), "/api/v1/servers")];
    contenders.extend(nginx.as_ref().map(|(addr, program)| ("nginx", *addr, program.id(), "/reply")));
    let mut rounds: Vec<Vec<[f64; 2]>> = Vec::new();
    for _ in 0..=ROUNDS {
        let turn =
            |&(_, addr, id, path): &(&str, _, _, &str)| requests::turn(addr, id, path, CLIENTS, TURN, plain.len());
        rounds.push(contenders.iter().map(turn).collect::<Result<_, _>>()?);
    }
    // The first is for getting warm.
    let rounds = &rounds[1..];
    let middle = |at: usize, of: usize| median(rounds.iter().map(|round| round[at][of]).collect());
    let mut table = Table::new(&["server", "answers", "bytes", "CPU each"]);
    for (at, (name, ..)) in contenders.iter().enumerate() {
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
        "### The list\n\n{table}\n{} bytes (1,000 servers) per answer over {CLIENTS} connections that are kept; in turn for {TURN:?} in \
         each of {ROUNDS} rounds, medians. The share above is the worse of those by the clock and by processor time. nginx: one \
         process, sendfile, tcp_nopush, open_file_cache, no log.{note}\n",
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
    let _awake = Awake::keep(core)?;
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

/// Filtered queries, with the time until the whole answer is there.
fn queries(core: usize) -> Result<(String, f64), Failure> {
    let lobby = Lobby::start(core, 10_000)?;
    let mut client = Client::connect(lobby.http)?;
    let _awake = Awake::keep(core)?;
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
        let (middle, late) = (times[QUERIES / 2], times[QUERIES * 99 / 100]);
        worst = worst.max(middle);
        table.row([format!("`{query}`"), size.to_string(), nanoseconds(middle * 1e9), nanoseconds(late * 1e9)]);
    }
    let note = format!("One client, {QUERIES} times each. {}", Awake::NOTE);
    Ok((format!("### Filtered queries over 10,000 servers\n\n{table}\n{note}\n"), worst))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
