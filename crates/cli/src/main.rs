//! The program `rallypoint`: one module per command.
//!
//! ```console
//! $ rallypoint demo                                 # a lobby with thirty servers, on this machine
//! $ rallypoint serve                                # a lobby, and its page at http://127.0.0.1:29950/
//! $ rallypoint announce --lobby 127.0.0.1 --name "My server" --port 8190
//! $ rallypoint list 127.0.0.1
//! $ rallypoint help
//! ```
#![forbid(unsafe_code)]

mod admin;
mod announce;
mod announced_lobby;
mod browse;
mod check;
mod cluster;
mod completions;
mod config;
mod demo;
mod doctor;
mod error;
mod exit;
mod flag_tips;
mod history;
mod host;
mod input_lines;
mod interactive_scan;
mod join;
mod known_keys;
mod list;
mod list_arg;
mod listen_addr;
mod local_lobby;
mod log;
mod man;
mod mirror_args;
mod number;
mod output;
mod packet_log;
mod ping;
mod port_hints;
mod query;
mod registration_outcomes;
mod respond;
mod runtime;
mod scan_args;
mod serve;
mod signals;
mod stdio;
mod target_args;
mod toml_file;
mod units;
mod user_dirs;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// The output of `rallypoint --version`; `-V` prints the first line only.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("RALLYPOINT_COMMIT_SHOWN"),
    "\ntarget: ",
    env!("RALLYPOINT_TARGET"),
    "\nfeatures: https cluster history geoip",
);

/// From "a server started" to "a player is in the game": a lobby for game servers, and the tools around it.
#[derive(Parser)]
#[command(version, long_version = LONG_VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Serve(serve::Args),
    Demo(demo::Args),
    Announce(announce::Args),
    Query(query::Args),
    Ping(ping::Args),
    List(list::Args),
    Check(check::Args),
    Browse(browse::Args),
    Watch(watch::Args),
    Doctor(doctor::Args),
    Respond(respond::Args),
    History(history::Args),
    Admin(admin::Args),
    Cluster(cluster::Args),
    Host(host::Args),
    Join(join::Args),
    Completions(completions::Args),
    Man(man::Args),
}

const EXAMPLES: &str = "\
Examples:
  rallypoint serve
      runs a lobby on this machine, without configuration
  rallypoint demo
      a lobby with pretend servers, for a first look
  rallypoint announce --name \"Bacon Town\" --port 8190 --lobby lobby.example.org
      keeps a game server in the list of a lobby
  rallypoint list lobby.example.org --query --not-empty --sort ping
      servers with players, lowest ping first
  rallypoint query play.example.org session://[2001:db8::1]:45555 --json
      details and players of two servers
  rallypoint ping -c 5 play.example.org
      measures the round-trip time
  rallypoint watch lobby://lobby.example.org
      prints servers that appear, disappear or change
  rallypoint browse lobby.example.org
      a server browser in the terminal
  rallypoint check play.example.org:6969 -w 100 -c 300
      a check for Nagios or Icinga
  rallypoint host
      hosts a chat room on this machine
  rallypoint join play.example.org
      joins a chat room
  rallypoint doctor play.example.org:8190 --lobby lobby.example.org
      finds out why a server is not listed

For details of a command: rallypoint list --help

Exit codes:
  0  all went well; query, list, ping: all answered
  1  failed, the last line states the reason; query, list, ping: some did not
     answer
  2  wrong usage, or a mistake in the configuration
  3  query, list, ping: a reply was invalid
  4  query, list, ping: refused, nothing listens at that port (others may have
     answered)
  5  query, list, ping: this machine could not send the query
  check has those of Nagios plugins: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN";

fn main() -> ExitCode {
    let result = match parse().verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Announce(args) => announce::run(&args),
        Verb::Query(args) => return exit::finish(query::run(&args)),
        Verb::Ping(args) => return exit::finish(ping::run(&args)),
        Verb::List(args) => return exit::finish(list::run(&args)),
        Verb::Check(args) => return check::run(&args),
        Verb::Browse(args) => browse::run(&args),
        Verb::Watch(args) => watch::run(&args),
        Verb::Doctor(args) => match doctor::run(&args) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Verb::Respond(args) => respond::run(&args),
        Verb::History(args) => history::run(&args),
        Verb::Admin(args) => return exit::finish(admin::run(&args)),
        Verb::Cluster(args) => cluster::run(&args),
        Verb::Host(args) => host::run(&args),
        Verb::Join(args) => join::run(&args),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
        Verb::Man(args) => man::run(&args, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            stdio::print_stderr(&failure);
            failure.exit_code()
        }
    }
}

/// Prints wrong usage: with colours, or without them where lines have to be wrapped.
fn print_usage_error(error: &clap::Error) {
    let text = error.render().to_string();
    let is_wide = |width| text.lines().any(|line| line.chars().count() > width);
    match output::terminal::stderr_width() {
        Some(width) if is_wide(width) => stdio::print_stderr(text.trim_end()),
        _ => drop(error.print()),
    }
}

/// Parses the arguments. A monitoring system would take exit code 2 for CRITICAL, so wrong usage of `check` exits with 3.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        let verb = std::env::args().nth(1).unwrap_or_default();
        flag_tips::add(&mut error, &verb);
        let summary = || error::usage_summary(&error.to_string());
        match &*verb {
            "check" if error.use_stderr() => {
                // With all hints on standard error, for interactive use; monitoring systems read standard output.
                print_usage_error(&error);
                check::print_unknown(summary());
                std::process::exit(3);
            }
            // Programs read the output of these, so the error has the same format.
            "query" | "list" if error.use_stderr() => {
                let format = output::Format::from_invalid_arguments(std::env::args().skip(2));
                output::printer::print_command_error(format, error::CommandError::Usage(summary()));
            }
            _ => {}
        }
        if error.use_stderr() {
            print_usage_error(&error);
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}
