//! `cargo xtask bench query`: the real `rallypoint query` beside what people use now, and the least that could do the same.
//!
//! Whoever asks has one core, and the servers another. What has no program of its own is a verb of this one.

mod bare;
mod contender;
mod servers;
mod sys;

use contender::{BARE, CRATE, Contender, Files, PAUSE, RATE, RETRIES, ROUNDS, Run, TIMEOUT, has};
use rallypoint_bench::{Failure, Promises, Table, cores, machine, nanoseconds, pin_this_thread, rate, ratio};
use servers::{Evenness, Servers, WINDOW, Weather};
use std::{env, net::UdpSocket, process::ExitCode, time::Duration};

/// The hidden verb that only has the servers, for looking at one asker by hand.
const SERVE: &str = "serve";

/// How many servers are asked.
const SERVERS: u32 = 10_000;

/// How many must not take much memory.
const MANY: u32 = 100_000;

/// With how many it is found out what suits a contender best.
const TRIAL: u32 = 2_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |text: &str| text.parse().unwrap_or_default();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [BARE, port, count, rate] => bare::ask(number(port) as u16, number(count), number(rate)).map_err(Failure::from),
        #[cfg(feature = "query-peers")]
        [CRATE, port, count] => contender::ask_by_crate(number(port) as u16, number(count)).map_err(Failure::from),
        [SERVE] => serve(),
        [] => measure(),
        _ => Err(Failure("no arguments".into())),
    };
    Failure::exit(result)
}

fn serve() -> Result<(), Failure> {
    let servers = Servers::start(Weather::default())?;
    println!("port {} of every address of 127.0.0.0/8, until the end of standard input", servers.port);
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// Who can be compared, and who can't be had.
fn contenders(core: usize, files: &Files, port: u16) -> Result<(Vec<Contender>, Vec<&'static str>), Failure> {
    let (mut those, mut skipped) = (vec![Contender::Rallypoint, Contender::Session, Contender::Bare], Vec::new());
    if cfg!(feature = "query-peers") {
        those.push(Contender::Crate);
    } else {
        skipped.push(CRATE);
    }
    if files.fetch_npm() {
        // It depends much on how many are asked at a time: as many as suits it best.
        let mut runs = Vec::new();
        for contender in [50, 100, 200, 400, 1_000].map(Contender::Npm) {
            let run = contender.ask(core, files, port, TRIAL, RATE)?;
            eprintln!("{}: {} of {TRIAL} in {:?}", contender.name(), run.found, run.time);
            runs.push((run.found as f64 / run.time.as_secs_f64(), contender));
        }
        those.extend(runs.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, best)| best));
    } else {
        skipped.push("gamedig (npm)");
    }
    if has("quakestat") {
        those.push(Contender::Quakestat);
    } else {
        skipped.push("quakestat");
    }
    Ok((those, skipped))
}

fn measure() -> Result<(), Failure> {
    let [asks, answers, ..] = cores()[..] else {
        return Err(Failure("who asks and who answers need a core each, and there is only one".into()));
    };
    pin_this_thread(answers)?;
    let files = Files::new()?;
    let (mut promises, mut sections) = (Promises::new(), String::new());
    let servers = Servers::start(Weather::default())?;
    let (those, skipped) = contenders(asks, &files, servers.port)?;

    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); those.len()];
    for round in 0..ROUNDS {
        for (contender, runs) in those.iter().zip(&mut runs).filter(|(contender, _)| round < contender.rounds()) {
            let run = contender.ask(asks, &files, servers.port, SERVERS, RATE)?;
            eprintln!("{round} {}: {} in {:?}, CPU {:?}", contender.name(), run.found, run.time, run.cpu);
            runs.push(run);
        }
    }
    let runs: Vec<(Contender, Run)> = those.iter().copied().zip(runs.iter().map(|runs| median(runs))).collect();
    sections += &beside_others(&runs, &skipped, &mut promises);
    sections += &with_trouble(asks, &files, &mut promises)?;
    sections += &pacing(asks, &files, &servers, &mut promises)?;
    sections += &memory(asks, &files, &servers, &mut promises)?;
    println!(
        "{}\nOn {}. Who asks has core {asks}, the servers core {answers}; over loopback.\n{sections}",
        promises,
        machine()
    );
    Ok(())
}

fn beside_others(runs: &[(Contender, Run)], skipped: &[&str], promises: &mut Promises) -> String {
    let ours = &runs[0].1;
    let speed = |run: &Run| run.found as f64 / run.time.as_secs_f64();
    let cpu = |run: &Run| run.cpu.as_nanos() as f64 / f64::from(SERVERS);
    let mut table = Table::new(&[
        "who asks",
        "protocol",
        "servers",
        "ours to this",
        "missed",
        "CPU each",
        "first result",
        "memory",
    ]);
    for (contender, run) in runs {
        table.row([
            contender.name(),
            contender.protocol().into(),
            rate(speed(run), "/s"),
            ratio(speed(ours), speed(run)),
            (SERVERS as usize).saturating_sub(run.found).to_string(),
            nanoseconds(cpu(run)),
            time(run.first),
            rate(run.memory as f64, "B"),
        ]);
        let least = match contender {
            Contender::Crate => 2.0,
            Contender::Npm(_) => 10.0,
            Contender::Quakestat => 50.0,
            Contender::Bare => {
                let times = cpu(ours) / cpu(run);
                promises.add("CPU per server, of the bare loop's", ratio(times, 1.0), "at most 3×", times <= 3.0);
                continue;
            }
            _ => continue,
        };
        let times = speed(ours) / speed(run);
        let name = format!("servers per second, of {}", contender.name());
        promises.add(&name, ratio(times, 1.0), format!("at least {least:.0}×"), times >= least);
    }
    let missed = (SERVERS as usize).saturating_sub(ours.found);
    promises.add("servers missed", missed.to_string(), "none", missed == 0);
    let skipped = if skipped.is_empty() { String::new() } else { format!(" Not to be had: {}.", skipped.join(", ")) };
    format!(
        "\n### Beside others\n\n{table}\n{SERVERS} servers that answer after 20 ms, each asked in the asker's own protocol \
         for about the same; asked again {RETRIES} times every {PAUSE:?}, and given up after {TIMEOUT:?}. Medians of \
         {ROUNDS} runs in turn, from the start of the process to its end; quakestat, which takes a minute, is run once. \
         We and the bare loop send {RATE} datagrams a second, the others as fast as they can: the crate waits in one \
         thread for each server; npm's package hands every datagram to everybody who waits for one, and is shown with \
         as many at a time as suited it best (of 50 to 1,000, tried with {TRIAL} servers); quakestat (`-sendinterval 0 \
         -maxsim 1000`) asks the next one only when an answer has come or 10 ms have passed, however many it may ask at \
         a time. CPU: of the whole process, starting \
         included. The bare loop asks each server once, wakes up once a millisecond as we do, and compares nothing but \
         the address.{skipped}\n",
    )
}

fn with_trouble(core: usize, files: &Files, promises: &mut Promises) -> Result<String, Failure> {
    let servers = Servers::start(Weather { dead: 10, loss: 5 })?;
    let living = (SERVERS - SERVERS.div_ceil(10)) as usize;
    let mut table = Table::new(&["default retries and timeout", "found", "of", "time"]);
    let (mut missed, mut slowest) = (0, Duration::ZERO);
    for _ in 0..3 {
        let run = Contender::Rallypoint.ask_with_defaults(core, files, servers.port, SERVERS)?;
        missed += living.saturating_sub(run.found);
        slowest = slowest.max(run.time);
        table.row(["rallypoint query --jsonl", &run.found.to_string(), &living.to_string(), &time(run.time)]);
    }
    // The last dead one is asked after a tenth of a second, and has four.
    let limit = Duration::from_millis(4_500);
    promises.add(
        "10 % dead, 5 % loss each way: living servers missed, of three runs",
        missed.to_string(),
        "none",
        missed == 0,
    );
    promises.add("the same: time, with a deadline of 4 s", time(slowest), "at most 4.5 s", slowest <= limit);
    Ok(format!(
        "\n### Dead servers and loss\n\n{table}\nEvery tenth server never answers, and every twentieth datagram is lost \
         in each direction.\n"
    ))
}

fn pacing(core: usize, files: &Files, servers: &Servers, promises: &mut Promises) -> Result<String, Failure> {
    let mut table = Table::new(&[
        "datagrams a second",
        "servers",
        "largest burst in 10 ms",
        "even would be",
        "longest gap",
        "time",
        "first result",
    ]);
    for (per_second, count) in [(2_000, 4_000), (RATE, SERVERS)] {
        servers.take_evenness();
        let run = Contender::Rallypoint.ask(core, files, servers.port, count, per_second)?;
        let Evenness { burst, gap } = servers.take_evenness();
        let even = per_second as usize * WINDOW.as_millis() as usize / 1_000;
        table.row([
            per_second.to_string(),
            count.to_string(),
            burst.to_string(),
            even.to_string(),
            time(gap),
            time(run.time),
            time(run.first),
        ]);
        if per_second == 2_000 {
            promises.add("largest burst in 10 ms at the default pace", burst.to_string(), "at most 30", burst <= 30);
            let is_kept = run.first < run.time / 4;
            promises.add("first result, of a sweep of two seconds", time(run.first), "as it comes", is_kept);
        }
    }
    Ok(format!("\n### Pacing\n\n{table}\nWhen the datagrams were on the network, as the system notes it.\n"))
}

fn memory(core: usize, files: &Files, servers: &Servers, promises: &mut Promises) -> Result<String, Failure> {
    let mut table = Table::new(&["100,000 targets", "found", "time", "memory"]);
    // A port at which nothing listens, now that this is dropped.
    let closed = UdpSocket::bind("0.0.0.0:0")?.local_addr()?.port();
    for (which, port) in [("that answer", servers.port), ("that refuse", closed)] {
        let run = Contender::Rallypoint.ask(core, files, port, MANY, RATE)?;
        table.row([which.to_owned(), run.found.to_string(), time(run.time), rate(run.memory as f64, "B")]);
        let name = format!("memory for 100,000 targets {which}");
        promises.add(&name, rate(run.memory as f64, "B"), "under 50 MB", run.memory < 50_000_000);
    }
    Ok(format!("\n### Memory\n\n{table}\nThe most that the process had. {RATE} datagrams a second.\n"))
}

fn time(time: Duration) -> String {
    nanoseconds(time.as_nanos() as f64)
}

/// The run with the median time, with the medians of the rest; the most missed.
fn median(runs: &[Run]) -> Run {
    let middle = |mut values: Vec<Duration>| {
        values.sort();
        values[values.len() / 2]
    };
    Run {
        time: middle(runs.iter().map(|run| run.time).collect()),
        first: middle(runs.iter().map(|run| run.first).collect()),
        cpu: middle(runs.iter().map(|run| run.cpu).collect()),
        memory: runs.iter().map(|run| run.memory).max().unwrap_or_default(),
        found: runs.iter().map(|run| run.found).min().unwrap_or_default(),
    }
}
