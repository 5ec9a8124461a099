//! `rallypoint list`: the servers of a lobby.

mod filter;

use crate::{
    error::CommandError,
    exit::{self, Exit},
    interactive_scan::InteractiveScan,
    list_arg,
    local_lobby::LocalLobby,
    mirror_args::MirrorArgs,
    output::{
        Format, OutputArgs, Printer, Shape,
        printer::{exit_of_output, print_command_error},
    },
    runtime,
    scan_args::ScanArgs,
    stdio::print_stderr,
};
use filter::{Filter, SortArgs};
use rallypoint_query::{LobbyAddress, ProbeError, ScanEvent, ScannedServer, Target, list_names, proto::Detail};
use rallypoint_wire::{
    legacy,
    lobby::{ListId, ProtocolId},
};
use std::{fmt, io};

/// List the servers of a lobby
///
/// Shows all lists of the lobby, unless one is named. Servers are shown as the lobby describes them. With --query every server is
/// queried as well, which adds its ping and its current state; TCP servers are connected to for their ping. pw marks servers that
/// require a password, - a value that is not known.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", exit::HELP))]
#[command(after_help = "Examples and exit codes: rallypoint list --help")]
pub struct Args {
    // Not a doc comment, because of the brackets.
    #[arg(value_name = "LOBBY", env = "RALLYPOINT_LOBBY", value_delimiter = ',')]
    #[arg(
        help = "Lobbies: host, host:port, lobby://host[:port][/list], or the http:// or https:// URL of a lobby's page or of \
                  a Bloodmasters master list [default: the lobby on this machine]"
    )]
    lobbies: Vec<String>,

    #[arg(help = list_arg::help("List to read, unless LOBBY names one", " [default: all lists]"))]
    #[arg(long = "list", value_name = "UUID|NAME", value_parser = list_names::find)]
    list_id: Option<ListId>,

    /// Query every server, too
    #[arg(long, short = 'q')]
    query: bool,

    /// Query every server, too, and show its players (not in --csv)
    #[arg(long)]
    players: bool,

    /// Use the legacy protocol of Gang Garrison 2, at port 29942
    #[arg(long)]
    legacy: bool,

    /// For --legacy: the version of the game, a number or a UUID; only servers of that version are listed
    #[arg(long, value_name = "N|UUID", default_value = GG2_PROTOCOL, value_parser = version, requires = "legacy")]
    protocol_id: ProtocolId,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    sort: SortArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    mirrors: MirrorArgs,

    #[command(flatten)]
    scan: ScanArgs,
}

/// Protocol ID of Gang Garrison 2 v2.9.2.
const GG2_PROTOCOL: &str = "b31c2209-4256-9a19-d0ef-c71c5373bd75";

const MORE: &str = "\
Examples:
  rallypoint list lobby.example.org
  rallypoint list lobby.example.org --query --not-empty --sort ping --limit 10
  rallypoint list lobby://lobby.example.org/vanguard --jsonl
  rallypoint list --legacy lobby.example.org
  rallypoint list https://lobby.example.org/
  rallypoint list https://lobby.example.org/bloodmasterslist.php --query
  rallypoint list lobby.example.org --mirror https://mirror.example.net/lobby/

Environment:
  RALLYPOINT_LOBBY  the lobby, if none is given; several separated by commas
  RALLYPOINT_MIRROR where to read the list while the lobby does not answer;
                    several separated by commas
  SSL_CERT_FILE     trusted certificates for https://, instead of the system's";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    try_run(args).map_err(|error| print_command_error(args.output.format(), error))
}

fn try_run(args: &Args) -> Result<Exit, CommandError> {
    args.scan.validate()?;
    if args.players && args.output.format() == Format::Csv {
        return Err(CommandError::Usage(
            "--csv has one line for each server, without its players: use --query instead of --players, or --json"
                .into(),
        ));
    }
    let local = args.lobbies.is_empty().then(|| LocalLobby::load().host());
    let mut targets = Vec::new();
    for text in args.lobbies.iter().chain(&local) {
        let target = args.target(text)?;
        // A lobby that is named twice is listed once.
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let shape = if args.players { Shape::Details } else { Shape::Table };
    let printer = Printer::new(args.output.format(), shape, false);
    let detail = match (args.players, args.query) {
        (true, _) => Some(Detail::Players),
        (false, true) => Some(Detail::Info),
        (false, false) => None,
    };
    runtime::block_on(async {
        let mut scanner = args.scan.scanner_with_tcp(targets, detail)?;
        scanner.set_mirrors(args.mirrors.config(true));
        let scan = InteractiveScan::start(scanner)?;
        let listing = Listing { args, listed: 0, shown: 0, unsorted: Vec::new(), printer };
        exit_of_output(listing.run(scan).await)
    })
}

impl Args {
    fn target(&self, text: &str) -> Result<Target, CommandError> {
        let usage = |why: &dyn fmt::Display| CommandError::Usage(format!("{text:?} cannot be listed: {why}"));
        let lobby = match text.contains("://").then(|| text.parse::<Target>()) {
            Some(Ok(Target::Lobby(lobby))) => lobby,
            Some(Ok(Target::Server(_))) => return Err(usage(&"it is a server; use rallypoint query for servers")),
            Some(Ok(target)) => return Ok(target),
            Some(Err(error)) => return Err(usage(&error)),
            None => text.parse::<LobbyAddress>().map_err(|error| usage(&error))?,
        };
        let lobby = LobbyAddress { id: lobby.id.or(self.list_id), ..lobby };
        Ok(if self.legacy { Target::LegacyLobby(lobby, self.protocol_id) } else { Target::Lobby(lobby) })
    }

    /// Whether results can be printed as they arrive.
    fn is_streamed(&self) -> bool {
        self.sort.by.is_none() && !self.output.is_text()
    }
}

/// The listing of one or several lobbies.
struct Listing<'a> {
    args: &'a Args,
    /// Number of servers in the lists.
    listed: usize,
    /// Number of servers printed.
    shown: usize,
    /// Servers that are printed in the end, when they can be sorted.
    unsorted: Vec<ScannedServer>,
    printer: Printer,
}

impl Listing<'_> {
    async fn run(mut self, mut scan: InteractiveScan) -> io::Result<Exit> {
        self.printer.begin()?;
        let mut exit = Exit::Answered;
        while let Some(event) = scan.next(&mut self.printer).await? {
            exit = exit.and(self.handle_event(event, &mut scan)?);
        }
        self.args.sort.sort(&mut self.unsorted);
        for server in std::mem::take(&mut self.unsorted) {
            self.print(&server)?;
        }
        self.printer.end()?;
        let exit = scan.exit(exit);
        if self.shown == 0 && exit == Exit::Answered && self.args.output.is_text() {
            print_stderr(match self.listed {
                0 if self.args.legacy => "no servers of this version are listed; --protocol-id selects another".into(),
                0 => match self.args.list_id {
                    Some(list) => format!("no servers are in the list {}", list_names::short_name(list)),
                    None => "no servers are listed".into(),
                },
                1 => "1 server is listed, but it does not match".into(),
                listed => format!("{listed} servers are listed, but none of them matches"),
            });
        }
        Ok(exit)
    }

    fn handle_event(&mut self, event: ScanEvent, scan: &mut InteractiveScan) -> io::Result<Exit> {
        match event {
            ScanEvent::Listed { server, is_probed } => {
                self.listed += 1;
                // A server that is probed is printed with the result.
                if is_probed { Ok(Exit::Answered) } else { self.add(server) }
            }
            ScanEvent::Answered(server) | ScanEvent::Failed(server) => self.add(server),
            ScanEvent::ListComplete(index, summary) => scan.print_list(index, summary, &mut self.printer),
            ScanEvent::ListFailed(index, error) => {
                let hint = self.list_hint(scan.target(index), &error);
                scan.print_list_failure(index, &error, hint, &mut self.printer)
            }
            ScanEvent::Mirror(index, event) => scan.print_mirror(index, &event, &mut self.printer),
        }
    }

    /// A hint for a list that cannot be read.
    fn list_hint(&self, target: Option<&Target>, error: &ProbeError) -> Option<String> {
        match (error, target) {
            (ProbeError::Refused, Some(Target::Lobby(lobby))) if self.args.lobbies.is_empty() => Some(format!(
                "no lobby was named, and none runs at port {} of this machine: name one (rallypoint list HOST), or start \
                 one (rallypoint serve, or rallypoint demo for one with pretend servers)",
                lobby.port()
            )),
            (ProbeError::StaticCopy, _) => {
                Some("name its lobby, and the copy as a mirror: rallypoint list LOBBY --mirror URL".into())
            }
            _ => None,
        }
    }

    /// Prints a server that matches the filter, now or later. A server that does not match does not affect the exit code.
    fn add(&mut self, server: ScannedServer) -> io::Result<Exit> {
        if !self.args.filter.accepts(&server) {
            return Ok(Exit::Answered);
        }
        let exit = server.error.as_ref().map_or(Exit::Answered, Exit::from);
        if self.args.is_streamed() {
            self.print(&server)?;
        } else {
            self.unsorted.push(server);
        }
        Ok(exit)
    }

    fn print(&mut self, server: &ScannedServer) -> io::Result<()> {
        if self.args.sort.limit.is_some_and(|limit| self.shown >= limit) {
            return Ok(());
        }
        self.shown += 1;
        self.printer.server(0, server)
    }
}

fn version(text: &str) -> Result<ProtocolId, &'static str> {
    let number = text.parse().map(legacy::protocol_of_version);
    number.or_else(|_| text.parse()).map_err(|_| "expected a version from 0 to 255, or a UUID")
}
