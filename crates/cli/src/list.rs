//! `rallypoint list`: the servers of a lobby.

mod filter;

use crate::{
    ask::{
        Asking, Exit, Target, Trouble,
        attend::{self, Attended},
        exit,
        lobby::Source,
        output::{
            OutputArgs, Record, Shape, Sink,
            sink::{self, told},
        },
        survey::{News, Place, Survey},
        target::Lobby,
    },
    error::CommandError,
    stdio::print_stderr,
};
use filter::{Filter, SortArgs};
use rallypoint_wire::{legacy, lobby::ProtocolId};
use std::{io, sync::Arc};

/// Show the servers of a lobby
///
/// By default, as the lobby lists them. With --query every server is asked itself, too, which tells its ping, and what is
/// true now. A password is marked with *.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", exit::HELP))]
#[command(after_help = "More, with examples and exit codes: rallypoint list --help")]
pub struct Args {
    // No doc comment, because of the brackets.
    #[arg(value_name = "LOBBY", env = "RALLYPOINT_LOBBY", value_delimiter = ',', default_value = "localhost")]
    #[arg(help = "The lobby: host, host:port, lobby://host[:port][/lobby], or the http:// address of a Bloodmasters \
                  master list; can be several")]
    lobbies: Vec<String>,

    /// Which of its lists, if the lobby does not name it: a UUID, or gg2, pygg2, vanguard, rooms, bloodmasters
    #[arg(long, value_name = "UUID|NAME", value_parser = crate::config::names::find)]
    lobby_id: Option<rallypoint_wire::lobby::LobbyId>,

    /// Ask every server itself, too
    #[arg(long, short = 'q')]
    query: bool,

    /// Ask every server itself, and also who plays there
    #[arg(long)]
    players: bool,

    /// Speak the older protocol of Gang Garrison 2, at port 29942
    #[arg(long)]
    legacy: bool,

    /// For --legacy: the version of the game, a number or a UUID; only its servers are listed
    #[arg(long, value_name = "N|UUID", default_value = GG2_PROTOCOL, value_parser = version, requires = "legacy")]
    protocol_id: ProtocolId,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    sort: SortArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    asking: Asking,
}

/// What Gang Garrison 2 v2.9.2 speaks.
const GG2_PROTOCOL: &str = "b31c2209-4256-9a19-d0ef-c71c5373bd75";

const MORE: &str = "\
Examples:
  rallypoint list lobby.example.org
  rallypoint list lobby.example.org --query --not-empty --sort ping --limit 10
  rallypoint list lobby://lobby.example.org/vanguard --jsonl
  rallypoint list --legacy lobby.example.org
  rallypoint list http://lobby.example.org/bloodmasterslist.php --query

Environment:
  RALLYPOINT_LOBBY  the lobby, if none is named; several with commas";

/// Gets the lists, asks, and tells.
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    try_run(args).map_err(|failure| sink::fail(args.output.format(), failure))
}

fn try_run(args: &Args) -> Result<Exit, CommandError> {
    args.asking.validate()?;
    let source = |text: &String| args.source(text).map(Place::List);
    let places = args.lobbies.iter().map(source).collect::<Result<Arc<[_]>, _>>()?;
    let mut sink = Sink::new(args.output.format(), Shape::Table, false);
    crate::ask::block_on(async {
        let survey = match args.query || args.players {
            true => Survey::new(&args.asking, places.clone(), args.players)?,
            false => Survey::of_lists(&args.asking, places.clone()),
        };
        let listing = Listing { args, places, listed: 0, shown: 0, kept: Vec::new(), sink: &mut sink };
        told(listing.run(Attended::new(survey)?).await)
    })
}

impl Args {
    fn source(&self, text: &str) -> Result<Source, CommandError> {
        let usage = |why: String| CommandError::Usage(format!("{text:?} cannot be listed: {why}"));
        let lobby = match text.contains("://").then(|| text.parse::<Target>()) {
            Some(Ok(Target::MasterList(list))) => return Ok(Source::MasterList(list)),
            Some(Ok(Target::Lobby(lobby))) => lobby,
            Some(Ok(Target::Server(_))) => return Err(usage("it is a server; rallypoint query asks servers".into())),
            Some(Err(why)) => return Err(usage(why)),
            None => text.parse::<Lobby>().map_err(usage)?,
        };
        let lobby = Lobby { id: lobby.id.or(self.lobby_id), ..lobby };
        Ok(if self.legacy { Source::Legacy(lobby, self.protocol_id) } else { Source::Lobby(lobby) })
    }

    /// Whether results can be told as they come.
    fn streams(&self) -> bool {
        self.sort.by.is_none() && !self.output.is_text()
    }
}

/// What is to be shown of lists.
struct Listing<'a> {
    args: &'a Args,
    places: Arc<[Place]>,
    listed: usize,
    shown: usize,
    /// What waits to be sorted.
    kept: Vec<Record>,
    sink: &'a mut Sink,
}

impl Listing<'_> {
    async fn run(mut self, mut attended: Attended) -> io::Result<Exit> {
        self.sink.begin()?;
        let mut exit = Exit::Answered;
        while let Some(news) = attended.next(self.sink).await? {
            exit = exit.and(self.hear(news)?);
        }
        self.args.sort.sort(&mut self.kept);
        for record in std::mem::take(&mut self.kept) {
            self.show(&record)?;
        }
        self.sink.end()?;
        let exit = attended.exit(exit);
        if self.shown == 0 && exit == Exit::Answered && self.args.output.is_text() {
            print_stderr(match self.listed {
                0 => "no server is listed".into(),
                1 => "1 server is listed, but it does not fit".into(),
                listed => format!("{listed} servers are listed, but none of them fits"),
            });
        }
        Ok(exit)
    }

    fn hear(&mut self, news: News) -> io::Result<Exit> {
        match news {
            News::Listed { seen, asked } => {
                self.listed += 1;
                // Who is asked is shown with what comes of that.
                if asked { Ok(Exit::Answered) } else { self.take(seen.record) }
            }
            News::Answered(seen) | News::Silent(seen) => self.take(seen.record),
            News::Complete(place, fetched) => attend::tell_list(&self.places[place], fetched, self.sink),
            News::Failed(place, trouble) => {
                attend::tell_missed(self.places[place].to_string(), None, &trouble, self.sink)
            }
        }
    }

    /// A server that is wanted is shown, now or later. How it went with it counts only then.
    fn take(&mut self, record: Record) -> io::Result<Exit> {
        if !self.args.filter.accepts(&record) {
            return Ok(Exit::Answered);
        }
        let exit = record.trouble.as_ref().map_or(Exit::Answered, Trouble::exit);
        if self.args.streams() {
            self.show(&record)?;
        } else {
            self.kept.push(record);
        }
        Ok(exit)
    }

    fn show(&mut self, record: &Record) -> io::Result<()> {
        if self.args.sort.limit.is_some_and(|limit| self.shown >= limit) {
            return Ok(());
        }
        self.shown += 1;
        self.sink.server(0, record)
    }
}

fn version(text: &str) -> Result<ProtocolId, &'static str> {
    let number = text.parse().map(legacy::protocol_of_version);
    number.or_else(|_| text.parse()).map_err(|_| "expected a version from 0 to 255, or a UUID")
}
