//! The flags of `rallypoint serve`.

use crate::{
    config::{Override, Setting, Sources},
    error::CommandError,
    listen_addr::listen_addr,
    local_lobby::DEFAULT_HTTP_PORT,
};
use rallypoint_lobby_proto::doors::{DOORS, Door, DoorSockets};
use rallypoint_wire::lobby;
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

/// Run a lobby (master server): game servers register with it, players get the list from it
///
/// No configuration is needed: by default the lobby listens on all IPv4 and IPv6 addresses, on UDP and TCP port 29944, on
/// port 29942 for old Gang Garrison 2 versions, and on port 29950 for its web page and API (HTTP). When it is ready, it
/// prints one line per address on standard output; the log goes to standard error.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples, signals and exit codes: rallypoint serve --help")]
pub struct Args {
    /// Configuration file (TOML)
    ///
    /// Default: $RALLYPOINT_CONFIG, or the first of $XDG_CONFIG_HOME/rallypoint/rallypoint.toml (~/.config/...) and
    /// /etc/rallypoint/rallypoint.toml that exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[arg(long, value_name = "DIR", help = help("data_dir"), long_help = about("data_dir"))]
    data_dir: Option<PathBuf>,

    #[arg(long, value_name = "ADDR:PORT", value_parser = addr, help = help("lobby.listen"))]
    lobby: Vec<SocketAddr>,

    #[arg(long, value_name = "ADDR:PORT|off", value_parser = addr_or_off, help = help("legacy.listen"))]
    legacy: Vec<AddrOrOff>,

    /// Open a door to the servers and clients of other games; can be repeated
    ///
    /// Without an address it listens on all IPv4 and IPv6 addresses, at the port that its games expect. The names are in
    /// docs/configuration.md, in the section about doors.
    #[arg(long, value_name = "NAME[=ADDR:PORT]", value_parser = door)]
    door: Vec<(&'static DoorSockets, Vec<SocketAddr>)>,

    #[arg(long, value_name = "ADDR:PORT|off", value_parser = addr_or_off, help = help("web.listen"))]
    http: Vec<AddrOrOff>,

    /// Share the list with other lobbies through this Redis or Valkey
    ///
    /// For example redis://store.example.org, with the same secret at all nodes: RALLYPOINT_CLUSTER_SECRET, or a file that
    /// cluster.secret_file names. Passwords are better kept out of the arguments, which all users of the machine can see:
    /// RALLYPOINT_CLUSTER_URL, or cluster.url in the file.
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    /// Write signed copies of page and lists into this directory, for mirrors
    ///
    /// Any web server can publish them; rallypoint list and browse read them with --mirror while this lobby does not answer.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,

    /// Any setting of the configuration file; can be repeated
    ///
    /// For example --set lobby.lease=2m --set lobby.allow_private=false. docs/configuration.md and --print-config list
    /// all settings.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,

    /// Check the configuration and exit
    #[arg(long)]
    pub check_config: bool,

    /// Print the effective configuration as a file, which can serve as a template, and exit
    #[arg(long, conflicts_with = "check_config")]
    pub print_config: bool,
}

const MORE: &str = "\
Examples:
  rallypoint serve
  rallypoint serve --lobby 127.0.0.1:29944 --legacy off
  rallypoint serve --set lobby.allow_private=false    a public lobby
  rallypoint serve --print-config > rallypoint.toml   a file to edit
  rallypoint serve --config rallypoint.toml --check-config
  rallypoint serve --cluster redis://store.example.org
                                                      one of several lobbies
  rallypoint serve --export /var/www/lobby            copies for mirrors

Settings:
  Flags override environment variables, which override the file.
  Each setting has a variable: lobby.lease is RALLYPOINT_LOBBY_LEASE.
  Names of lists ([lists.names]) and bans ([[ban]]) belong in the file; they
  have no flags of their own.

Signals:
  SIGHUP           reload the configuration; connections are kept
  SIGTERM, Ctrl-C  finish replies, save the list and exit; a second one exits
                   immediately

Exit codes:
  0  stopped by a signal
  1  failed to start or to continue; the last line states the reason
  2  wrong usage, or an error in the configuration, with file and line
  5  stopped by a signal, but the list could not be saved";

/// An address to listen on, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddrOrOff {
    Addr(SocketAddr),
    Off,
}

impl Args {
    /// The sources of the settings.
    pub fn sources(&self) -> Result<Sources, CommandError> {
        let mut sources = Sources::new(self.config.clone());
        let mut doors = BTreeMap::<_, Vec<SocketAddr>>::new();
        for (sockets, addrs) in &self.door {
            doors.entry(sockets.setting).or_default().extend(addrs);
        }
        let mut flag = |label: &str, path: &str, value: String| {
            sources.flags.push(Override { label: label.into(), path: path.into(), value });
        };
        for (path, value) in &self.set {
            flag(&format!("--set {path}"), path, value.clone());
        }
        if let Some(dir) = &self.data_dir {
            flag("--data-dir", "data_dir", dir.display().to_string());
        }
        if let Some(dir) = &self.export {
            // Relative to where the flag is written, not to the configuration file.
            let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
            flag("--export", "export.directory", dir.display().to_string());
        }
        if let Some(url) = &self.cluster {
            flag("--cluster", "cluster.url", url.clone());
        }
        if !self.lobby.is_empty() {
            flag("--lobby", "lobby.listen", join(self.lobby.iter()));
        }
        for (label, path, values) in [("--legacy", "legacy.listen", &self.legacy), ("--http", "web.listen", &self.http)]
        {
            if values.is_empty() {
                continue;
            }
            let addrs: Vec<_> = values.iter().filter_map(|values| values.addr()).collect();
            if !addrs.is_empty() && addrs.len() < values.len() {
                return Err(CommandError::Usage(format!("{label} takes off or addresses, not both")));
            }
            flag(label, path, if addrs.is_empty() { "off".into() } else { join(addrs.iter()) });
        }
        for (setting, addrs) in &doors {
            flag("--door", setting, join(addrs.iter()));
        }
        Ok(sources)
    }
}

impl AddrOrOff {
    fn addr(self) -> Option<SocketAddr> {
        match self {
            Self::Addr(addr) => Some(addr),
            Self::Off => None,
        }
    }
}

fn join(addrs: impl Iterator<Item = impl ToString>) -> String {
    addrs.map(|addr| addr.to_string()).collect::<Vec<_>>().join(",")
}

/// The description of a setting, for the flag that sets it.
fn about(path: &str) -> &'static str {
    Setting::find(path).map_or("", |setting| setting.about)
}

/// The first sentence of the description, and the default if there is one.
fn help(path: &str) -> String {
    let Some(Setting { about, default, .. }) = Setting::find(path) else { return String::new() };
    let sentence = about.split(". ").next().unwrap_or_default().trim_end_matches('.');
    match default.replace(", ", " and ") {
        none if none.is_empty() => sentence.into(),
        default => format!("{sentence}; can be repeated [default: {default}]"),
    }
}

fn addr(text: &str) -> Result<SocketAddr, String> {
    listen_addr(text, lobby::PORT)
}

fn addr_or_off(text: &str) -> Result<AddrOrOff, String> {
    match text {
        "off" => Ok(AddrOrOff::Off),
        _ => {
            listen_addr(text, DEFAULT_HTTP_PORT.get()).map(AddrOrOff::Addr).map_err(|error| format!("{error}, or off"))
        }
    }
}

/// The names of all doors with sockets.
fn door_names() -> String {
    let names = DOORS.into_iter().filter(|door| door.sockets.is_some()).map(|door| door.name);
    names.collect::<Vec<_>>().join(", ")
}

/// A door, and where it listens.
fn door(text: &str) -> Result<(&'static DoorSockets, Vec<SocketAddr>), String> {
    let (name, addr) = text.split_once('=').map_or((text, None), |(name, addr)| (name, Some(addr)));
    let sockets = Door::find(name).and_then(|door| door.sockets.as_ref());
    let sockets = sockets.ok_or_else(|| format!("there is no such door: the names are {}", door_names()))?;
    let addrs = addr.map_or_else(|| Ok(sockets.documented_addrs()), |addr| Ok(vec![listen_addr(addr, sockets.port)?]));
    addrs.map(|addrs| (sockets, addrs))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as lobby.lease=2m")?;
    Ok((key.trim().into(), value.trim().into()))
}
