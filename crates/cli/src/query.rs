//! `rallypoint query`: asks servers what they are and who plays there.

use crate::{
    ask::{
        Asking, Exit, Target, Trouble,
        attend::{self, Attended},
        exit,
        gather::TargetArgs,
        output::{
            OutputArgs, Shape, Sink,
            sink::{self, told},
        },
        survey::{News, Place, Seen, Survey},
    },
    error::CommandError,
};
use std::{io, sync::Arc};

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
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    try_run(args).map_err(|failure| sink::fail(args.output.format(), failure))
}

fn try_run(args: &Args) -> Result<Exit, CommandError> {
    args.asking.validate()?;
    let targets = args.targets.gather()?;
    let is_single = matches!(&targets[..], [Target::Server(_)]);
    let shape = if args.details || is_single { Shape::Details } else { Shape::Table };
    let mut sink = Sink::new(args.output.format(), shape, is_single);
    let places: Arc<[_]> = targets.into_iter().map(Place::from).collect();
    crate::ask::block_on(async {
        let survey = Survey::new(&args.asking, places.clone(), !args.no_players)?;
        told(ask(&places, Attended::new(survey)?, &mut sink).await)
    })
}

async fn ask(places: &[Place], mut attended: Attended, sink: &mut Sink) -> io::Result<Exit> {
    sink.begin()?;
    let mut exit = Exit::Answered;
    while let Some(news) = attended.next(sink).await? {
        exit = exit.and(match news {
            // It is asked itself: that tells more.
            News::Listed { asked: true, .. } => Exit::Answered,
            News::Silent(Seen { place, record, .. }) if matches!(places[place], Place::Server(_)) => {
                let trouble = record.trouble.as_ref().unwrap_or(&Trouble::NotFound);
                attend::tell_missed(record.target.clone(), record.address, trouble, sink)?
            }
            News::Listed { seen, .. } | News::Answered(seen) | News::Silent(seen) => {
                sink.server(seen.place, &seen.record)?;
                seen.record.trouble.as_ref().map_or(Exit::Answered, Trouble::exit)
            }
            News::Complete(place, fetched) => attend::tell_list(&places[place], fetched, sink)?,
            News::Failed(place, trouble) => attend::tell_missed(places[place].to_string(), None, &trouble, sink)?,
        });
    }
    sink.end()?;
    Ok(attended.exit(exit))
}
