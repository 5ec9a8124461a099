//! The flags of `rallypoint browse`.

use super::{
    join::JoinCommand,
    settings::{self, Place},
};
use crate::ask::{Asking, options::time};
use std::{path::PathBuf, time::Duration};

/// Browse servers in the terminal: sort, filter, favourites, details, join
///
/// Gets the lists of lobbies, asks every server that can be asked, and shows what there is. Press ? for the keys.
#[derive(clap::Args)]
#[command(after_long_help = more(), after_help = "More, with examples and exit codes: rallypoint browse --help")]
pub struct Args {
    /// Lobbies: names or addresses, with a port if it is not 29944, and /gg2, /vanguard or a UUID for one of its lists
    ///
    /// Also lobby://host/list, http://host/list (a Bloodmasters master list), session://host, bloodmasters://host. Without
    /// any: $RALLYPOINT_LOBBY (several with commas between them), else those of the configuration file, else this machine.
    #[arg(value_name = "LOBBY")]
    pub lobbies: Vec<Place>,

    /// What joins a server: a command with {host} and {port}, or {address}; it is run without a shell
    ///
    /// Without it, rooms of rallypoint host are joined with rallypoint join and the key that the list tells.
    #[arg(long, value_name = "COMMAND")]
    pub join: Option<JoinCommand>,

    /// Look again by itself, so often: 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub every: Option<Duration>,

    /// The configuration file (TOML)
    ///
    /// Without it: $XDG_CONFIG_HOME/rallypoint/browse.toml (~/.config/...), if there is one.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where favourites are kept
    ///
    /// Without it: $XDG_DATA_HOME/rallypoint/favourites (~/.local/share/...).
    #[arg(long, value_name = "FILE")]
    pub favourites: Option<PathBuf>,

    #[command(flatten)]
    pub asking: Asking,
}

fn more() -> String {
    format!(
        "\
Examples:
  rallypoint browse lobby.example.org
  rallypoint browse lobby.example.org/gg2 lobby.example.org/vanguard
  rallypoint browse lobby.example.org --join 'mygame --connect {{host}} {{port}}'

Configuration:
{}

Environment:
  RALLYPOINT_LOBBY  the lobbies, if none is named
  NO_COLOR          no colours

Exit codes:
  0  it was told to end
  1  it could not start or go on; the last line says why
  2  wrong usage, a mistake in the configuration, or no terminal",
        settings::EXAMPLE
    )
}
