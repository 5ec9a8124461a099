//! `rallypoint ping`: how far away a server is, again and again.

mod stats;

use crate::{
    ask::{
        Asking, Engine, Exit, Finding, Found, Target, Trouble,
        output::{
            details, milliseconds,
            sink::told,
            terminal::{Style, Terminal},
        },
        resolve::resolve,
        target::Server,
    },
    error::CommandError,
    number::number,
    signals::Signals,
};
use rallypoint_query_proto::Probe;
use serde_json::json;
use stats::Stats;
use std::{
    io::{self, Write},
    num::NonZeroU64,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// Ask one server again and again how far away it is
///
/// Like ping(8), with the query of the game: so it tells what players will have, and works where the machine does not
/// answer other pings. Ctrl-C ends it and shows the statistics.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", EXIT))]
#[command(after_help = "More, with examples and exit codes: rallypoint ping --help")]
pub struct Args {
    // No doc comment, because of the brackets.
    #[arg(value_name = "TARGET", value_parser = server)]
    #[arg(help = "The server: host, host:port, [v6]:port, bloodmasters://host or session://host")]
    server: Server,

    /// Stop after so many
    #[arg(long, short = 'c', value_name = "N", value_parser = number::<NonZeroU64>(1..=u64::MAX))]
    count: Option<NonZeroU64>,

    /// How long from one to the next
    #[arg(long, short = 'i', value_name = "TIME", default_value = "1s", value_parser = crate::ask::options::time)]
    interval: Duration,

    /// Show only the statistics
    #[arg(long, short)]
    quiet: bool,

    /// A JSON object on each line: every ping, then the statistics
    #[arg(long, visible_alias = "json")]
    jsonl: bool,

    #[command(flatten)]
    asking: Asking,
}

const MORE: &str = "\
Examples:
  rallypoint ping play.example.org
  rallypoint ping -c 5 -i 200ms session://[2001:db8::1]:45555

An answer may take as long as --timeout says, but not longer than the interval
(or a second, if that is longer). Nothing is asked twice: whatever is lost is
counted as lost.";

const EXIT: &str = "\
Exit codes:
  0  it answered at least once
  1  it did not answer, or its name cannot be found
  2  wrong usage
  3  its answer made no sense
  4  refused: the machine is there, but nothing listens at that port
  5  this machine could not do it: no network, no permission, no such file";

/// Pings until it is told to stop.
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    let timeout = args.asking.timeout.min(args.interval.max(Duration::from_secs(1)));
    let asking = Asking { timeout, retries: 0, ..args.asking.clone() };
    crate::ask::block_on(async {
        let signals = Signals::to_stop().map_err(CommandError::failed)?;
        let engine = Engine::start(&asking)?;
        let probes = match resolve(&args.server.host, 0, asking.family()).await {
            Ok(addrs) => args.server.probes(&addrs, false),
            Err(trouble) => {
                crate::stdio::print_stderr(format_args!("{}: {trouble}", args.server));
                if args.jsonl {
                    let error = json!({
                        "type": "error",
                        "target": args.server.to_string(),
                        "address": null,
                        "error": trouble.code(),
                        "message": trouble.to_string(),
                    });
                    return told(say(&error.to_string()).map(|()| trouble.exit()));
                }
                return Ok(trouble.exit());
            }
        };
        let stats = Stats::default();
        let pinging = Pinging { args, engine, signals, probes, stats, exit: None, terminal: Terminal::of_stdout() };
        told(pinging.run().await)
    })
}

struct Pinging<'a> {
    args: &'a Args,
    engine: Engine,
    signals: Signals,
    /// All that the name may mean, until one has answered.
    probes: Vec<Probe>,
    stats: Stats,
    exit: Option<Exit>,
    terminal: Terminal,
}

impl Pinging<'_> {
    async fn run(mut self) -> io::Result<Exit> {
        if !self.args.quiet && !self.args.jsonl {
            say(&format!("PING {}", self.args.server))?;
        }
        for number in 1.. {
            let next = Instant::now() + self.args.interval;
            self.stats.sent += 1;
            self.engine.ask(number, self.probes.clone());
            tokio::select! {
                Some(finding) = self.engine.next() => self.tell(&finding)?,
                // What was on its way is not lost, but nobody waits for it any more.
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
        self.summary()?;
        Ok(self.exit.unwrap_or(Exit::Silent))
    }

    fn tell(&mut self, finding: &Finding) -> io::Result<()> {
        let number = finding.key;
        match &finding.result {
            Ok(Found { target, answer, .. }) => {
                let ms = milliseconds(answer.round_trip.time);
                self.stats.answered(ms);
                self.exit = Some(Exit::Answered);
                self.probes = vec![*target];
                let (address, protocol) = (target.address, target.query.protocol);
                if self.args.jsonl {
                    let ping = json!({
                        "type": "ping",
                        "seq": number,
                        "target": self.args.server.to_string(),
                        "address": address,
                        "protocol": protocol.as_str(),
                        "ping_ms": ms,
                        "players": answer.info.players,
                        "max_players": answer.info.max_players,
                    });
                    return self.line(&ping.to_string());
                }
                let players = details::occupancy(&answer.info);
                let time = self.terminal.paint(Style::of_ping(ms), &details::ping(ms));
                self.line(&format!("answer from {address} ({protocol}): seq={number} time={time} players={players}"))
            }
            Err(failed) => {
                let exit = failed.trouble.exit();
                self.exit = Some(
                    self.exit.map_or(exit, |before| if before == Exit::Answered { before } else { before.and(exit) }),
                );
                if self.args.jsonl {
                    let ping = json!({
                        "type": "ping",
                        "seq": number,
                        "target": self.args.server.to_string(),
                        "error": failed.trouble.code(),
                        "message": failed.trouble.to_string(),
                    });
                    return self.line(&ping.to_string());
                }
                let what = match &failed.trouble {
                    Trouble::TimedOut(_) => "no answer".into(),
                    other => other.to_string(),
                };
                self.line(&format!("seq={number} {}", self.terminal.paint(Style::Bad, &what)))
            }
        }
    }

    fn summary(&self) -> io::Result<()> {
        if self.args.jsonl {
            return say(&self.stats.json(&self.args.server.to_string()).to_string());
        }
        let gap = if self.args.quiet { "" } else { "\n" };
        say(&format!("{gap}--- {} ---\n{}", self.args.server, self.stats))
    }

    fn line(&self, text: &str) -> io::Result<()> {
        if self.args.quiet { Ok(()) } else { say(text) }
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

fn server(text: &str) -> Result<Server, String> {
    match text.parse()? {
        Target::Server(server) => Ok(server),
        _ => Err("it is a list; give one server, such as play.example.org:6969".into()),
    }
}
