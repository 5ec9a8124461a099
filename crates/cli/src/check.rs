//! `rallypoint check`: for monitoring, in the form of Nagios plugins.

mod range;

use crate::{
    ask::{
        Asking, Sweep, Target, Trouble, Whom,
        engine::{Engine, Failed},
        lobby::{Fetched, Listed, Source, fetch},
        output::{Record, details, milliseconds},
    },
    error::CommandError,
};
use range::Range;
use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

/// Check a server or a lobby for a monitoring system
///
/// In the form of Nagios plugins: one line with performance data, and the exit codes 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
/// A target that does not answer is CRITICAL.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples and exit codes: rallypoint check --help")]
pub struct Args {
    // No doc comment, because of the brackets.
    #[arg(value_name = "TARGET", value_parser = |text: &str| text.parse::<Target>())]
    #[arg(
        help = "A server (host, host:port, bloodmasters://host, session://host) or a list (lobby://host, http://host)"
    )]
    target: Target,

    /// WARNING if the ping in milliseconds is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    warn_ping: Option<Range>,

    /// CRITICAL if the ping in milliseconds is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    crit_ping: Option<Range>,

    /// WARNING if the number of players is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    warn_players: Option<Range>,

    /// CRITICAL if the number of players is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    crit_players: Option<Range>,

    /// WARNING if the number of servers in the list is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    warn_servers: Option<Range>,

    /// CRITICAL if the number of servers in the list is outside of this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    crit_servers: Option<Range>,

    #[command(flatten)]
    asking: Asking,
}

const MORE: &str = "\
Examples:
  rallypoint check play.example.org:6969 --warn-ping 100 --crit-ping 300
  rallypoint check session://play.example.org --warn-players 1:
  rallypoint check lobby://lobby.example.org/gg2 --crit-servers 1:

Ranges, as all such plugins have them; the alarm is raised outside of them:
  10      0 to 10
  10:     10 or more
  ~:10    10 or less, also below 0
  10:20   10 to 20
  @10:20  the alarm is raised inside of 10 to 20

Exit codes:
  0  OK
  1  WARNING
  2  CRITICAL: also if it does not answer, or makes no sense
  3  UNKNOWN: wrong usage, a threshold for what the target does not tell, a name
     that cannot be found, no network";

/// What is told to the monitoring system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

/// A result: a line, and what is measured.
struct Verdict {
    state: State,
    text: String,
    data: Vec<String>,
}

/// Checks once. A wrong usage is found before; see [`unknown`].
pub fn run(args: &Args) -> ExitCode {
    let valid = args.asking.validate().and_then(|()| args.validate());
    let verdict = valid.and_then(|()| crate::ask::block_on(check(args)));
    match verdict {
        Ok(verdict) => verdict.tell(),
        Err(failure) => unknown(&failure),
    }
}

/// It could not be found out.
pub fn unknown(why: impl fmt::Display) -> ExitCode {
    let text = why.to_string();
    let text = text.strip_prefix("rallypoint: ").unwrap_or(&text).to_owned();
    Verdict { state: State::Unknown, text, data: Vec::new() }.tell()
}

impl Args {
    /// A threshold for what the target does not have would never raise an alarm.
    fn validate(&self) -> Result<(), CommandError> {
        let has_servers = !matches!(self.target, Target::Server(_));
        let has_players = !matches!(self.target, Target::MasterList(_));
        let is_wanted = |warn: &Option<Range>, crit: &Option<Range>| warn.is_some() || crit.is_some();
        let target = &self.target;
        if !has_servers && is_wanted(&self.warn_servers, &self.crit_servers) {
            return Err(CommandError::Usage(format!(
                "{target} is a server: --warn-servers and --crit-servers are for lists, such as lobby://lobby.example.org"
            )));
        }
        if !has_players && is_wanted(&self.warn_players, &self.crit_players) {
            return Err(CommandError::Usage(format!(
                "{target} does not tell how many play: --warn-players and --crit-players are for servers and lobbies"
            )));
        }
        Ok(())
    }
}

async fn check(args: &Args) -> Result<Verdict, CommandError> {
    let (asking, target) = (&args.asking, &args.target);
    let source = match target.clone() {
        Target::Server(server) => {
            let mut sweep = Sweep::new(Engine::start(asking)?, asking, false);
            sweep.add(0, Whom::Server(server));
            return Ok(match sweep.next().await.map(|finding| finding.result) {
                Some(Ok(found)) => server_verdict(args, &Record::answered(target.to_string(), found)),
                Some(Err(Failed { trouble, .. })) => Verdict::failed(target, &trouble),
                None => Verdict::failed(target, &Trouble::NotFound),
            });
        }
        Target::Lobby(lobby) => Source::Lobby(lobby),
        Target::MasterList(list) => Source::MasterList(list),
    };
    // A master list has addresses only.
    let mut players = matches!(source, Source::Lobby(_)).then_some(0u64);
    let count = |listed: Listed| players = players.map(|sum| sum + u64::from(listed.info.players.unwrap_or(0)));
    let fetched = fetch(&source, asking, count).await;
    Ok(match fetched {
        Ok(fetched) => list_verdict(args, &fetched, players),
        Err(trouble) => Verdict::failed(target, &trouble),
    })
}

fn server_verdict(args: &Args, record: &Record) -> Verdict {
    let info = &record.info;
    let ping = record.answer.as_ref().map(|answer| answer.ping_ms);
    let mut verdict = Verdict { state: State::Ok, text: record.name().to_owned(), data: Vec::new() };
    if let Some(players) = info.players {
        let plural = if info.max_players.is_none() && players == 1 { "" } else { "s" };
        verdict.text += &format!(", {} player{plural}", details::occupancy(info));
        let most = info.max_players.map(|most| most.to_string()).unwrap_or_default();
        verdict.measure("players", players.into(), "", &args.warn_players, &args.crit_players, &most);
    } else if args.warn_players.is_some() || args.crit_players.is_some() {
        verdict.raise(State::Unknown, "it does not tell its players");
    }
    if let Some(ping) = ping {
        verdict.text += &format!(", ping {}", details::ping(ping));
        verdict.measure("ping", ping, "ms", &args.warn_ping, &args.crit_ping, "");
    }
    if let Some(missing) = record.answer.as_ref().map(|answer| &answer.missing).filter(|missing| !missing.is_empty()) {
        verdict.text += &format!(", not told: {}", missing.join(", "));
    }
    verdict
}

fn list_verdict(args: &Args, fetched: &Fetched, players: Option<u64>) -> Verdict {
    let Fetched { connected, servers, malformed, .. } = *fetched;
    let ping = milliseconds(connected);
    let count = many(servers as u64, "server");
    let people = players.map_or_else(String::new, |players| format!(", {}", many(players, "player")));
    let text = format!("{}, {count}{people}, ping {}", args.target, details::ping(ping));
    let mut verdict = Verdict { state: State::Ok, text, data: Vec::new() };
    verdict.measure("servers", servers as f64, "", &args.warn_servers, &args.crit_servers, "");
    if let Some(players) = players {
        verdict.measure("players", players as f64, "", &args.warn_players, &args.crit_players, "");
    }
    verdict.measure("ping", ping, "ms", &args.warn_ping, &args.crit_ping, "");
    if malformed > 0 {
        verdict.raise(State::Warning, &format!("{malformed} more make no sense"));
    }
    verdict
}

/// `1 server`, `2 servers`.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Verdict {
    fn failed(target: &Target, trouble: &Trouble) -> Self {
        let state = match trouble {
            Trouble::TimedOut(_) | Trouble::Refused | Trouble::Malformed(_) => State::Critical,
            _ => State::Unknown,
        };
        Self { state, text: format!("{target}: {trouble}"), data: Vec::new() }
    }

    /// Adds a number, and raises the alarm if it is where it should not be.
    fn measure(&mut self, what: &str, value: f64, unit: &str, warn: &Option<Range>, crit: &Option<Range>, most: &str) {
        let shown = |range: &Option<Range>| range.as_ref().map(ToString::to_string).unwrap_or_default();
        self.data.push(format!("{what}={value}{unit};{};{};0;{most}", shown(warn), shown(crit)));
        for (state, range) in [(State::Critical, crit), (State::Warning, warn)] {
            if let Some(range) = range.as_ref().filter(|range| range.alerts(value)) {
                self.raise(state, &format!("{what} {value}{unit} {}", range.complaint()));
                break;
            }
        }
    }

    fn raise(&mut self, state: State, why: &str) {
        self.state = self.state.max(state);
        self.text += &format!(" ({why})");
    }

    fn tell(&self) -> ExitCode {
        let word = match self.state {
            State::Ok => "OK",
            State::Warning => "WARNING",
            State::Critical => "CRITICAL",
            State::Unknown => "UNKNOWN",
        };
        // The bar stands between the text and the numbers, and names come from strangers.
        let text = self.text.replace('|', "/").replace('\n', " ");
        let data = self.data.join(" ");
        let bar = if data.is_empty() { "" } else { " | " };
        // If nobody reads it, the exit code still says it.
        let _ = writeln!(io::stdout(), "RALLYPOINT {word} - {text}{bar}{data}");
        ExitCode::from(self.state as u8)
    }
}
