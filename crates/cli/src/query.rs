//! `rallypoint query`: asks servers what they are and who plays there.

use crate::{
    ask::{
        Asking, Exit, Target,
        collect::{self, Collect, News},
        exit,
        gather::TargetArgs,
        lobby::Source,
        output::{
            OutputArgs, Shape, Sink,
            sink::{self, told},
        },
    },
    failure::Failure,
};
use std::io;

/// Ask game servers what they are and who plays there
///
/// A server without a scheme is asked in both protocols, at the port given or at their default ports (6969 for
/// bloodmasters, 45555 for session), and at every address of its name; the first answer counts. A lobby or a master list
/// stands for all of its servers.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", exit::HELP), after_help = "More, with examples and exit codes: rallypoint query --help")]
pub struct Args {
    #[command(flatten)]
    targets: TargetArgs,

    /// All about every server, also of several; otherwise several are shown in a table
    #[arg(long, short = 'd')]
    details: bool,

    /// Do not ask who plays there
    #[arg(long)]
    no_players: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    asking: Asking,
}

const MORE: &str = "\
Examples:
  rallypoint query play.example.org
  rallypoint query bloodmasters://192.0.2.1:6969 session://[2001:db8::1]:45555
  rallypoint query --file servers.txt --jsonl --timeout 2s
  rallypoint query lobby://lobby.example.org/vanguard
  rallypoint query play.example.org --json | jq '.servers[0].players'";

/// Asks, and tells.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    try_run(args).map_err(|failure| sink::fail(args.output.format(), failure))
}

fn try_run(args: &Args) -> Result<Exit, Failure> {
    args.asking.validate()?;
    let targets = args.targets.gather()?;
    let is_single = matches!(&targets[..], [Target::Server(_)]);
    let shape = if args.details || is_single { Shape::Details } else { Shape::Table };
    let mut sink = Sink::new(args.output.format(), shape, is_single);
    crate::ask::block_on(async {
        let collect = Collect::new(&args.asking, !args.no_players)?;
        told(ask(targets, collect, &args.asking, &mut sink).await)
    })
}

async fn ask(targets: Vec<Target>, mut collect: Collect, asking: &Asking, sink: &mut Sink) -> io::Result<Exit> {
    sink.begin()?;
    let (mut sources, mut exit) = (Vec::new(), Exit::Answered);
    for target in targets {
        match target {
            Target::Server(_) => collect.add(target),
            Target::Lobby(lobby) => sources.push(Source::Lobby(lobby)),
            Target::MasterList(list) => sources.push(Source::MasterList(list)),
        }
    }
    if !sources.is_empty() {
        let lists = collect::lists(sources, asking, sink).await?;
        exit = exit.and(lists.exit.unwrap_or(Exit::Answered));
        for listed in lists.servers {
            if let Some(record) = collect.add_listed(listed) {
                sink.server(&record)?;
            }
        }
    }
    while let Some(news) = collect.next(sink).await {
        match news {
            News::Server(record) => {
                exit = exit.and(record.trouble.as_ref().map_or(Exit::Answered, crate::ask::Trouble::exit));
                sink.server(&record)?;
            }
            News::Missed(missed, how) => {
                exit = exit.and(how);
                sink.missed(missed)?;
            }
        }
    }
    sink.end()?;
    Ok(if collect.is_stopped() { exit.and(Exit::Silent) } else { exit })
}
