//! `rallypoint watch`: reports changes of servers and lists as they happen.

pub mod event;
pub mod first_silences;
pub mod tracker;

use crate::{
    browse,
    error::{CommandError, with_hint},
    interactive_scan::lobby_hint,
    mirror_args::MirrorArgs,
    output::terminal::{Style, Terminal, wrap},
    runtime,
    scan_args::{ScanArgs, time},
    signals::Signals,
    stdio::print_stderr,
    target_args::{ReadTargets, TargetArgs},
};
use event::{Tone, WatchEvent, WatchEventKind};
use first_silences::FirstSilences;
use jiff::{Timestamp, Zoned};
use rallypoint_query::Target;
use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};
use tracker::ChangeTracker;

/// Watch servers and lobbies, and report every change
///
/// In a terminal it shows all servers live, with changes highlighted; press ? for the keys. Otherwise, and with --lines or
/// --jsonl, it prints a line for every event. The first pass reports all servers. Ctrl-C ends it.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "Examples, events and exit codes: rallypoint watch --help")]
pub struct Args {
    #[command(flatten)]
    targets: TargetArgs,

    /// Time from one pass to the next
    ///
    /// From 30s on, TCP servers without a query are connected to, to notice that they are down.
    #[arg(long, short = 'i', value_name = "TIME", default_value = "10s", value_parser = time)]
    interval: Duration,

    /// Print a line for every event, even in a terminal
    #[arg(long)]
    lines: bool,

    /// Print one JSON object per line for every event
    #[arg(long, conflicts_with = "lines")]
    jsonl: bool,

    /// Number of passes; by default, until Ctrl-C
    #[arg(long, value_name = "N", value_parser = crate::number::number::<u64>(1..=u64::MAX))]
    passes: Option<u64>,

    #[command(flatten)]
    mirrors: MirrorArgs,

    #[command(flatten)]
    scan: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint watch lobby://lobby.example.org
  rallypoint watch play.example.org:6969 --interval 2s
  rallypoint watch lobby://lobby.example.org/vanguard --jsonl >> events.jsonl
  rallypoint watch lobby://lobby.example.org --jsonl |
      jq -r 'select(.event == \"player_joined\") | .player'
  rallypoint watch lobby://lobby.example.org \\
      --mirror https://mirror.example.net/lobby/

Events:
  appeared       a server was found: .server has all details; .at_first is true
                 if the first pass found it
  changed        .changes has each field with .from and .to
  player_joined  .player, if the server reports its players
  player_left    .player
  silent         the server does not answer: .error, .message
  back           the server answers again
  gone           the server is no longer listed
  list_failed    a list cannot be read: .error, .message; its servers are kept
  list_copied    the list cannot be read: .error; its servers come from the copy
                 of a .mirror, .age_s old
  mirror_failed  the copy of a .mirror is not used: .message
  list_back      the list can be read again
  Each has .time and .event, and .id, .name, .address of the server, or .list.

Exit codes:
  0  ended by Ctrl-C, or after --passes passes
  1  could not start or continue, or could not read a list in the last of
     --passes passes; the last line states the reason
  2  wrong usage";

/// Runs the command until Ctrl-C.
pub fn run(args: &Args) -> Result<(), CommandError> {
    args.scan.validate()?;
    let ReadTargets { targets, invalid } = args.targets.read()?;
    invalid.iter().for_each(print_stderr);
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && browse::can_draw();
    if is_terminal && !args.lines && !args.jsonl && args.passes.is_none() {
        return browse::watch(&args.scan, targets, args.interval, args.mirrors.config(false));
    }
    runtime::block_on(print_events(args, targets))
}

/// The local time of day.
pub fn time_of_day() -> String {
    Zoned::now().strftime("%H:%M:%S").to_string()
}

/// Prints a line for every event.
async fn print_events(args: &Args, targets: Vec<Target>) -> Result<(), CommandError> {
    let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
    let mut scanner = args.scan.repeated_scanner(targets.clone(), args.interval)?;
    scanner.set_mirrors(args.mirrors.config(true));
    let mut tracker = ChangeTracker::default();
    let silences = FirstSilences::default();
    let mut printer =
        EventPrinter { targets, is_json: args.jsonl, terminal: Terminal::of_stdout(), silences, error: None };
    let mut interval = tokio::time::interval(args.interval);
    // The next pass begins a full interval after one that took longer.
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for pass in 1.. {
        tokio::select! {
            _ = interval.tick() => {}
            () = signals.stop() => return Ok(()),
        }
        tracker.begin_pass();
        let scan = scanner.scan(|event| printer.print_all(tracker.handle_event(&event)));
        tokio::select! {
            () = scan => {}
            () = signals.stop() => return Ok(()),
        }
        printer.print_all(tracker.end_pass());
        printer.end_pass();
        match printer.error.take() {
            // The reader has closed the pipe: it has read enough.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Some(error) => return Err(CommandError::failed(error)),
            None => {}
        }
        if args.passes.is_some_and(|passes| pass >= passes) {
            break;
        }
    }
    match tracker.unreadable_lists() {
        0 => Ok(()),
        1 => Err(CommandError::failed("a list could not be read in the last pass")),
        lists => Err(CommandError::failed(format_args!("{lists} lists could not be read in the last pass"))),
    }
}

struct EventPrinter {
    targets: Vec<Target>,
    is_json: bool,
    terminal: Terminal,
    silences: FirstSilences,
    /// The first error of standard output.
    error: Option<io::Error>,
}

impl EventPrinter {
    fn print_all(&mut self, events: Vec<WatchEvent>) {
        for event in events {
            // Programs get each of them.
            let event = if self.is_json { Some(event) } else { self.silences.take(event) };
            if let Some(event) = event {
                self.print(&event);
            }
        }
    }

    fn end_pass(&mut self) {
        let targets = &self.targets;
        for line in self.silences.lines(|event| line_with_hint(targets, event)) {
            let line = self.text_line(&line, Style::Bad);
            self.write(&line);
        }
    }

    /// Prints an event without delay: the reader waits for it.
    fn print(&mut self, event: &WatchEvent) {
        let line = if self.is_json {
            let time = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            event.json(&time, &target_name(&self.targets, event))
        } else {
            let style = match event.kind.tone() {
                Tone::Good => Style::Good,
                Tone::Neutral => Style::Plain,
                Tone::Bad => Style::Bad,
            };
            self.text_line(&line_with_hint(&self.targets, event), style)
        };
        self.write(&line);
    }

    /// A line with the time: in a terminal wrapped between words, with a hanging indent.
    fn text_line(&self, text: &str, style: Style) -> String {
        let time = time_of_day();
        let indent = time.len() + 1;
        let room = self.terminal.width.map_or(usize::MAX, |width| width.saturating_sub(indent)).max(20);
        let lines: Vec<_> = wrap(text, room).iter().map(|line| self.terminal.paint(style, line)).collect();
        format!("{} {}", self.terminal.paint(Style::Dim, &time), lines.join(&format!("\n{:indent$}", "")))
    }

    fn write(&mut self, line: &str) {
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            self.error.get_or_insert(error);
        }
    }
}

/// The name of the target that an event is about.
fn target_name(targets: &[Target], event: &WatchEvent) -> String {
    targets.get(event.target_index).map(ToString::to_string).unwrap_or_default()
}

/// An event as text, with a hint if a port of a lobby was taken for that of a server.
fn line_with_hint(targets: &[Target], event: &WatchEvent) -> String {
    let hint = match &event.kind {
        WatchEventKind::Silent { error, .. } => lobby_hint(targets.get(event.target_index), error),
        _ => None,
    };
    with_hint(&event.line(&target_name(targets, event)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_query::{ProbeError, ScannedServer};

    #[test]
    fn a_port_of_a_lobby_is_recognised() {
        let target: Target = "play.example.org:29944".parse().unwrap();
        let Target::Server(address) = &target else { panic!("{target}") };
        let event = WatchEvent {
            server: Some(ScannedServer::named(address, 0)),
            target_index: 0,
            kind: WatchEventKind::Silent { error: ProbeError::Refused, at_first: true },
        };
        let line = line_with_hint(std::slice::from_ref(&target), &event);
        assert!(line.starts_with("play.example.org:29944: does not answer: refused"), "{line}");
        assert!(
            line.ends_with("29944 is the port of a lobby, not of a game server: rallypoint list play.example.org"),
            "{line}"
        );
    }
}
