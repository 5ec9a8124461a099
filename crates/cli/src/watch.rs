//! `rallypoint watch`: what changes, as it changes.

pub mod book;
pub mod event;

use crate::{
    ask::{
        self, Asking, Target,
        gather::TargetArgs,
        options::time,
        output::terminal::{Style, Terminal},
        survey::Survey,
    },
    browse,
    error::CommandError,
    signals::Signals,
};
use book::Book;
use event::Event;
use jiff::{Timestamp, Zoned};
use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

/// Watch servers and lobbies: who comes, who goes, what changes
///
/// In a terminal it shows everything live, with what has changed marked; ? tells the keys. Otherwise, and with --lines or
/// --jsonl, it writes a line for every event. The first look tells who is there. It ends on Ctrl-C.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples and exit codes: rallypoint watch --help")]
pub struct Args {
    #[command(flatten)]
    targets: TargetArgs,

    /// How long to wait from one look to the next
    #[arg(long, short = 'i', value_name = "TIME", default_value = "10s", value_parser = time)]
    interval: Duration,

    /// A line for every event, also in a terminal
    #[arg(long)]
    lines: bool,

    /// A JSON object for every event, each on a line
    #[arg(long, conflicts_with = "lines")]
    jsonl: bool,

    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = crate::number::number::<u64>(1..=u64::MAX))]
    looks: Option<u64>,

    #[command(flatten)]
    asking: Asking,
}

const MORE: &str = "\
Examples:
  rallypoint watch lobby://lobby.example.org
  rallypoint watch play.example.org:6969 --interval 2s
  rallypoint watch lobby://lobby.example.org/vanguard --jsonl >> events.jsonl
  rallypoint watch lobby://lobby.example.org --jsonl |
      jq -r 'select(.event == \"player_joined\") | .player'

Events:
  appeared       a server is there: .server has all about it; .at_first: it was
                 there at the first look
  changed        .changes has each field with .from and .to
  player_joined  .player, if the server tells who plays there
  player_left    .player
  silent         it is listed, but does not answer: .error, .message
  back           it answers again
  gone           it is not listed any more
  list_failed    a lobby does not give its list: .error, .message; nobody is
                 gone because of that
  list_back      it does again
  Each has .time and .event, and .id, .name, .address of the server, or .list.

Exit codes:
  0  Ctrl-C, or all --looks are done
  1  it could not start or go on; the last line says why
  2  wrong usage";

/// Watches until Ctrl-C.
pub fn run(args: &Args) -> Result<(), CommandError> {
    args.asking.validate()?;
    let targets = args.targets.gather()?;
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal() && browse::can_draw();
    if is_terminal && !args.lines && !args.jsonl && args.looks.is_none() {
        return browse::watch(&args.asking, targets, args.interval);
    }
    ask::block_on(lines(args, targets))
}

/// The time of day here, for people.
pub fn time_of_day() -> String {
    Zoned::now().strftime("%H:%M:%S").to_string()
}

/// A line for every event.
async fn lines(args: &Args, targets: Vec<Target>) -> Result<(), CommandError> {
    let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
    let names: Vec<_> = targets.iter().map(ToString::to_string).collect();
    let places = targets.into_iter().map(Into::into).collect();
    let mut survey = Survey::new(&args.asking, places, true)?;
    let mut book = Book::default();
    let mut teller = Teller { names, is_json: args.jsonl, terminal: Terminal::of_stdout(), broken: None };
    let mut interval = tokio::time::interval(args.interval);
    // After a look that took long, the next one waits as long as ever.
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for look in 1.. {
        tokio::select! {
            _ = interval.tick() => {}
            () = signals.stop() => return Ok(()),
        }
        book.begin();
        let looking = survey.look(|news| book.handle_news(&news).iter().for_each(|event| teller.tell(event)));
        tokio::select! {
            () = looking => {}
            () = signals.stop() => return Ok(()),
        }
        book.end().iter().for_each(|event| teller.tell(event));
        match teller.broken.take() {
            // Whoever reads has read enough.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Some(error) => return Err(CommandError::failed(error)),
            None => {}
        }
        if args.looks.is_some_and(|looks| look >= looks) {
            break;
        }
    }
    Ok(())
}

struct Teller {
    names: Vec<String>,
    is_json: bool,
    terminal: Terminal,
    broken: Option<io::Error>,
}

impl Teller {
    /// Tells an event at once: whoever reads waits for it.
    fn tell(&mut self, event: &Event) {
        let place = self.names.get(event.place).map_or("", |name| &**name);
        let line = if self.is_json {
            event.json(&Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(), place)
        } else {
            let style = match event.what.mood() {
                1 => Style::Good,
                -1 => Style::Bad,
                _ => Style::Plain,
            };
            format!(
                "{} {}",
                self.terminal.paint(Style::Dim, &time_of_day()),
                self.terminal.paint(style, &event.line(place))
            )
        };
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            self.broken.get_or_insert(error);
        }
    }
}
