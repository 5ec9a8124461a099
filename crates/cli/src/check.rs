//! `rallypoint check`: a check for monitoring systems, in the form of Nagios plugins.

mod range;

use crate::{
    error::{CommandError, with_hint},
    interactive_scan::lobby_hint,
    mirror_args::{self, MirrorArgs},
    output::{details, terminal::Terminal},
    runtime,
    scan_args::ScanArgs,
};
use clap::ArgAction;
use rallypoint_query::{
    ListSummary, ProbeError, ScanEvent, ScannedServer, Target, milliseconds,
    mirror::{MirrorEvent, MirroredList},
    proto::Detail,
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
/// A target that does not answer is CRITICAL; a lobby is only a WARNING if --mirror has a valid copy of its list.
#[derive(clap::Args)]
#[command(version, after_long_help = MORE, after_help = "Examples and exit codes: rallypoint check --help")]
pub struct Args {
    #[arg(value_name = "TARGET", value_parser = |text: &str| text.parse::<Target>())]
    #[arg(
        help = "A server (host, host:port, PROTOCOL://host, such as session://host) or a list (lobby://host, https://host)"
    )]
    target: Target,

    /// WARNING if the ping in milliseconds is outside this range
    #[arg(long, short = 'w', value_name = "RANGE", allow_hyphen_values = true)]
    warn_ping: Option<Range>,

    /// CRITICAL if the ping in milliseconds is outside this range
    #[arg(long, short = 'c', value_name = "RANGE", allow_hyphen_values = true)]
    crit_ping: Option<Range>,

    /// WARNING if the number of players is outside this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    warn_players: Option<Range>,

    /// CRITICAL if the number of players is outside this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    crit_players: Option<Range>,

    /// WARNING if the number of servers in the list is outside this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    warn_servers: Option<Range>,

    /// CRITICAL if the number of servers in the list is outside this range
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    crit_servers: Option<Range>,

    /// Print all details of the server after the first line
    #[arg(long, short = 'v', action = ArgAction::Count)]
    verbose: u8,

    #[command(flatten)]
    mirrors: MirrorArgs,

    #[command(flatten)]
    scan: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint check play.example.org:6969 -w 100 -c 300
  rallypoint check session://play.example.org --warn-players 1:
  rallypoint check lobby://lobby.example.org/gg2 --crit-servers 1:
  rallypoint check lobby://lobby.example.org \\
      --mirror https://mirror.example.net/lobby/

Ranges, as in all such plugins; a value outside raises the alarm:
  10      0 to 10
  10:     10 or more
  ~:10    10 or less, also below 0
  10:20   10 to 20
  @10:20  a value inside 10 to 20 raises the alarm

Exit codes:
  0  OK
  1  WARNING: also if a lobby does not answer, and --mirror has its list
  2  CRITICAL: also if there is no answer, or an invalid one
  3  UNKNOWN: wrong usage, a threshold for a value that the target does not
     report, a name that cannot be resolved, no network";

/// State reported to the monitoring system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CheckState {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

/// Result of a check: a state, a text, and performance data.
struct CheckReport {
    state: CheckState,
    text: String,
    data: Vec<String>,
    /// Further lines, for people.
    details: String,
}

/// Runs the command. Wrong usage is reported by [`print_unknown`].
pub fn run(args: &Args) -> ExitCode {
    let is_valid = args.scan.validate().and_then(|()| args.validate());
    match is_valid.and_then(|()| runtime::block_on(check(args))) {
        Ok(report) => report.print(),
        Err(error) => print_unknown(&error),
    }
}

/// Prints that the check could not be made.
pub fn print_unknown(why: impl fmt::Display) -> ExitCode {
    let text = why.to_string();
    let text = text.strip_prefix("rallypoint: ").unwrap_or(&text).to_owned();
    CheckReport { state: CheckState::Unknown, text, data: Vec::new(), details: String::new() }.print()
}

impl Args {
    /// Rejects thresholds for values that the target does not have: they would never raise an alarm.
    fn validate(&self) -> Result<(), CommandError> {
        let has_servers = !matches!(self.target, Target::Server(_));
        let is_wanted = |warn: &Option<Range>, crit: &Option<Range>| warn.is_some() || crit.is_some();
        let target = &self.target;
        if !has_servers && is_wanted(&self.warn_servers, &self.crit_servers) {
            return Err(CommandError::Usage(format!(
                "{target} is a server: --warn-servers and --crit-servers are for lists, such as lobby://lobby.example.org"
            )));
        }
        Ok(())
    }
}

async fn check(args: &Args) -> Result<CheckReport, CommandError> {
    let target = &args.target;
    if let Target::Server(_) = target {
        let mut scanner = args.scan.scanner([target.clone()], Some(Detail::Info))?;
        scanner.begin_pass();
        return Ok(match scanner.next().await {
            Some(ScanEvent::Answered(server)) => server_report(args, &server),
            Some(ScanEvent::Failed(ScannedServer { error: Some(error), .. })) => CheckReport::failed(target, &error),
            _ => CheckReport::failed(target, &ProbeError::NotFound),
        });
    }
    let mut scanner = args.scan.scanner([target.clone()], None)?;
    scanner.set_mirrors(args.mirrors.config(true));
    scanner.begin_pass();
    let mut players = 0;
    let mut copy = None;
    let mut failed_mirrors = Vec::new();
    while let Some(event) = scanner.next().await {
        match event {
            ScanEvent::Listed { server, .. } => players += u64::from(server.info.players.unwrap_or(0)),
            ScanEvent::Mirror(_, event) => match *event {
                MirrorEvent::Used(list) => copy = Some(list),
                MirrorEvent::Failed { url, error } => failed_mirrors.push(mirror_args::describe_failure(&url, &error)),
            },
            ScanEvent::ListComplete(_, summary) => {
                return Ok(match &copy {
                    Some(copy) => copy_report(args, summary.servers, copy),
                    None => list_report(args, &summary, summary.has_players.then_some(players)),
                });
            }
            ScanEvent::ListFailed(_, error) => {
                let mut report = CheckReport::failed(target, &error);
                failed_mirrors.iter().for_each(|why| report.text += &format!("; {why}"));
                return Ok(report);
            }
            ScanEvent::Answered(_) | ScanEvent::Failed(_) => {}
        }
    }
    Ok(CheckReport::failed(target, &ProbeError::NotFound))
}

fn server_report(args: &Args, record: &ScannedServer) -> CheckReport {
    let info = &record.info;
    let ping = record.ping_ms();
    let mut report =
        CheckReport { state: CheckState::Ok, text: record.name().to_owned(), data: Vec::new(), details: String::new() };
    if let Some(players) = info.players {
        let plural = if info.max_players.is_none() && players == 1 { "" } else { "s" };
        report.text += &format!(", {} player{plural}", details::occupancy(info));
        let most = info.max_players.map(|most| most.to_string()).unwrap_or_default();
        report.measure("players", players.into(), "", &args.warn_players, &args.crit_players, &most);
    } else if args.warn_players.is_some() || args.crit_players.is_some() {
        report.raise(CheckState::Unknown, "it does not report its players");
    }
    if let Some(ping) = ping {
        report.text += &format!(", ping {}", details::ping(ping));
        report.measure("ping", ping, "ms", &args.warn_ping, &args.crit_ping, "");
    }
    if args.verbose > 0 {
        report.details = details::server(record, Terminal { width: None, colors: false });
    }
    let missing = record.reply.iter().flat_map(|reply| &reply.missing).map(ToString::to_string).collect::<Vec<_>>();
    if !missing.is_empty() {
        report.text += &format!(", missing: {}", missing.join(", "));
    }
    report
}

fn list_report(args: &Args, summary: &ListSummary, players: Option<u64>) -> CheckReport {
    let ListSummary { connect_time, servers, malformed, .. } = *summary;
    let ping = milliseconds(connect_time);
    let count = counted(servers as u64, "server");
    let people = players.map_or_else(String::new, |players| format!(", {}", counted(players, "player")));
    let text = format!("{}, {count}{people}, ping {}", args.target, details::ping(ping));
    let mut report = CheckReport { state: CheckState::Ok, text, data: Vec::new(), details: String::new() };
    report.measure("servers", servers as f64, "", &args.warn_servers, &args.crit_servers, "");
    if let Some(players) = players {
        report.measure("players", players as f64, "", &args.warn_players, &args.crit_players, "");
    } else if args.warn_players.is_some() || args.crit_players.is_some() {
        report.raise(CheckState::Unknown, "it does not report players");
    }
    report.measure("ping", ping, "ms", &args.warn_ping, &args.crit_ping, "");
    if malformed > 0 {
        report.raise(CheckState::Warning, &format!("{malformed} more entries are invalid"));
    }
    report
}

/// The lobby does not answer, but players still have a list. Its players and its ping are not current values.
fn copy_report(args: &Args, servers: usize, copy: &MirroredList) -> CheckReport {
    let (target, count) = (&args.target, counted(servers as u64, "server"));
    let text = format!("{target}: {}; its list of {} ago is at {}, {count}", copy.cause, copy.age(), copy.url);
    let mut report = CheckReport { state: CheckState::Warning, text, data: Vec::new(), details: String::new() };
    report.measure("servers", servers as f64, "", &args.warn_servers, &args.crit_servers, "");
    mirror_args::warnings(copy).iter().for_each(|warning| report.text += &format!("; {warning}"));
    report
}

/// `1 server`, `2 servers`.
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl CheckReport {
    fn failed(target: &Target, error: &ProbeError) -> Self {
        let state = match error {
            ProbeError::TimedOut(_) | ProbeError::Refused | ProbeError::Malformed(_) => CheckState::Critical,
            _ => CheckState::Unknown,
        };
        let hint = lobby_hint(Some(target), error);
        let error = with_hint(&error.to_string(), hint);
        Self { state, text: format!("{target}: {error}"), data: Vec::new(), details: String::new() }
    }

    /// Adds a value to the performance data, and raises the alarm if it is not in its range.
    fn measure(&mut self, what: &str, value: f64, unit: &str, warn: &Option<Range>, crit: &Option<Range>, most: &str) {
        let shown = |range: &Option<Range>| range.as_ref().map(ToString::to_string).unwrap_or_default();
        self.data.push(format!("{what}={value}{unit};{};{};0;{most}", shown(warn), shown(crit)));
        for (state, range) in [(CheckState::Critical, crit), (CheckState::Warning, warn)] {
            if let Some(range) = range.as_ref().filter(|range| range.alerts(value)) {
                self.raise(state, &format!("{what} {value}{unit} {}", range.describe()));
                break;
            }
        }
    }

    fn raise(&mut self, state: CheckState, why: &str) {
        self.state = self.state.max(state);
        self.text += &format!(" ({why})");
    }

    fn print(&self) -> ExitCode {
        let word = match self.state {
            CheckState::Ok => "OK",
            CheckState::Warning => "WARNING",
            CheckState::Critical => "CRITICAL",
            CheckState::Unknown => "UNKNOWN",
        };
        // A bar separates the text from the performance data, and names come from untrusted servers.
        let text = self.text.replace('|', "/").replace('\n', " ");
        let data = self.data.join(" ");
        let bar = if data.is_empty() { "" } else { " | " };
        // If it cannot be written, there is still the exit code.
        let details = self.details.replace('|', "/");
        let _ = write!(io::stdout(), "RALLYPOINT {word} - {text}{bar}{data}\n{details}");
        ExitCode::from(self.state as u8)
    }
}
