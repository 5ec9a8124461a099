//! `rallypoint browse`: a server browser in the terminal.
//!
//! ```text
//! screen    the terminal: keys in, pictures out         worker   a thread that asks lobbies and servers
//!      │ keys ▲ wishes                                       │ news
//!      ▼      │                                              ▼
//! model     all that is known and shown; no I/O        view     draws the model; no I/O
//! ```

mod args;
mod ending;
mod favourites;
mod filter;
mod join;
mod log;
mod model;
mod screen;
mod settings;
#[cfg(test)]
mod tests;
mod theme;
mod view;
mod worker;

pub use args::Args;
pub use view::wrap;

use crate::{
    ask::{Asking, Target, route::route},
    error::CommandError,
};
use ending::Ending;
use favourites::Favourites;
use log::Log;
use model::{Joins, Model};
use settings::{Place, Settings};
use std::{
    env,
    io::{IsTerminal, stdin, stdout},
    net::SocketAddr,
    time::Duration,
};
use theme::Theme;
use worker::Worker;

/// Browses until a person has seen enough.
pub fn run(args: &Args) -> Result<(), CommandError> {
    need_terminal()?;
    let settings = Settings::load(args.config.as_deref())?;
    let places = places(args, &settings)?;
    let favourites = match args.favourites.clone().or_else(Favourites::usual_file) {
        Some(file) => Favourites::load(&file)?,
        None => Favourites::default(),
    };
    let joins = Joins { any: args.join.clone().or(settings.join), by_game: settings.join_game };
    let model = Model::new(&places, favourites, joins, can_reach);
    show(model, &args.asking, places, args.every)
}

/// Watches in the terminal: a browser that looks again and again, and says what has happened.
pub fn watch(asking: &Asking, places: Vec<Target>, every: Duration) -> Result<(), CommandError> {
    let mut model = Model::new(&places, Favourites::default(), Joins::default(), can_reach);
    model.log = Some(Log::new(crate::watch::time_of_day));
    show(model, asking, places, Some(every))
}

fn show(mut model: Model, asking: &Asking, places: Vec<Target>, every: Option<Duration>) -> Result<(), CommandError> {
    let worker = Worker::start(asking, places)?;
    let ending = Ending::listen().map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    screen::run(&mut model, &worker, &ending, Theme::of_terminal(), every)?;
    worker.end()
}

fn need_terminal() -> Result<(), CommandError> {
    let why = if !(stdin().is_terminal() && stdout().is_terminal()) {
        "browse needs a terminal; for scripts there is: rallypoint list LOBBY --json"
    } else if !can_draw() {
        "browse needs a terminal that can move its cursor, and TERM says that this one cannot; rallypoint list needs no such one"
    } else {
        return Ok(());
    };
    Err(CommandError::Usage(why.into()))
}

/// Whether the terminal is more than a printer.
pub fn can_draw() -> bool {
    env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

fn can_reach(address: SocketAddr) -> bool {
    route(address).is_ok()
}

/// Where to look: the first that says anything of the command line, the environment, the file; or this machine.
fn places(args: &Args, settings: &Settings) -> Result<Vec<Target>, CommandError> {
    let mut places = args.lobbies.clone();
    if places.is_empty() {
        let named = env::var("RALLYPOINT_LOBBY").unwrap_or_default();
        for text in named.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            places.push(text.parse().map_err(|error| CommandError::Usage(format!("RALLYPOINT_LOBBY: {error}")))?);
        }
    }
    if places.is_empty() {
        places.clone_from(&settings.lobbies);
    }
    if places.is_empty() {
        places.push("localhost".parse().map_err(CommandError::Usage)?);
    }
    Ok(places.into_iter().map(|Place(target)| target).collect())
}
