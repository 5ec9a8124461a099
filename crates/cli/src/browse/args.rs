//! The flags of `rallypoint browse`.

use super::{
    join::JoinCommand,
    settings::{self, LobbyTarget},
};
use crate::{
    mirror_args::MirrorArgs,
    scan_args::{ScanArgs, time},
};
use std::{path::PathBuf, time::Duration};

/// Browse servers in the terminal: sort, filter, favourites, details, join
///
/// Reads the lists of lobbies, queries every server that can be queried, and shows them in a table. Press ? for the keys.
#[derive(clap::Args)]
#[command(after_long_help = more(), after_help = "Examples and exit codes: rallypoint browse --help")]
pub struct Args {
    /// Lobbies: host or host:port, with /gg2, /vanguard or a UUID for one of its lists
    ///
    /// Also lobby://host/list, https://host/ (the page of a lobby) or https://host/list (a Bloodmasters master list),
    /// session://host, bloodmasters://host. Default: $RALLYPOINT_LOBBY (several separated by commas), else those of the
    /// configuration file, else this machine.
    #[arg(value_name = "LOBBY")]
    pub lobbies: Vec<LobbyTarget>,

    /// Command that joins a server, with {host} and {port}, or {address}; run without a shell
    ///
    /// Rooms of rallypoint host need none: they are joined with rallypoint join and the key in the list.
    #[arg(long, value_name = "COMMAND")]
    pub join: Option<JoinCommand>,

    /// Time between automatic refreshes: 30s, 5m, or off
    #[arg(long, value_name = "TIME|off", default_value = "1m", value_parser = refresh_interval)]
    pub every: RefreshInterval,

    /// Configuration file (TOML)
    ///
    /// Default: $XDG_CONFIG_HOME/rallypoint/browse.toml (~/.config/...), if it exists.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// File that stores the favourites
    ///
    /// Default: $XDG_DATA_HOME/rallypoint/favourites (~/.local/share/...).
    #[arg(long, value_name = "FILE")]
    pub favourites: Option<PathBuf>,

    #[command(flatten)]
    pub mirrors: MirrorArgs,

    #[command(flatten)]
    pub scan: ScanArgs,
}

/// Time between automatic refreshes; `None` for none.
#[derive(Clone, Copy, Debug)]
pub struct RefreshInterval(pub Option<Duration>);

fn refresh_interval(text: &str) -> Result<RefreshInterval, String> {
    match text {
        "off" => Ok(RefreshInterval(None)),
        text => time(text).map(Some).map(RefreshInterval).map_err(|error| format!("{error}, or off")),
    }
}

fn more() -> String {
    format!(
        "\
Examples:
  rallypoint browse lobby.example.org
  rallypoint browse lobby.example.org/gg2 lobby.example.org/vanguard
  rallypoint browse lobby.example.org --join 'mygame --connect {{host}} {{port}}'
  rallypoint browse lobby.example.org --mirror https://mirror.example.net/lobby/

Configuration:
{}

Environment:
  RALLYPOINT_LOBBY  the lobbies, if none is given
  RALLYPOINT_MIRROR where to read lists of lobbies that do not answer
  NO_COLOR          disables colours

Exit codes:
  0  ended by the user
  1  could not start or continue; the last line states the reason
  2  wrong usage, an error in the configuration, or no terminal",
        settings::EXAMPLE
    )
}
