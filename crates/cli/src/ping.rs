//! `rallypoint ping`: measures the round-trip time to a server repeatedly.

mod stats;

use crate::{
    error::CommandError,
    exit::Exit,
    number::number,
    output::{
        details,
        printer::exit_of_output,
        terminal::{Style, Terminal},
    },
    port_hints, runtime,
    scan_args::{self, ScanArgs},
    signals::Signals,
    stdio::print_stderr,
};
use rallypoint_query::{
    GroupResult, ProbeEngine, ProbeError, ProbeReply, ServerAddress, Target, milliseconds,
    proto::{Detail, Probe},
    resolve,
};
use serde_json::json;
use stats::Stats;
use std::{
    io::{self, Write},
    num::NonZeroU64,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Measure the round-trip time to a server repeatedly
///
/// Like ping(8), but with the query of the game: it measures what players will get, and works where the machine does not
/// answer ICMP. Ctrl-C ends it and prints the statistics.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", EXIT))]
#[command(after_help = "Examples and exit codes: rallypoint ping --help")]
pub struct Args {
    // Not a doc comment, because of the brackets.
    #[arg(value_name = "TARGET", value_parser = server)]
    #[arg(help = "The server: host, host:port, [v6]:port or PROTOCOL://host, such as session://host")]
    server: ServerAddress,

    /// Number of queries; by default, until Ctrl-C
    #[arg(long, short = 'c', value_name = "N", value_parser = number::<NonZeroU64>(1..=u64::MAX))]
    count: Option<NonZeroU64>,

    /// Time from one query to the next
    #[arg(long, short = 'i', value_name = "TIME", default_value = "1s", value_parser = scan_args::time)]
    interval: Duration,

    /// Print only the statistics
    #[arg(long, short)]
    quiet: bool,

    /// One JSON object per line: every ping, then the statistics
    #[arg(long, visible_alias = "json")]
    jsonl: bool,

    #[command(flatten)]
    scan: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint ping play.example.org
  rallypoint ping -c 5 -i 200ms session://[2001:db8::1]:45555

The time limit for an answer is --timeout, but at most the interval (or a
second, if that is longer). There are no retries: a lost datagram counts as
lost.";

const EXIT: &str = "\
Exit codes:
  0  the server answered at least once
  1  it did not answer, or its name could not be resolved
  2  wrong usage
  3  its reply was invalid
  4  refused: the machine answers, but nothing listens at that port
  5  this machine could not send the query: no network, no permission, no such
     file";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    let timeout = args.scan.timeout.min(args.interval.max(Duration::from_secs(1)));
    let scan = ScanArgs { timeout, retries: 0, ..args.scan.clone() };
    runtime::block_on(async {
        let signals = Signals::to_stop().map_err(CommandError::failed)?;
        let engine = scan.engine(Detail::Info)?;
        let family = scan.config(None).only_family();
        let probes = match resolve(&args.server.host, 0, family).await {
            Ok(addrs) => args.server.probes(&addrs, Detail::Info),
            Err(error) => {
                print_stderr(format_args!("{}: {error}", args.server));
                let exit = Exit::from(&error);
                if args.jsonl {
                    let object = json!({
                        "type": "error",
                        "target": args.server.to_string(),
                        "address": null,
                        "error": error.code(),
                        "message": error.to_string(),
                    });
                    return exit_of_output(print_line(&object.to_string()).map(|()| exit));
                }
                return Ok(exit);
            }
        };
        let stats = Stats::default();
        let session = PingSession { args, engine, signals, probes, stats, exit: None, terminal: Terminal::of_stdout() };
        exit_of_output(session.run().await)
    })
}

struct PingSession<'a> {
    args: &'a Args,
    engine: ProbeEngine,
    signals: Signals,
    /// All addresses and protocols of the server until one has answered, then only that one.
    probes: Vec<Probe>,
    stats: Stats,
    exit: Option<Exit>,
    terminal: Terminal,
}

impl PingSession<'_> {
    async fn run(mut self) -> io::Result<Exit> {
        if !self.args.quiet && !self.args.jsonl {
            print_line(&format!("PING {}", self.args.server))?;
        }
        for number in 1.. {
            let next = Instant::now() + self.args.interval;
            self.stats.sent += 1;
            self.engine.probe(number, self.probes.clone());
            tokio::select! {
                Some(result) = self.engine.next() => self.handle_result(&result)?,
                // The query in flight is not lost: its answer is not waited for.
                () = self.signals.stop() => {
                    self.stats.sent -= 1;
                    break;
                }
            }
            if self.args.count.is_some_and(|count| number >= count.get()) {
                break;
            }
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.signals.stop() => break,
            }
        }
        self.print_summary()?;
        let exit = self.exit.unwrap_or(Exit::Silent);
        let ServerAddress { host, port, .. } = &self.args.server;
        if let (Exit::Silent | Exit::Refused, Some(port)) = (exit, port)
            && let Some(hint) = port_hints::for_server(host, port.get())
        {
            print_stderr(hint);
        }
        Ok(exit)
    }

    fn handle_result(&mut self, GroupResult { key: number, result }: &GroupResult) -> io::Result<()> {
        match result {
            Ok(reply) => self.handle_reply(*number, reply),
            Err(failure) => self.handle_failure(*number, &failure.error),
        }
    }

    fn handle_reply(&mut self, number: u64, ProbeReply { probe, reply, .. }: &ProbeReply) -> io::Result<()> {
        let ms = milliseconds(reply.round_trip.time);
        self.stats.add_reply(ms);
        self.exit = Some(Exit::Answered);
        self.probes = vec![*probe];
        let address = probe.address;
        let protocol = probe.query.protocol;
        if self.args.jsonl {
            let object = json!({
                "type": "ping",
                "seq": number,
                "target": self.args.server.to_string(),
                "address": address,
                "protocol": protocol.as_str(),
                "ping_ms": ms,
                "players": reply.info.players,
                "max_players": reply.info.max_players,
            });
            return self.print(&object.to_string());
        }
        let players = details::occupancy(&reply.info);
        let time = self.terminal.paint(Style::of_ping(ms), &details::ping(ms));
        self.print(&format!("answer from {address} ({protocol}): seq={number} time={time} players={players}"))
    }

    fn handle_failure(&mut self, number: u64, error: &ProbeError) -> io::Result<()> {
        let exit = Exit::from(error);
        self.exit = Some(match self.exit {
            None => exit,
            Some(Exit::Answered) => Exit::Answered,
            Some(before) => before.and(exit),
        });
        if self.args.jsonl {
            let object = json!({
                "type": "ping",
                "seq": number,
                "target": self.args.server.to_string(),
                "error": error.code(),
                "message": error.to_string(),
            });
            return self.print(&object.to_string());
        }
        let text = match error {
            ProbeError::TimedOut(_) => "no answer".into(),
            other => other.to_string(),
        };
        self.print(&format!("seq={number} {}", self.terminal.paint(Style::Bad, &text)))
    }

    fn print_summary(&self) -> io::Result<()> {
        if self.args.jsonl {
            return print_line(&self.stats.json(&self.args.server.to_string()).to_string());
        }
        let gap = if self.args.quiet { "" } else { "\n" };
        print_line(&format!("{gap}--- {} ---\n{}", self.args.server, self.stats))
    }

    fn print(&self, line: &str) -> io::Result<()> {
        if self.args.quiet { Ok(()) } else { print_line(line) }
    }
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

fn server(text: &str) -> Result<ServerAddress, String> {
    match text.parse::<Target>().map_err(|error| error.to_string())? {
        Target::Server(server) => Ok(server),
        _ => Err("it is a list; give one server, such as play.example.org:6969".into()),
    }
}
