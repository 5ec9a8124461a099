//! The program `rallypoint`: every verb is a module of its own.
#![forbid(unsafe_code)]

mod announce;
mod ask;
mod completions;
mod config;
mod failure;
mod log;
mod man;
mod respond;
mod serve;
mod signals;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// From "a server started" to "a player is in the game": a lobby for game servers, and the tools around it.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Serve(serve::Args),
    Announce(announce::Args),
    Respond(respond::Args),
    Completions(completions::Args),
    Man(man::Args),
}

const EXAMPLES: &str = "\
Examples:
  rallypoint serve                 a lobby on this machine, with no configuration
  rallypoint announce --name \"Bacon Town\" --port 8190 --lobby lobby.example.org
                                   keeps a game server in the list of a lobby

Each command tells more about itself: rallypoint serve --help

Exit codes: 0 all went well, 1 it failed (the last line says why), 2 wrong usage or configuration";

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Announce(args) => announce::run(&args),
        Verb::Respond(args) => respond::run(&args),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
        Verb::Man(args) => man::run(&args, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure::complain(&failure);
            failure.exit_code()
        }
    }
}
