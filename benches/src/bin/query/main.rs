//! `cargo xtask bench query`: the real `rallypoint query` compared with common query tools and with a minimal program.
//!
//! The query tool has one core, and the servers another. Tools without a program of their own are hidden commands of this one.

mod minimal;
mod servers;
mod sys;
mod tool;

use rallypoint_bench::{Failure, Goals, Table, cores, machine, nanoseconds, pin_this_thread, portable, rate, ratio};
use servers::{Network, Pacing, Servers, WINDOW};
use std::{env, net::UdpSocket, process::ExitCode, time::Duration};
use tool::{CRATE, Files, MINIMAL, PAUSE, RATE, RETRIES, ROUNDS, Run, TIMEOUT, Tool, has};

/// Hidden command that only runs the servers, for trying a tool by hand.
const SERVE: &str = "serve";

/// Number of queried servers.
const SERVERS: u32 = 10_000;

/// Number of targets for measuring memory.
const MANY: u32 = 100_000;

/// Number of servers for finding the best concurrency of a tool.
const TRIAL: u32 = 2_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |text: &str| text.parse().unwrap_or_default();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [MINIMAL, port, count, rate] => {
            minimal::query(number(port) as u16, number(count), number(rate)).map_err(Failure::from)
        }
        #[cfg(feature = "query-peers")]
        [CRATE, port, count] => tool::query_with_crate(number(port) as u16, number(count)).map_err(Failure::from),
        [SERVE] => serve(),
        [] => measure(),
        _ => Err(Failure("expected no arguments".into())),
    };
    Failure::exit(result)
}

fn serve() -> Result<(), Failure> {
    let servers = Servers::start(Network::default())?;
    println!("port {} of every address of 127.0.0.0/8, until the end of standard input", servers.port);
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// The available tools, and the names of those that are missing.
fn tools(core: usize, files: &Files, port: u16) -> Result<(Vec<Tool>, Vec<&'static str>), Failure> {
    let mut tools = vec![Tool::Rallypoint, Tool::Session];
    let mut skipped = Vec::new();
    if portable("rallypoint").is_some() {
        tools.push(Tool::Portable);
    } else {
        skipped.push("portable sockets");
    }
    tools.push(Tool::Minimal);
    if cfg!(feature = "query-peers") {
        tools.push(Tool::Crate);
    } else {
        skipped.push(CRATE);
    }
    if files.fetch_npm() {
        // Its speed depends on its concurrency: the best one is used.
        let mut runs = Vec::new();
        for tool in [50, 100, 200, 400, 1_000].map(Tool::Npm) {
            let run = tool.query(core, files, port, TRIAL, RATE)?;
            eprintln!("{}: {} of {TRIAL} in {:?}", tool.name(), run.found, run.time);
            runs.push((run.found as f64 / run.time.as_secs_f64(), tool));
        }
        tools.extend(runs.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, best)| best));
    } else {
        skipped.push("gamedig (npm)");
    }
    if has("quakestat") {
        tools.push(Tool::Quakestat);
    } else {
        skipped.push("quakestat");
    }
    Ok((tools, skipped))
}

fn measure() -> Result<(), Failure> {
    let [client, server, ..] = cores()[..] else {
        return Err(Failure("the query tool and the servers need a core each, and there is only one".into()));
    };
    pin_this_thread(server)?;
    let files = Files::new()?;
    let mut goals = Goals::new();
    let mut sections = String::new();
    let servers = Servers::start(Network::default())?;
    let (tools, skipped) = tools(client, &files, servers.port)?;

    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); tools.len()];
    for round in 0..ROUNDS {
        for (tool, runs) in tools.iter().zip(&mut runs).filter(|(tool, _)| round < tool.rounds()) {
            let run = tool.query(client, &files, servers.port, SERVERS, RATE)?;
            eprintln!("{round} {}: {} in {:?}, CPU {:?}", tool.name(), run.found, run.time, run.cpu);
            runs.push(run);
        }
    }
    let runs: Vec<(Tool, Run)> = tools.iter().copied().zip(runs.iter().map(|runs| median(runs))).collect();
    sections += &comparison(&runs, &skipped, &mut goals);
    sections += &with_loss(client, &files, &mut goals)?;
    sections += &pacing(client, &files, &servers, &mut goals)?;
    sections += &pings(client, &files, &servers, &mut goals)?;
    sections += &memory(client, &files, &servers, &mut goals)?;
    println!(
        "{}\nOn {}. The query tool has core {client}, the servers core {server}; over loopback.\n{sections}",
        goals,
        machine()
    );
    Ok(())
}

fn comparison(runs: &[(Tool, Run)], skipped: &[&str], goals: &mut Goals) -> String {
    let ours = &runs[0].1;
    let speed = |run: &Run| run.found as f64 / run.time.as_secs_f64();
    let cpu = |run: &Run| run.cpu.as_nanos() as f64 / f64::from(SERVERS);
    let mut table = Table::new(&[
        "tool",
        "protocol",
        "servers",
        "rallypoint to this",
        "missed",
        "CPU each",
        "first result",
        "memory",
    ]);
    for (tool, run) in runs {
        table.row([
            tool.name(),
            tool.protocol().into(),
            rate(speed(run), "/s"),
            ratio(speed(ours), speed(run)),
            (SERVERS as usize).saturating_sub(run.found).to_string(),
            nanoseconds(cpu(run)),
            time(run.first),
            rate(run.memory as f64, "B"),
        ]);
        let least = match tool {
            Tool::Crate => 2.0,
            Tool::Npm(_) => 10.0,
            Tool::Quakestat => 50.0,
            Tool::Minimal => {
                let times = cpu(ours) / cpu(run);
                goals.add(
                    "CPU per server, relative to the minimal loop",
                    ratio(times, 1.0),
                    "at most 3×",
                    times <= 3.0,
                );
                let share = speed(ours) / speed(run);
                goals.add(
                    "servers per second, relative to the minimal loop",
                    format!("{:.0} %", 100.0 * share),
                    "at least 75 %",
                    share >= 0.75,
                );
                continue;
            }
            Tool::Portable => {
                let missed = (SERVERS as usize).saturating_sub(run.found);
                goals.add("servers missed with portable sockets", missed.to_string(), "none", missed == 0);
                continue;
            }
            _ => continue,
        };
        let times = speed(ours) / speed(run);
        let name = format!("servers per second, relative to {}", tool.name());
        goals.add(&name, ratio(times, 1.0), format!("at least {least:.0}×"), times >= least);
    }
    let missed = (SERVERS as usize).saturating_sub(ours.found);
    goals.add("servers missed", missed.to_string(), "none", missed == 0);
    let skipped = if skipped.is_empty() { String::new() } else { format!(" Not available: {}.", skipped.join(", ")) };
    format!(
        "\n### Comparison\n\n{table}\n{SERVERS} servers that reply after 20 ms, each queried in the tool's own protocol for about \
         the same information; {RETRIES} retries every {PAUSE:?}, and a timeout of {TIMEOUT:?}. Medians of {ROUNDS} runs in \
         alternation, from the start of the process to its end; quakestat, which takes a minute, runs once. rallypoint and \
         the minimal loop send {RATE} datagrams per second, the others as fast as they can: the crate waits in one thread for \
         each server; the npm package passes every datagram to every pending query, and is shown with its best concurrency \
         (of 50 to 1,000, tried with {TRIAL} servers); quakestat (`-sendinterval 0 -maxsim 1000`) sends the next query only \
         after a reply or after 10 ms, whatever its limit of concurrent queries. CPU: of the complete process, including its \
         start. The minimal loop queries each server once, wakes up once per millisecond like rallypoint, and compares \
         nothing but the address. The portable sockets are those of other platforms: one system call per datagram.{skipped}\n",
    )
}

fn with_loss(core: usize, files: &Files, goals: &mut Goals) -> Result<String, Failure> {
    let servers = Servers::start(Network { dead: 10, loss: 5 })?;
    let live = (SERVERS - SERVERS.div_ceil(10)) as usize;
    let mut table = Table::new(&["default retries and timeout", "found", "of", "time"]);
    let mut missed = 0;
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let run = Tool::Rallypoint.query_with_defaults(core, files, servers.port, SERVERS)?;
        missed += live.saturating_sub(run.found);
        slowest = slowest.max(run.time);
        table.row(["rallypoint query --jsonl", &run.found.to_string(), &live.to_string(), &time(run.time)]);
    }
    // The last dead server is queried after 0.1 s, with a timeout of 4 s.
    let limit = Duration::from_millis(4_500);
    goals.add(
        "10 % dead, 5 % loss each way: live servers missed, in three runs",
        missed.to_string(),
        "none",
        missed == 0,
    );
    goals.add("the same: time, with a timeout of 4 s", time(slowest), "at most 4.5 s", slowest <= limit);
    Ok(format!(
        "\n### Dead servers and loss\n\n{table}\nEvery tenth server never replies, and 5 % of the datagrams are lost in \
         each direction.\n"
    ))
}

fn pacing(core: usize, files: &Files, servers: &Servers, goals: &mut Goals) -> Result<String, Failure> {
    let mut table = Table::new(&[
        "datagrams per second",
        "servers",
        "largest burst in 10 ms",
        "evenly spaced",
        "longest gap",
        "time",
        "first result",
    ]);
    for (per_second, count) in [(2_000, 4_000), (RATE, SERVERS)] {
        servers.take_pacing();
        let run = Tool::Rallypoint.query(core, files, servers.port, count, per_second)?;
        let Pacing { burst, gap } = servers.take_pacing();
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
            goals.add("largest burst in 10 ms at the default rate", burst.to_string(), "at most 30", burst <= 30);
            let is_kept = run.first < run.time / 4;
            goals.add(
                "first result, of a scan of two seconds",
                time(run.first),
                "within a quarter of the time",
                is_kept,
            );
        }
    }
    Ok(format!("\n### Pacing\n\n{table}\nBy the receive timestamps of the kernel.\n"))
}

/// How far the pings that a fast sweep shows are from the time that each server had the query.
fn pings(core: usize, files: &Files, servers: &Servers, goals: &mut Goals) -> Result<String, Failure> {
    const PER_SECOND: u32 = 60_000;
    let mut table = Table::new(&["datagrams per second", "servers", "median error", "99 %", "largest"]);
    let mut errors: Vec<f64> = Vec::new();
    for _ in 0..ROUNDS {
        servers.take_holds();
        let pings = Tool::pings(core, files, servers.port, SERVERS, PER_SECOND)?;
        let holds = servers.take_holds();
        let error = |(number, ping): &(u32, f64)| Some((1e6 * ping - holds.get(number)?.as_nanos() as f64).abs());
        errors.extend(pings.iter().filter_map(error));
    }
    if errors.len() < SERVERS as usize {
        return Err(Failure(format!("only {} pings could be compared", errors.len())));
    }
    errors.sort_by(f64::total_cmp);
    let [middle, late, largest] = [0.5, 0.99, 1.0].map(|share| errors[((errors.len() - 1) as f64 * share) as usize]);
    table.row([
        PER_SECOND.to_string(),
        SERVERS.to_string(),
        nanoseconds(middle),
        nanoseconds(late),
        nanoseconds(largest),
    ]);
    goals.add("error of the pings at 60,000 servers per second, 99 %", nanoseconds(late), "under 0.5 ms", late < 0.5e6);
    Ok(format!(
        "\n### Pings\n\n{table}\nThe ping that `rallypoint query` shows, compared with the time between the kernel's timestamp of the \
         query at the server and the sending of its reply, in {ROUNDS} runs.\n"
    ))
}

fn memory(core: usize, files: &Files, servers: &Servers, goals: &mut Goals) -> Result<String, Failure> {
    let mut table = Table::new(&["100,000 targets", "found", "time", "memory"]);
    // A port without a listener, after this socket is dropped.
    let closed = UdpSocket::bind("0.0.0.0:0")?.local_addr()?.port();
    for (which, port) in [("that reply", servers.port), ("that refuse", closed)] {
        let run = Tool::Rallypoint.query(core, files, port, MANY, RATE)?;
        table.row([which.to_owned(), run.found.to_string(), time(run.time), rate(run.memory as f64, "B")]);
        let name = format!("memory for 100,000 targets {which}");
        goals.add(&name, rate(run.memory as f64, "B"), "under 50 MB", run.memory < 50_000_000);
    }
    Ok(format!("\n### Memory\n\n{table}\nPeak memory of the process. {RATE} datagrams per second.\n"))
}

fn time(time: Duration) -> String {
    nanoseconds(time.as_nanos() as f64)
}

/// The medians of the times, the maximum memory, and the minimum of servers found.
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
