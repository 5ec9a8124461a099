//! `rallypoint query`: queries servers for their description and players.

use crate::{
    error::{CommandError, with_hint},
    exit::{self, Exit},
    interactive_scan::{InteractiveScan, lobby_hint, print_failure, query_failure},
    output::{
        FailedTarget, OutputArgs, Printer, Shape,
        printer::{exit_of_output, print_command_error},
    },
    runtime,
    scan_args::ScanArgs,
    stdio::print_stderr,
    target_args::{InvalidLine, ReadTargets, TargetArgs},
};
use rallypoint_query::{ProbeError, ScanEvent, Target, proto::Detail};
use std::io;

/// Query game servers: name, map, players, ping
///
/// A server without a scheme is queried with the protocols bloodmasters and session, and with that whose default port it has,
/// at every address of its name; the first answer counts. A lobby or a master list stands for all of its servers. The protocols
/// are in docs/querying.md.
#[derive(clap::Args)]
#[command(after_long_help = format!("{MORE}\n\n{}", exit::HELP), after_help = "Examples and exit codes: rallypoint query --help")]
pub struct Args {
    #[command(flatten)]
    targets: TargetArgs,

    /// Show all details of every server; by default, several servers are shown in a table
    #[arg(long, short = 'd')]
    details: bool,

    /// Do not request the lists of players
    #[arg(long)]
    no_players: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    scan: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint query play.example.org
  rallypoint query bloodmasters://192.0.2.1:6969 session://[2001:db8::1]:45555
  rallypoint query --file servers.txt --jsonl --timeout 2s
  rallypoint query lobby://lobby.example.org/vanguard
  rallypoint query play.example.org --json | jq '.servers[0].players'";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, CommandError> {
    try_run(args).map_err(|error| print_command_error(args.output.format(), error))
}

fn try_run(args: &Args) -> Result<Exit, CommandError> {
    args.scan.validate()?;
    let ReadTargets { targets, invalid } = args.targets.read()?;
    let is_single = matches!(&targets[..], [Target::Server(_)]) && invalid.is_empty();
    let shape = if args.details || is_single { Shape::Details } else { Shape::Table };
    let mut printer = Printer::new(args.output.format(), shape, is_single);
    let detail = if args.no_players { Detail::Info } else { Detail::Players };
    runtime::block_on(async {
        let scan = InteractiveScan::start(args.scan.scanner(targets, Some(detail))?)?;
        exit_of_output(print_results(scan, invalid, &mut printer).await)
    })
}

async fn print_results(
    mut scan: InteractiveScan,
    invalid: Vec<InvalidLine>,
    printer: &mut Printer,
) -> io::Result<Exit> {
    printer.begin()?;
    let has_invalid_lines = !invalid.is_empty();
    for InvalidLine { place, message } in invalid {
        printer.failed_target(FailedTarget { target: place, address: None, error: "invalid_target", message })?;
    }
    let mut exit = Exit::Answered;
    let mut is_empty = true;
    while let Some(event) = scan.next(printer).await? {
        is_empty &= matches!(event, ScanEvent::ListComplete(..));
        exit = exit.and(match event {
            // Printed with the result of its probe, which has more details.
            ScanEvent::Listed { is_probed: true, .. } => Exit::Answered,
            // A named server, which is in no list.
            ScanEvent::Failed(server) if server.endpoints.is_empty() => {
                let error = server.error.as_ref().unwrap_or(&ProbeError::NotFound);
                let hint = lobby_hint(scan.target(server.target_index), error);
                print_failure(
                    server.target.clone(),
                    server.address,
                    error,
                    with_hint(&query_failure(error), hint),
                    printer,
                )?
            }
            ScanEvent::Listed { server, .. } | ScanEvent::Answered(server) | ScanEvent::Failed(server) => {
                printer.server(server.target_index, &server)?;
                server.error.as_ref().map_or(Exit::Answered, Exit::from)
            }
            ScanEvent::ListComplete(index, summary) => scan.print_list(index, summary, printer)?,
            ScanEvent::ListFailed(index, error) => scan.print_list_failure(index, &error, None, printer)?,
            // This command has no mirrors.
            ScanEvent::Mirror(..) => Exit::Answered,
        });
    }
    printer.end()?;
    if is_empty && exit == Exit::Answered && printer.is_text() {
        print_stderr("no servers are listed");
    }
    Ok(if has_invalid_lines { Exit::Usage } else { scan.exit(exit) })
}
