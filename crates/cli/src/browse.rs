//! `rallypoint browse`: a server browser in the terminal.
//!
//! ```text
//! screen    the terminal: keys in, frames out           worker   a thread that scans lobbies and servers
//!      │ keys ▲ actions                                      │ scan events
//!      ▼      │                                              ▼
//! model     everything known and shown; no I/O         view     draws the model; no I/O
//! ```

mod args;
mod change_log;
mod favourites;
mod filter;
mod join;
mod model;
mod screen;
mod settings;
mod shutdown;
#[cfg(test)]
mod tests;
mod theme;
mod view;
mod worker;

pub use args::Args;

use crate::{
    error::CommandError,
    local_lobby::LocalLobby,
    scan_args::{MIN_CONNECT_INTERVAL, ScanArgs},
};
use change_log::ChangeLog;
use favourites::Favourites;
use model::{JoinCommands, Model};
use rallypoint_query::{Target, local_address_for, mirror::MirrorConfig};
use settings::{LobbyTarget, Settings};
use shutdown::ShutdownSignal;
use std::{
    env,
    io::{IsTerminal, stdin, stdout},
    net::SocketAddr,
    time::Duration,
};
use theme::Theme;
use worker::Worker;

/// Runs the command until the user quits.
pub fn run(args: &Args) -> Result<(), CommandError> {
    need_terminal()?;
    let settings = Settings::load(args.config.as_deref())?;
    let targets = targets(args, &settings)?;
    let favourites = match args.favourites.clone().or_else(Favourites::default_file) {
        Some(file) => Favourites::load(&file)?,
        None => Favourites::default(),
    };
    let joins = JoinCommands { any: args.join.clone().or(settings.join), by_game: settings.join_game };
    let model = Model::new(&targets, favourites, joins, can_reach);
    show(model, &args.scan, targets, args.every.0, args.mirrors.config(false))
}

/// Runs `rallypoint watch` in the terminal: a browser that scans repeatedly and logs changes.
pub fn watch(
    scan: &ScanArgs,
    targets: Vec<Target>,
    every: Duration,
    mirrors: Option<MirrorConfig>,
) -> Result<(), CommandError> {
    let mut model = Model::new(&targets, Favourites::default(), JoinCommands::default(), can_reach);
    model.log = Some(ChangeLog::new(crate::watch::time_of_day));
    show(model, scan, targets, Some(every), mirrors)
}

fn show(
    mut model: Model,
    scan: &ScanArgs,
    targets: Vec<Target>,
    every: Option<Duration>,
    mirrors: Option<MirrorConfig>,
) -> Result<(), CommandError> {
    let connects = model.log.is_none() || every.is_some_and(|every| every >= MIN_CONNECT_INTERVAL);
    let worker = Worker::start(scan, targets, connects, mirrors)?;
    let shutdown =
        ShutdownSignal::listen().map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    screen::run(&mut model, &worker, &shutdown, Theme::of_terminal(), every)?;
    worker.stop()
}

fn need_terminal() -> Result<(), CommandError> {
    let why = if !(stdin().is_terminal() && stdout().is_terminal()) {
        "browse needs a terminal; in scripts use: rallypoint list LOBBY --json"
    } else if !can_draw() {
        "browse needs a terminal that can move its cursor, and TERM names one that cannot; use rallypoint list"
    } else {
        return Ok(());
    };
    Err(CommandError::Usage(why.into()))
}

/// Whether the terminal can move its cursor.
pub fn can_draw() -> bool {
    env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

fn can_reach(address: SocketAddr) -> bool {
    local_address_for(address).is_ok()
}

/// The targets: from the command line, else from the environment, else from the file, else this machine.
fn targets(args: &Args, settings: &Settings) -> Result<Vec<Target>, CommandError> {
    let mut targets = args.lobbies.clone();
    if targets.is_empty() {
        let named = env::var("RALLYPOINT_LOBBY").unwrap_or_default();
        for text in named.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            targets.push(text.parse().map_err(|error| CommandError::Usage(format!("RALLYPOINT_LOBBY: {error}")))?);
        }
    }
    if targets.is_empty() {
        targets.clone_from(&settings.lobbies);
    }
    if targets.is_empty() {
        targets.push(LocalLobby::load().host().parse().map_err(CommandError::Usage)?);
    }
    // A lobby that is named twice is shown once.
    let mut different = Vec::new();
    for LobbyTarget(target) in targets {
        if !different.contains(&target) {
            different.push(target);
        }
    }
    Ok(different)
}
